package router

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
)

func TestAnswer(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		req := request()
		ids, finish, e := r.ask(t.Context(), req)
		if !slices.Equal(ids, []engine.TokenID{0, 1, 2}) || finish != engine.FinishLength || e != nil {
			t.Fatalf("got %v, %q, %v", ids, finish, e)
		}
		sent := r.workers["w1"].requests[0]
		if sent.ID != "q-r000" || sent.Model != "own-w1" {
			t.Errorf("the worker got id %q and model %q", sent.ID, sent.Model)
		}
		if req.ID != "q" || req.Model != "m" {
			t.Error("the request was changed")
		}
		if a := req.Trace.Attempts; len(a) != 1 || a[0].ID != "q-r000" || a[0].WorkerID != "w1" || a[0].Tokens != 3 || a[0].Err != nil {
			t.Errorf("trace %+v", a)
		}
	})
}

func TestNothingIsSentBeforeTheRange(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.Generate(t.Context(), request())
		synctest.Wait()
		if n := r.workers["w1"].asked(); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
	})
}

func TestCandidates(t *testing.T) {
	newRig(t, 3, testConfig, func(t *testing.T, r *rig) {
		r.reattach(t, "w1", Model{Name: "other", Own: "o"})
		r.reattach(t, "w2", Model{Name: "m", Own: "o", ContextLength: 3}) // 3 ids and no room
		r.reattach(t, "w3", Model{Name: "m", Own: "o", ContextLength: 4})
		for range 5 {
			r.mustAnswer(t, request(), "w3")
		}
		if n := r.ContextLength("m"); n != 4 {
			t.Errorf("context length %d", n)
		}
		long := request()
		long.TokenIDs = make([]engine.TokenID, 4)
		if e := r.mustFail(t, long, engine.InvalidRequest); !strings.Contains(e.Message, "4 tokens") {
			t.Errorf("message %q", e.Message)
		}
		r.workers["w3"].do(func() { r.workers["w3"].unsupported = "min_p" })
		// w2 can do the parameter but has no room, so the context is what is wrong.
		r.mustFail(t, request(), engine.InvalidRequest)
		r.workers["w2"].do(func() { r.workers["w2"].unsupported = "min_p" })
		if e := r.mustFail(t, request(), engine.InvalidRequest); e.Param != "min_p" || !strings.Contains(e.Message, "min_p") {
			t.Errorf("error %v with param %q", e, e.Param)
		}
		models := r.Models()
		if len(models) != 2 || models[0].Name != "m" || models[0].Total != 2 || models[0].Ready != 2 || models[1].Name != "other" {
			t.Errorf("models %+v", models)
		}
	})
}

// reattach gives the worker other models by way of a lost connection.
func (r *rig) reattach(t *testing.T, id string, models ...Model) {
	t.Helper()
	f := r.workers[id]
	f.do(func() { f.models = models })
	r.mu.Lock()
	for _, w := range r.Router.workers {
		if w.spec.ID == id {
			r.inhibit(w, &engine.Error{Kind: engine.Disconnected}, w.epoch, time.Now())
		}
	}
	r.mu.Unlock()
	time.Sleep(time.Second)
	synctest.Wait()
	r.mustBe(t, id, stateReady)
}

func TestUnsupportedByOneWorkerOnly(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].unsupported = "logit_bias"
		for range 4 {
			r.mustAnswer(t, request(), "w2")
		}
	})
}

func TestAvoid(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		for range 4 {
			req := request()
			req.Avoid = []string{"w1"}
			r.mustAnswer(t, req, "w2")
		}
		req := request()
		req.Avoid = []string{"w1", "w2"}
		r.mustAnswer(t, req, "") // no other exists
	})
}

// TestPrefer: the preferred worker before all that the policy would choose, while it can be
// asked; and what prefers one is no request that lost its worker, which waits for its turn.
func TestPrefer(t *testing.T) {
	cfg := testConfig
	cfg.MoveSpacing = time.Second
	newRig(t, 3, cfg, func(t *testing.T, r *rig) {
		part := func(worker string) *engine.Request {
			req := request()
			req.TokenIDs, req.Carried, req.Prefer = append(req.TokenIDs, 4), 1, worker
			return req
		}
		start := time.Now()
		for range 4 {
			r.mustAnswer(t, part("w3"), "w3")
		}
		if took := time.Since(start); took >= cfg.MoveSpacing/3 { // between two starts of moved requests on three workers
			t.Errorf("four parts took %v", took)
		}
		req := part("w3")
		req.Avoid = []string{"w3"}
		r.ask(t.Context(), req)
		if at := req.Trace.Last().WorkerID; at == "w3" {
			t.Error("a worker that failed the request is preferred")
		}
		r.ask(t.Context(), part("w9")) // which is not there
	})
}

