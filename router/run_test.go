package router

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"baton/engine"
)

var discard = slog.New(slog.DiscardHandler)

// noMetrics is a registry that registers nothing.
type noMetrics struct{ prometheus.Registerer }

func (noMetrics) MustRegister(...prometheus.Collector) {}

func TestAttachIsRetriedAndLoggedOnce(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		for _, f := range r.workers {
			f.do(func() { f.down = true })
			r.lose(f.id)
		}
		time.Sleep(time.Minute)
		f := r.workers["w1"]
		if n := f.count(&f.attaches); n < 30 || n > 40 {
			t.Errorf("%d calls of Attach in a minute at an interval of 2 s", n)
		}
		if n := r.log.count("worker is lost; baton keeps trying"); n != 2 {
			t.Errorf("logged %d times for two workers", n)
		}
		r.workers["w2"].do(func() { r.workers["w2"].down = false })
		time.Sleep(2 * time.Second)
		r.mustAnswer(t, request(), "w2")
	})
}

// lose makes the router believe that the connection to a worker was lost.
func (r *rig) lose(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.Router.workers {
		if w.spec.ID == id {
			r.inhibit(w, &engine.Error{Kind: engine.Disconnected}, w.epoch, time.Now())
		}
	}
}

// An unreachable worker stops neither the start nor the others.
func TestStartingWorker(t *testing.T) {
	newRig(t, 0, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"] = &fakeWorker{id: "w1", play: tokens(1, 0), models: []Model{{Name: "m", Own: "x", ContextLength: 9}}, down: true}
		other := New([]Spec{{ID: "w1", URL: "http://w1:8000"}}, r.attach, testConfig, discard, noMetrics{}, "test", func(int) int { return 0 })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- other.Run(ctx) }()
		time.Sleep(time.Minute)
		if w := other.Workers()[0]; w.State != stateStarting || w.Reason != "connection refused" || w.Kind != "" {
			t.Errorf("%+v", w)
		}
		if len(other.Models()) != 0 {
			t.Errorf("models %+v", other.Models())
		}
		// Whoever waited in vain for a model is told why its worker is not there.
		for _, err := range other.Generate(t.Context(), request()) {
			if !strings.HasSuffix(err.Error(), "; w1: connection refused") {
				t.Errorf("the failure does not say why: %v", err)
			}
		}
		r.workers["w1"].do(func() { r.workers["w1"].down = false })
		time.Sleep(2 * time.Second)
		if w := other.Workers()[0]; w.State != stateReady || w.Reason != "" || w.Kind != "fake" || len(w.Models) != 1 {
			t.Errorf("%+v", w)
		}
		if m := other.Models(); len(m) != 1 || m[0].Ready != 1 || m[0].ContextLength != 9 || m[0].Since.IsZero() {
			t.Errorf("models %+v", m)
		}
		cancel()
		<-done
	})
}

func TestHealthOfIdleWorkers(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		const interval = 2100 * time.Millisecond
		f := r.workers["w1"]
		f.do(func() { f.down, f.health = true, &engine.Error{Kind: engine.CannotConnect} })
		time.Sleep(interval)
		r.mustBe(t, "w1", stateInhibited)
		f.do(func() { f.down, f.health = false, nil })
		time.Sleep(interval)
		r.mustBe(t, "w1", stateReady)

		// One failure of another kind is an accident, two are not.
		f.do(func() { f.health = &engine.Error{Kind: engine.EngineError, Status: 500} })
		time.Sleep(2 * time.Second)
		r.mustBe(t, "w1", stateReady)
		time.Sleep(interval)
		r.mustBe(t, "w1", stateInhibited)
	})
}

// A worker that is too busy to answer probes while it streams is not dead.
func TestBusyIsNotDead(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.do(func() {
			f.play, f.health = tokens(40, 500*time.Millisecond), &engine.Error{Kind: engine.ConnectionTimeout}
		})
		r.mustAnswer(t, request(), "w1")
		r.mustBe(t, "w1", stateReady)
	})
}

func TestPassiveMeansNoProbes(t *testing.T) {
	newRig(t, 1, passive(), func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.do(func() { f.health = &engine.Error{Kind: engine.CannotConnect} })
		time.Sleep(time.Hour)
		r.mustBe(t, "w1", stateReady)
	})
}

