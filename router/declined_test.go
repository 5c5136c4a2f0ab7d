package router

import (
	"context"
	"testing"
	"time"

	"baton/engine"
)

// declines says 400 for a reason of its own.
func declines(_ context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
	yield(engine.Delta{}, &engine.Error{Kind: engine.InvalidRequest, Status: 400, Message: "too long for me", Elsewhere: true})
}

func TestDeclinedRequestGoesToTheNextWorker(t *testing.T) {
	cfg := testConfig
	cfg.Policy = func(*engine.Request, []Candidate) int { return 0 }
	newRig(t, 3, cfg, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(declines)
		r.workers["w2"].plays(declines)
		start := time.Now()
		for range 3 {
			r.mustAnswer(t, request(), "w3")
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("took %v although a worker was free", d)
		}
		r.mustBe(t, "w1", stateReady) // other requests are welcome there
		r.workers["w1"].plays(tokens(1, 0))
		r.mustAnswer(t, request(), "w1")
	})
}

// If everyone who is there declines, the client learns why, at once, and each was
// asked once. A worker that is only busy is waited for.
func TestRequestThatAllDecline(t *testing.T) {
	newRig(t, 3, testConfig, func(t *testing.T, r *rig) {
		for _, f := range r.workers {
			f.plays(declines)
		}
		start := time.Now()
		e := r.mustFail(t, request(), engine.InvalidRequest)
		if d := time.Since(start); d != 0 || e.Message != "too long for me" || e.Status != 400 {
			t.Errorf("after %v: %#v", d, e)
		}
		for id, f := range r.workers {
			if n := f.asked(); n != 1 {
				t.Errorf("%s was asked %d times", id, n)
			}
		}
		r.workers["w3"].plays(refuses(503, time.Second))
		time.AfterFunc(3*time.Second, func() { r.workers["w3"].plays(tokens(1, 0)) })
		r.mustAnswer(t, request(), "w3")
		if n := r.workers["w1"].asked(); n != 2 {
			t.Errorf("the one that declined was asked %d times by one request", n-1)
		}
		r.workers["w3"].plays(fails(engine.EngineError, 500))
		r.mustFail(t, request(), engine.EngineError) // now w3 is out of rotation
		start = time.Now()
		r.mustFail(t, request(), engine.InvalidRequest)
		if d := time.Since(start); d != 0 {
			t.Errorf("waited %v for a worker that is out of rotation", d)
		}
	})
}

// A worker that gave a request up because it is drained, and declines to take it
// back, is not asked for ever.
func TestDrainedWorkerThatDeclines(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(declines)
		req := request()
		req.DrainedFrom = "w1"
		if _, ok := r.Drain("w1"); !ok {
			t.Fatal("no such worker")
		}
		r.mustFail(t, req, engine.InvalidRequest)
		if n := r.workers["w1"].asked(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}