func TestForeignIDs(t *testing.T) {
	for _, id := range []engine.TokenID{-1, 100} {
		newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
			r.workers["w1"].plays(func(_ context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
				if yield(engine.Delta{TokenIDs: []engine.TokenID{5}}, nil) {
					yield(engine.Delta{TokenIDs: []engine.TokenID{6, id}}, nil)
				}
			})
			ids, _, e := r.ask(t.Context(), request())
			if len(ids) != 1 || e == nil || e.Kind != engine.ProtocolError || e.WorkerID != "w1" {
				t.Errorf("ids %v, error %v", ids, e)
			}
			r.mustBe(t, "w1", stateInhibited)
		})
	}
}

func TestAfterTheFinishNothingCounts(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(func(_ context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
			if yield(engine.Delta{TokenIDs: []engine.TokenID{5}, FinishReason: engine.FinishStop}, nil) {
				time.Sleep(time.Hour) // closes its stream slowly
				yield(engine.Delta{}, &engine.Error{Kind: engine.Disconnected})
			}
		})
		ids, finish, e := r.ask(t.Context(), request())
		if len(ids) != 1 || finish != engine.FinishStop || e != nil {
			t.Errorf("ids %v, finish %q, error %v", ids, finish, e)
		}
		r.mustBe(t, "w1", stateReady)
	})
}

func TestQuietEndIsAnError(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(func(context.Context, *engine.Request, func(engine.Delta, error) bool) {})
		r.mustFail(t, request(), engine.Disconnected)
	})
}

func TestFailureNamesTheWorker(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(thenFails(2, engine.EngineError))
		req := request()
		e := r.mustFail(t, req, engine.EngineError)
		if e.WorkerID != "w1" {
			t.Errorf("worker %q", e.WorkerID)
		}
		if a := req.Trace.Last(); a.Err != e || a.Tokens != 2 {
			t.Errorf("trace %+v", a)
		}
	})
}

func TestLateRefusalIsAFailure(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		for _, f := range r.workers {
			f.plays(thenFails(1, engine.Overloaded))
		}
		r.mustFail(t, request(), engine.EngineError)
	})
}

func TestLeavingConsumerCancelsUpstream(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		ended := false
		r.workers["w1"].plays(func(ctx context.Context, req *engine.Request, yield func(engine.Delta, error) bool) {
			defer func() { ended = true }()
			tokens(100, time.Millisecond)(ctx, req, yield)
		})
		for range r.Generate(t.Context(), request()) {
			break
		}
		if !ended {
			t.Error("the client's loop goes on")
		}
		if w := r.Workers()[0]; w.InFlight != 0 || w.State != stateReady {
			t.Errorf("worker %+v", w)
		}
	})
}

func TestCallersContextIsAskedFirst(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(thenSilent(1)) // reports Disconnected when it is cancelled
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		if _, _, e := r.ask(ctx, request()); e == nil || e.Kind != engine.Cancelled {
			t.Errorf("got %v", e)
		}
		ctx, cancel = context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, _, e := r.ask(ctx, request()); e == nil || e.Kind != engine.TimedOut {
			t.Errorf("got %v", e)
		}
		r.mustBe(t, "w1", stateReady)
	})
}

func TestInFlightReturnsToZero(t *testing.T) {
	newRig(t, 4, testConfig, func(t *testing.T, r *rig) {
		endings := []script{tokens(3, time.Millisecond), thenFails(2, engine.Disconnected), fails(engine.Overloaded, 429),
			thenSilent(1), fails(engine.InvalidRequest, 400), thenFails(1, engine.EngineError), fails(engine.WorkerMisconfigured, 404)}
		for _, f := range r.workers {
			f.plays(func(ctx context.Context, req *engine.Request, yield func(engine.Delta, error) bool) {
				endings[int(req.TokenIDs[0])%len(endings)](ctx, req, yield)
			})
		}
		done := make(chan struct{})
		for i := range 1000 {
			go func() {
				defer func() {
					recover() // of the consumer that panics
					done <- struct{}{}
				}()
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%60)*time.Second)
				defer cancel()
				req := request()
				req.TokenIDs = []engine.TokenID{engine.TokenID(i)}
				for range r.Generate(ctx, req) {
					if i%11 == 0 {
						break
					}
					if i%13 == 0 {
						panic("consumer")
					}
				}
			}()
		}
		for range 1000 {
			<-done
		}
		for _, w := range r.Router.workers {
			if w.inFlight != 0 || len(w.streams) != 0 || w.trial {
				t.Errorf("%s: %d in flight, %d streams, trial %v", w.spec.ID, w.inFlight, len(w.streams), w.trial)
			}
		}
	})
}
