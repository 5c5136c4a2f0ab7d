package transport

import (
	"testing"
	"testing/synctest"
	"time"

	"baton/alarm"
)

// The limit is kept to the moment, however the waiting lies in the time of the clock,
// and also where it begins just before an alarm that has slack.
func TestTheLimitOfASilenceIsExact(t *testing.T) {
	for _, limit := range []time.Duration{50 * time.Millisecond, silenceSlack, 3 * time.Second} {
		for _, begin := range []time.Duration{0, time.Millisecond, 37 * time.Millisecond, 2874 * time.Millisecond, 2999 * time.Millisecond, time.Hour + 13*time.Millisecond} {
			synctest.Test(t, func(t *testing.T) {
				clock := alarm.NewClock()
				ended := make(chan time.Duration, 1)
				s := newSilence(clock, limit, func() { ended <- clock.Now() })
				time.Sleep(begin)
				s.Begin()
				if at := <-ended; at != begin+limit {
					t.Errorf("limit %v: begun at %v, ended at %v", limit, begin, at)
				}
				if s.stop() {
					t.Errorf("limit %v: stop says that it was kept", limit)
				}
			})
		}
	}
}

func TestASilenceThatEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSilence(alarm.NewClock(), 3*time.Second, func() { t.Error("the limit was reached") })
		for range 20 {
			s.Begin()
			time.Sleep(2999 * time.Millisecond)
			s.End()
			time.Sleep(time.Minute)
		}
		if !s.stop() {
			t.Error("stop says that the limit was reached")
		}
	})
}
