package alarm

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := NewClock()
		time.Sleep(time.Minute)
		var s Silence
		s.Init(clock)
		time.Sleep(time.Minute)
		if d := s.Length(); d != 0 {
			t.Errorf("%v before anybody waits", d)
		}
		s.Begin()
		time.Sleep(3 * time.Second)
		if d := s.Length(); d != 3*time.Second {
			t.Errorf("%v after 3 s", d)
		}
		s.End()
		time.Sleep(time.Second)
		if d := s.Length(); d != 0 {
			t.Errorf("%v when nobody waits any more", d)
		}
	})
}

// When the process itself stood still, alarms ring late, and nobody else is to blame.
func TestAPauseOfTheMachineIsNoSilence(t *testing.T) {
	for _, c := range []struct {
		name            string
		since, due, now time.Duration // since 0 = nobody waits
		want            time.Duration
	}{
		{"silent", 10 * time.Second, 13 * time.Second, 13 * time.Second, 3 * time.Second},
		{"silent on a busy machine", 10 * time.Second, 13 * time.Second, 13*time.Second + StoodStill, 3*time.Second + StoodStill},
		{"stood still while waiting", 12 * time.Second, 13 * time.Second, time.Hour, time.Second},
		{"began to wait after that", time.Hour - time.Second, 13 * time.Second, time.Hour, 0},
		{"nobody waits", 0, 13 * time.Second, time.Hour, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := NewClock()
				var s Silence
				s.Init(clock)
				if c.since > 0 {
					time.Sleep(c.since)
					s.Begin()
				}
				time.Sleep(c.now - clock.Now())
				s.Forgive(c.due)
				if d := s.Length(); d != c.want {
					t.Errorf("%v, want %v", d, c.want)
				}
			})
		})
	}
}
