package router

import (
	"context"
	"syscall"
	"testing"
	"time"

	"baton/engine"
)

// exhausted is what an engine client makes of a dial that failed for want of
// descriptors.
func exhausted() *engine.Error {
	return &engine.Error{Kind: engine.Overloaded, Err: exhaustedError{}}
}

type exhaustedError struct{}

func (exhaustedError) Error() string   { return "exhausted" }
func (exhaustedError) Unwrap() []error { return []error{engine.ErrExhausted, syscall.EMFILE} }

// A process that is out of descriptors waits for some and blames no worker.
func TestOwnExhaustionIsWaitedFor(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		start := time.Now()
		for _, w := range r.workers {
			w.plays(func(ctx context.Context, req *engine.Request, yield func(engine.Delta, error) bool) {
				if time.Since(start) >= 3*time.Second { // descriptors are free again
					tokens(1, 0)(ctx, req, yield)
					return
				}
				yield(engine.Delta{}, exhausted())
			})
		}
		req := request()
		r.mustAnswer(t, req, "")
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("answered after %v", d)
		}
		if n := len(req.Trace.Attempts); n < 4 || n > 40 {
			t.Errorf("%d attempts: neither once nor in a tight loop", n)
		}
		r.mustBe(t, "w1", stateReady)
		r.mustBe(t, "w2", stateReady)
	})
}

// If it lasts, the client is told to come back.
func TestOwnExhaustionThatLasts(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(func(_ context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
			yield(engine.Delta{}, exhausted())
		})
		e := r.mustFail(t, request(), engine.Overloaded)
		if e.Status != 503 || e.RetryAfter <= 0 {
			t.Errorf("error %#v", e)
		}
		r.mustBe(t, "w1", stateReady)
	})
}

// The worker is asked at once by a request that finds a connection: it is not
// left alone for something that it did not do.
func TestOwnExhaustionIsNoPause(t *testing.T) {
	cfg := testConfig
	cfg.WorkerWaitTimeout = 0
	newRig(t, 1, cfg, func(t *testing.T, r *rig) {
		w := r.workers["w1"]
		w.plays(func(_ context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
			yield(engine.Delta{}, exhausted())
		})
		r.mustFail(t, request(), engine.Overloaded)
		w.plays(tokens(1, 0))
		r.mustAnswer(t, request(), "w1")
	})
}

// A probe that cannot be sent says nothing about the worker.
func TestOwnExhaustionOfProbes(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].do(func() { r.workers["w1"].health = exhausted() })
		time.Sleep(10 * testConfig.HealthInterval)
		r.mustBe(t, "w1", stateReady)
		r.mustAnswer(t, request(), "w1")
	})
}
