package alarm

import (
	"sync/atomic"
	"time"
)

// StoodStill is how late an alarm rings only if the process did not run.
const StoodStill = time.Second

// nobodyWaits is the value of since while nobody does.
const nobodyWaits = -1

// A Silence is how long somebody has been waiting for somebody else. To begin costs a
// reading of the clock, to end an atomic store: what is to be done about a silence is
// decided by an alarm that rings now and then, looks how long it is by then, and sets
// itself to the next moment that can matter. Its methods may be called from any
// goroutine after Init.
type Silence struct {
	since atomic.Int64 // on the clock, or nobodyWaits
	start time.Time    // of the clock
}

// Init makes s a silence by c, for which nobody waits yet.
func (s *Silence) Init(c *Clock) {
	s.start = c.start
	s.since.Store(nobodyWaits)
}

// Begin is called when the waiting begins, End when it is over.
func (s *Silence) Begin() { s.since.Store(int64(time.Since(s.start))) }

func (s *Silence) End() { s.since.Store(nobodyWaits) }

// Length returns how long the silence is; 0 while nobody waits.
func (s *Silence) Length() time.Duration {
	since := s.since.Load()
	if since == nobodyWaits {
		return 0
	}
	return time.Since(s.start) - time.Duration(since)
}

// Forgive takes time that was nobody's off the silence, when an alarm rings that was
// due at due: if that is much too late, it is we who stood still (a laptop's lid, a
// paused virtual machine), and what was sent meanwhile is still to be read.
func (s *Silence) Forgive(due time.Duration) {
	now := time.Since(s.start)
	if since, late := s.since.Load(), now-due; late > StoodStill && since != nobodyWaits {
		// Not beyond now: the waiting may have begun after the pause.
		s.since.CompareAndSwap(since, int64(min(time.Duration(since)+late, now)))
	}
}
