package router

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
)

// refuses says 429 or 503 with a Retry-After.
func refuses(status int, retryAfter time.Duration) script {
	return func(_ context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
		yield(engine.Delta{}, &engine.Error{Kind: engine.Overloaded, Status: status, RetryAfter: retryAfter})
	}
}

func TestRefusedRequestGoesToTheNextWorker(t *testing.T) {
	newRig(t, 3, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(refuses(503, 0))
		r.workers["w2"].plays(refuses(429, 0))
		start := time.Now()
		req := request()
		r.mustAnswer(t, req, "w3")
		if d := time.Since(start); d != 0 {
			t.Errorf("took %v although a worker was free", d)
		}
		if a := req.Trace.Attempts; len(a) != 3 || a[0].ID != "q-r000" || a[2].ID != "q-r002" || a[0].Err.Kind != engine.Overloaded {
			t.Errorf("trace %+v", a)
		}
		r.mustBe(t, "w1", stateReady) // busy is not dead
	})
}

func TestEachWorkerIsAskedOncePerRound(t *testing.T) {
	cfg := testConfig
	cfg.Policy = func(*engine.Request, []Candidate) int { return 0 } // stubborn
	newRig(t, 3, cfg, func(t *testing.T, r *rig) {
		type visit struct {
			worker string
			at     time.Duration
		}
		var visits []visit
		start := time.Now()
		for id, f := range r.workers {
			f.plays(func(ctx context.Context, req *engine.Request, yield func(engine.Delta, error) bool) {
				visits = append(visits, visit{id, time.Since(start)})
				if len(visits) == 9 {
					tokens(1, 0)(ctx, req, yield)
					return
				}
				time.Sleep(400 * time.Millisecond) // longer than the pause of the first one
				refuses(503, 0)(ctx, req, yield)
			})
		}
		r.mustAnswer(t, request(), "")
		for round := range 3 {
			seen := make(map[string]bool)
			for _, v := range visits[3*round : 3*round+3] {
				seen[v.worker] = true
			}
			if len(seen) != 3 {
				t.Errorf("round %d: %v", round, visits)
			}
		}
	})
}

func TestRoundsAreSpaced(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(refuses(503, 0))
		start := time.Now()
		e := r.mustFail(t, request(), engine.Overloaded)
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("gave up after %v", d)
		}
		if e.Status != 503 || e.RetryAfter <= 0 || e.WorkerID != "w1" {
			t.Errorf("error %#v", e)
		}
		if n := r.workers["w1"].asked(); n < 20 || n > 41 {
			t.Errorf("asked %d times in 10 s", n)
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(refuses(429, 4*time.Second))
		start := time.Now()
		time.AfterFunc(time.Second, func() { r.workers["w1"].plays(tokens(1, 0)) })
		r.mustAnswer(t, request(), "w1")
		if d := time.Since(start); d != 4*time.Second {
			t.Errorf("answered after %v", d)
		}
		// Another request does not bother the worker in the meantime either.
		r.workers["w1"].plays(refuses(429, 4*time.Second))
		var other sync.WaitGroup
		other.Go(func() { r.ask(t.Context(), request()) })
		synctest.Wait()
		before := r.workers["w1"].asked()
		time.AfterFunc(time.Second, func() { r.workers["w1"].plays(tokens(1, 0)) })
		r.mustAnswer(t, request(), "w1")
		if n := r.workers["w1"].asked() - before; n > 2 {
			t.Errorf("asked %d times", n)
		}
		other.Wait()
	})
}

func TestFinalOverload(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses [2]int
		kind     engine.Kind
		status   int
	}{
		{"all 429", [2]int{429, 429}, engine.Overloaded, 429},
		{"one 503", [2]int{429, 503}, engine.Overloaded, 503},
		{"one 503 first", [2]int{503, 429}, engine.Overloaded, 503},
		{"all 503", [2]int{503, 503}, engine.Overloaded, 503},
		{"one set up wrongly", [2]int{429, 404}, engine.NoWorker, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
				for i, id := range []string{"w1", "w2"} {
					kind := engine.Overloaded
					if c.statuses[i] == 404 {
						kind = engine.WorkerMisconfigured
					}
					r.workers[id].plays(fails(kind, c.statuses[i]))
				}
				if e := r.mustFail(t, request(), c.kind); e.Status != c.status || e.RetryAfter < time.Second {
					t.Errorf("error %#v", e)
				}
			})
		})
	}
}

