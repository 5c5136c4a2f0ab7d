package transport

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// stoodStill is how late a timer fires only if the process did not run.
	stoodStill = time.Second
	// nobodyWaits is the value of since while no Read waits.
	nobodyWaits = -1
)

// A silence bounds how long a Read waits for a byte. A Read costs one reading of
// the clock; the timer fires on its own, looks how long the wait is by then, and
// sets itself to the next moment that can matter.
type silence struct {
	limit  time.Duration
	end    func() // is called when the limit is reached
	start  time.Time
	since  atomic.Int64 // when the Read began to wait, in nanoseconds after start, or nobodyWaits
	broken atomic.Bool  // the limit was reached

	mu      sync.Mutex // guards the rest
	timer   *time.Timer
	due     time.Duration // when it is to fire, after start
	stopped bool
}

func newSilence(limit time.Duration, end func()) *silence {
	s := &silence{limit: limit, end: end, start: time.Now()}
	s.since.Store(nobodyWaits)
	s.mu.Lock() // the timer may fire before it is assigned
	defer s.mu.Unlock()
	s.due = limit
	s.timer = time.AfterFunc(limit, s.check)
	return s
}

func (s *silence) begin() { s.since.Store(int64(time.Since(s.start))) }
func (s *silence) over()  { s.since.Store(nobodyWaits) }

// check runs on the timer's goroutine.
func (s *silence) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	left := s.left(time.Since(s.start))
	if left <= 0 {
		s.broken.Store(true)
		s.end()
		return
	}
	s.due = time.Since(s.start) + left
	s.timer.Reset(left)
}

// left returns how much longer the worker may be silent, now after the start. If
// the timer fires much too late it is we who stood still (a laptop's lid, a
// paused virtual machine), and what the worker sent meanwhile is still to be
// read. s.mu is held.
func (s *silence) left(now time.Duration) time.Duration {
	since := s.since.Load()
	if since == nobodyWaits {
		return s.limit
	}
	if late := now - s.due; late > stoodStill {
		forgiven := min(since+int64(late), int64(now))
		if !s.since.CompareAndSwap(since, forgiven) {
			return s.limit // a byte has come
		}
		since = forgiven
	}
	return s.limit - (now - time.Duration(since))
}

func (s *silence) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.timer.Stop()
}
