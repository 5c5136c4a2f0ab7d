package transport

import (
	"container/list"
	"context"
	"sync"
	"time"

	"baton/alarm"
)

// A worker's death can make thousands of requests want a connection to another one at
// once. If all were made at once they would overflow the queue of connections that
// the worker has not accepted yet, and each that falls out of it waits a second for
// its next try; and here all streams would stand behind them until all are made.
const (
	// turnsAtOnce is how many connections to a worker are made at a time.
	turnsAtOnce = 16
	// turnsEvery is in how much time at least one of them is made. If none is, as many
	// more are begun: what takes long is the way to the worker, or it is dead. If one is,
	// it may be us who are behind, and more at a time would only make that worse.
	turnsEvery = 10 * time.Millisecond
)

// turns are whose turn it is to make a connection: first come, first served.
type turns struct {
	clock *alarm.Clock
	alarm alarm.Alarm // set while somebody waits

	mu      sync.Mutex // guards what follows
	taken   int        // and not given back
	waiting list.List  // of chan struct{}, closed when it is one's turn
	passed  bool       // a turn was given back since the alarm was set
}

func (t *turns) init(c *alarm.Clock) {
	t.clock = c
	t.alarm.Ring = t.hurry
}

// take waits for a turn, which is to be given back. The error is that of ctx.
func (t *turns) take(ctx context.Context) error {
	t.mu.Lock()
	if t.taken < turnsAtOnce {
		t.taken++
		t.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	place := t.waiting.PushBack(turn)
	if t.waiting.Len() == 1 {
		t.wind()
	}
	t.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-turn:
		t.pass() // it came too late
	default:
		t.waiting.Remove(place)
	}
	return ctx.Err()
}

// giveBack lets the next one have its turn.
func (t *turns) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// pass takes a turn back and gives it to who waits. t.mu is held.
func (t *turns) pass() {
	t.taken--
	t.passed = true
	t.next(1)
}

// next gives n more turns to those that have waited longest. t.mu is held.
func (t *turns) next(n int) {
	for ; n > 0 && t.waiting.Len() > 0; n-- {
		t.taken++
		close(t.waiting.Remove(t.waiting.Front()).(chan struct{}))
	}
}

// wind sets the alarm. t.mu is held.
func (t *turns) wind() {
	t.passed = false
	due := t.clock.Now() + turnsEvery
	t.clock.Set(&t.alarm, due, due)
}

// hurry runs when the alarm rings.
func (t *turns) hurry(time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.passed {
		t.next(turnsAtOnce)
	}
	if t.waiting.Len() > 0 {
		t.wind()
	}
}
