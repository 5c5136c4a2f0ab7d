package transport

import (
	"testing"
	"time"
)

// When the process itself stood still, the timer fires late, and the worker is
// not to blame: what it sent is still to be read.
func TestAPauseOfTheMachineIsNoSilence(t *testing.T) {
	const limit = 3 * time.Second
	for _, c := range []struct {
		name            string
		since, due, now time.Duration
		left            time.Duration
	}{
		{"silent", 10 * time.Second, 13 * time.Second, 13 * time.Second, 0},
		{"silent on a busy machine", 10 * time.Second, 13 * time.Second, 13*time.Second + stoodStill/2, -stoodStill / 2},
		{"not yet", 12 * time.Second, 13 * time.Second, 13 * time.Second, 2 * time.Second},
		{"stood still while waiting", 12 * time.Second, 13 * time.Second, time.Hour, 2 * time.Second},
		{"stood still before", time.Hour - time.Second, 13 * time.Second, time.Hour, limit},
		{"nobody waits", nobodyWaits, 13 * time.Second, time.Hour, limit},
	} {
		s := &silence{limit: limit, due: c.due}
		s.since.Store(int64(c.since))
		if left := s.left(c.now); left != c.left {
			t.Errorf("%s: %v left, want %v", c.name, left, c.left)
		}
	}
}
