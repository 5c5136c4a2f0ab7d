package transport

import (
	"sync/atomic"
	"time"

	"baton/alarm"
)

// silenceSlack is how long before the end of a limit that is still far the alarm may
// ring, to be set anew together with those of other answers.
const silenceSlack = alarm.Grid

// A silence bounds how long a Read waits for a byte.
type silence struct {
	alarm.Silence
	clock  *alarm.Clock
	limit  time.Duration
	end    func() // is called when the limit is reached
	alarm  alarm.Alarm
	broken atomic.Bool // the limit was reached
}

func newSilence(clock *alarm.Clock, limit time.Duration, end func()) *silence {
	s := &silence{clock: clock, limit: limit, end: end}
	s.Init(clock)
	s.alarm.Ring = s.check
	s.set(limit)
	return s
}

// check runs on the clock's goroutine. It is exact: where an answer is silent, the
// last alarm before the end of the limit has no slack.
func (s *silence) check(due time.Duration) {
	s.Forgive(due)
	left := s.limit - s.Length()
	if left > 0 {
		s.set(left)
		return
	}
	s.broken.Store(true)
	go s.end() // closing waits until whoever reads has noticed, and the clock waits for nobody
}

func (s *silence) set(left time.Duration) {
	latest := s.clock.Now() + left
	earliest := latest
	if left > silenceSlack {
		earliest -= silenceSlack
	}
	s.clock.Set(&s.alarm, earliest, latest)
}

// stop ends the watch, and reports whether the limit was kept.
func (s *silence) stop() bool {
	s.clock.Stop(&s.alarm)
	return !s.broken.Load()
}