func TestMetrics(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(thenSilent(1))
		r.mustFail(t, request(), engine.Stalled)
		want := `
# HELP test_router_workers Workers by state.
# TYPE test_router_workers gauge
test_router_workers{state="draining"} 0
test_router_workers{state="inhibited"} 1
test_router_workers{state="ready"} 1
test_router_workers{state="removing"} 0
test_router_workers{state="starting"} 0
test_router_workers{state="suspect"} 0
# HELP test_worker_state 1 for the state that the worker is in, else 0.
# TYPE test_worker_state gauge
test_worker_state{state="draining",worker="w1"} 0
test_worker_state{state="draining",worker="w2"} 0
test_worker_state{state="inhibited",worker="w1"} 1
test_worker_state{state="inhibited",worker="w2"} 0
test_worker_state{state="ready",worker="w1"} 0
test_worker_state{state="ready",worker="w2"} 1
test_worker_state{state="removing",worker="w1"} 0
test_worker_state{state="removing",worker="w2"} 0
test_worker_state{state="starting",worker="w1"} 0
test_worker_state{state="starting",worker="w2"} 0
test_worker_state{state="suspect",worker="w1"} 0
test_worker_state{state="suspect",worker="w2"} 0
`
		if err := testutil.GatherAndCompare(r.reg, strings.NewReader(want), "test_router_workers", "test_worker_state"); err != nil {
			t.Error(err)
		}
		if n, err := testutil.GatherAndCount(r.reg, "test_worker_probe_total"); n != 4 || err != nil {
			t.Errorf("%d probe series, %v", n, err)
		}
		r.mu.Lock()
		good := r.Router.workers[1].probesGood
		r.mu.Unlock()
		if good < 10 {
			t.Errorf("%d good probes of w2 in 31 s", good)
		}
	})
}

// A worker that was restarted as something else, quickly and while no request
// ran there, answers every probe of its health as before.
func TestQuietRestartIsNoticed(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.do(func() { f.models = []Model{{Name: "m", Own: "own-w1", ContextLength: 4}} })
		time.Sleep(looksPerQuestion * 2 * testConfig.HealthInterval)
		if m := r.Models(); len(m) != 1 || m[0].ContextLength != 4 {
			t.Errorf("models %+v", m)
		}
		r.mustAnswer(t, request(), "w1")
		time.Sleep(looksPerQuestion * 10 * testConfig.HealthInterval)
		f.do(func() { f.version = "2" })
		time.Sleep(looksPerQuestion * 10 * testConfig.HealthInterval)
		if n, q := f.count(&f.attaches), f.count(&f.questions); n != 3 || q < 10 || q > 24 {
			t.Errorf("attached %d times, asked %d times within %d looks", n, q, 22*looksPerQuestion)
		}
	})
}

// After a single bad look the worker is asked what it is without waiting.
func TestRestartBetweenTwoLooksIsNoticed(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		time.Sleep(time.Second)
		f.do(func() { f.health = &engine.Error{Kind: engine.Overloaded, Status: 503} })
		time.Sleep(testConfig.HealthInterval)
		f.do(func() { f.health, f.models = nil, []Model{{Name: "other", Own: "o"}} })
		time.Sleep(testConfig.HealthInterval)
		if m := r.Models(); len(m) != 1 || m[0].Name != "other" {
			t.Errorf("models %+v", m)
		}
	})
}

// A worker that turns out to be none that can be used is kept out although it
// answers, and comes back when it can be.
func TestUnusableReplacementIsKeptOut(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(tokens(100, time.Second))
		go r.ask(t.Context(), request()) // it runs all the time
		synctest.Wait()
		f.do(func() { f.down, f.version = true, "2" }) // attach fails, health does not
		time.Sleep(looksPerQuestion * 2 * testConfig.HealthInterval)
		r.mustBe(t, "w1", stateInhibited)
		for range 3 {
			r.mustAnswer(t, request(), "w2")
		}
		f.do(func() { f.down, f.play = false, tokens(1, 0) })
		time.Sleep(2 * testConfig.HealthInterval)
		r.mustBe(t, "w1", stateReady)
		time.Sleep(2 * time.Minute)
	})
}

// A worker comes back from an inhibition as what it is then.
func TestInhibitedWorkerIsAskedWhatItIs(t *testing.T) {
	for _, kind := range []engine.Kind{engine.Stalled, engine.EngineError, engine.ProtocolError, engine.WorkerMisconfigured} {
		newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
			f := r.workers["w1"]
			f.plays(thenFails(1, kind))
			r.ask(t.Context(), request())
			r.mustBe(t, "w1", stateInhibited)
			f.do(func() {
				f.models = []Model{{Name: "m", Own: "own-w1", ContextLength: 3}} // no room for the request
				f.play = tokens(1, 0)
			})
			time.Sleep(2 * testConfig.HealthInterval)
			r.mustBe(t, "w1", stateReady)
			for range 3 {
				r.mustAnswer(t, request(), "w2")
			}
		})
	}
}

// A worker that says 404 to every generation has another name for its model now.
func TestRenamedModelIsLearned(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.do(func() {
			f.models = []Model{{Name: "m", Own: "new"}}
			f.play = func(ctx context.Context, req *engine.Request, yield func(engine.Delta, error) bool) {
				if req.Model != "new" {
					fails(engine.WorkerMisconfigured, 404)(ctx, req, yield)
					return
				}
				tokens(1, 0)(ctx, req, yield)
			}
		})
		r.mustFail(t, request(), engine.WorkerMisconfigured)
		time.Sleep(3 * testConfig.HealthInterval)
		r.mustAnswer(t, request(), "w1")
	})
}
