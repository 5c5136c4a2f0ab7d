package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"baton/alarm"
	"baton/engine"
)

// What wants a connection at once gets it in turns, so many at a time; where the way
// is long, or nobody answers, the turns do not wait for that.
func TestConnectionsAtOnce(t *testing.T) {
	const bound = 3 * time.Second
	for _, c := range []struct {
		name     string
		requests int
		takes    time.Duration // to be refused; 0 = for ever
		most     int           // at a time
		last     time.Duration // when the last one has its answer
		kind     engine.Kind
	}{
		{"a lone one", 1, time.Millisecond, 1, time.Millisecond, engine.CannotConnect},
		{"a few", turnsAtOnce, time.Millisecond, turnsAtOnce, time.Millisecond, engine.CannotConnect},
		{"many", 10 * turnsAtOnce, time.Millisecond, turnsAtOnce, 10 * time.Millisecond, engine.CannotConnect},
		{"many, far away", 100 * turnsAtOnce, 50 * time.Millisecond, 6 * turnsAtOnce, 1200 * time.Millisecond, engine.CannotConnect},
		{"nobody is there", 100 * turnsAtOnce, 0, 100 * turnsAtOnce, bound + 100*turnsEvery, engine.ConnectionTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex // guards now and most
				now, most := 0, 0
				begin := func(n int) {
					mu.Lock()
					defer mu.Unlock()
					now += n
					most = max(most, now)
				}
				link, err := New(Options{URL: "http://w", ConnectTimeout: bound, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					begin(1)
					defer begin(-1)
					if c.takes > 0 {
						time.Sleep(c.takes)
						return nil, syscall.ECONNREFUSED
					}
					<-ctx.Done()
					return nil, ctx.Err()
				}})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				var all sync.WaitGroup
				for range c.requests {
					all.Go(func() {
						_, err := link.Post(t.Context(), "/x", "id", nil)
						if e := engine.AsError(err); e.Kind != c.kind {
							t.Errorf("%v, want %v", e, c.kind)
						}
					})
				}
				all.Wait()
				if took := time.Since(start); took > c.last {
					t.Errorf("the last one has its answer after %v, want %v", took, c.last)
				}
				if most > c.most {
					t.Errorf("%d at a time, want %d at most", most, c.most)
				}
				if link.turns.taken != 0 || link.turns.waiting.Len() != 0 {
					t.Errorf("%d turns are taken and %d wait", link.turns.taken, link.turns.waiting.Len())
				}
			})
		})
	}
}

// Who has waited longest is the next, and who has left is not.
func TestTheOrderOfTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		turns.init(alarm.NewClock())
		for range turnsAtOnce {
			if err := turns.take(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		why := errors.New("the client left")
		ctx, cancel := context.WithCancelCause(t.Context())
		var order []int
		for i := range 4 {
			own := t.Context()
			if i == 1 {
				own = ctx
			}
			go func() {
				if err := turns.take(own); err == nil {
					order = append(order, i)
				} else if i != 1 || context.Cause(own) != why {
					t.Errorf("%d: %v", i, err)
				}
			}()
			synctest.Wait()
		}
		cancel(why)
		synctest.Wait()
		if n := turns.waiting.Len(); n != 3 {
			t.Errorf("%d wait after one has left, want 3", n)
		}
		for range 3 {
			turns.giveBack()
			synctest.Wait()
		}
		if len(order) != 3 || order[0] != 0 || order[1] != 2 || order[2] != 3 {
			t.Errorf("they came in the order %v", order)
		}
		for range turnsAtOnce {
			turns.giveBack()
		}
		if turns.taken != 0 {
			t.Errorf("%d turns are taken", turns.taken)
		}
	})
}

// A turn that is given to who leaves at this moment is not lost.
func TestATurnForWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 { // which of the two is seen first is chance
			var turns turns
			turns.init(alarm.NewClock())
			for range turnsAtOnce {
				turns.take(t.Context())
			}
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan error)
			go func() { left <- turns.take(ctx) }()
			synctest.Wait()
			turns.giveBack()
			cancel()
			if err := <-left; err == nil {
				turns.giveBack()
			}
			for range turnsAtOnce - 1 {
				turns.giveBack()
			}
			if turns.taken != 0 || turns.waiting.Len() != 0 {
				t.Fatalf("%d turns are taken and %d wait", turns.taken, turns.waiting.Len())
			}
		}
	})
}