func TestOneRoundWithoutWaiting(t *testing.T) {
	cfg := testConfig
	cfg.WorkerWaitTimeout = 0
	newRig(t, 3, cfg, func(t *testing.T, r *rig) {
		for _, f := range r.workers {
			f.plays(refuses(429, 0))
		}
		start := time.Now()
		if e := r.mustFail(t, request(), engine.Overloaded); e.Status != 429 {
			t.Errorf("status %d", e.Status)
		}
		for id, f := range r.workers {
			if f.asked() != 1 {
				t.Errorf("%s was asked %d times", id, f.asked())
			}
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("waited %v", d)
		}
	})
}

func TestMisconfiguredWorkers(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(fails(engine.WorkerMisconfigured, 401))
		for range 3 {
			r.mustAnswer(t, request(), "w2")
		}
		if n := r.workers["w1"].asked(); n != 1 {
			t.Errorf("w1 was asked %d times", n)
		}
		if r.log.count("level=WARN") != 1 || r.log.count("worker=w1") < 1 || r.log.count("status 401") < 1 {
			t.Errorf("log:\n%s", r.log.Builder.String())
		}
		r.workers["w2"].plays(fails(engine.WorkerMisconfigured, 404))
		start := time.Now()
		r.mustFail(t, request(), engine.WorkerMisconfigured)
		r.mustFail(t, request(), engine.WorkerMisconfigured) // now nobody needs to be asked
		if d := time.Since(start); d != 0 {
			t.Errorf("waited %v", d)
		}
		time.Sleep(30 * time.Second)
		r.mustBe(t, "w1", stateInhibited) // time does not help
		r.workers["w1"].plays(tokens(1, 0))
		time.Sleep(3 * time.Second)
		r.mustAnswer(t, request(), "w1")
	})
}

func TestInvalidRequestIsFinal(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		for _, f := range r.workers {
			f.plays(fails(engine.InvalidRequest, 400))
		}
		req := request()
		r.mustFail(t, req, engine.InvalidRequest)
		if len(req.Trace.Attempts) != 1 {
			t.Errorf("%d attempts", len(req.Trace.Attempts))
		}
		r.mustBe(t, "w1", stateReady)
		r.mustBe(t, "w2", stateReady)
	})
}

func TestWaitingForAWorker(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.do(func() { f.down = true })
		f.plays(fails(engine.CannotConnect, 0))
		r.mustFail(t, request(), engine.CannotConnect)
		start := time.Now()
		e := r.mustFail(t, request(), engine.NoWorker)
		if d := time.Since(start); d != 10*time.Second || e.RetryAfter < time.Second {
			t.Errorf("after %v: %#v", d, e)
		}

		// It comes back while a request waits.
		start = time.Now()
		time.AfterFunc(3*time.Second, func() { f.do(func() { f.down, f.play = false, tokens(1, 0) }) })
		r.mustAnswer(t, request(), "w1")
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("answered after %v, one probe interval after its return is 5s", d)
		}

		// A waiting client may leave.
		f.do(func() { f.down, f.play = true, fails(engine.CannotConnect, 0) })
		r.mustFail(t, request(), engine.CannotConnect)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if _, _, e := r.ask(ctx, request()); e.Kind != engine.TimedOut || time.Since(start) != time.Second {
			t.Errorf("%v after %v", e, time.Since(start))
		}
	})
}

func TestUnknownModelWaitsForAWorkerThatServesIt(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		req := request()
		req.Model = "other"
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			r.mustAnswer(t, req, "w1")
		}()
		time.Sleep(time.Second)
		r.reattach(t, "w1", Model{Name: "other", Own: "o"})
		<-answered
	})
}
