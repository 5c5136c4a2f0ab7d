package router

import (
	"sync"
	"testing"
	"time"

	"baton/engine"
)

// afterLosses is a request whose workers were lost.
func afterLosses(cautious bool, suspects ...string) *engine.Request {
	req := request()
	req.Avoid, req.Suspects, req.Cautious = suspects, suspects, cautious
	return req
}

// start begins a request and returns what its error, or nil, is sent to.
func (r *rig) start(t *testing.T, req *engine.Request) <-chan *engine.Error {
	t.Helper()
	done := make(chan *engine.Error, 1)
	go func() {
		_, _, e := r.ask(t.Context(), req)
		done <- e
	}()
	return done
}

func startOf(req *engine.Request) (worker string, at time.Time) {
	a := req.Trace.Attempts[0]
	return a.WorkerID, a.Start
}

func TestACautiousRequestRunsApart(t *testing.T) {
	const prefill = 700 * time.Millisecond
	for _, c := range []struct {
		name    string
		workers int
		prefill time.Duration
		others  int // requests that lost the same worker, and had a token there
		req     *engine.Request
		after   time.Duration
		kind    engine.Kind // of its error; 0 = it is answered
	}{
		{"alone it lets others start first", 1, prefill, 0, afterLosses(true, "w0"), cautionGrace, 0},
		{"without caution it starts at once", 1, prefill, 2, afterLosses(false, "w0"), 0, 0},
		{"it waits until the others are proven", 2, prefill, 4, afterLosses(true, "w0"), prefill, 0},
		{"a worker is free of them", 2, prefill, 1, afterLosses(true, "w0"), cautionGrace, 0},
		{"its patience is bounded", 2, 20 * time.Second, 4, afterLosses(true, "w0"), maxCaution, 0},
		{"after two losses it waits as long as for a worker", 2, 5 * time.Second, 4, afterLosses(true, "w0", "w9"), 5 * time.Second, 0},
		{"and is not tried with others", 2, 20 * time.Second, 4, afterLosses(true, "w0", "w9"), 0, engine.NoWorker},
	} {
		t.Run(c.name, func(t *testing.T) {
			newRig(t, c.workers, testConfig, func(t *testing.T, r *rig) {
				for _, w := range r.workers {
					w.plays(tokens(2, c.prefill))
				}
				begun := time.Now()
				var all sync.WaitGroup
				for range c.others {
					all.Go(func() { r.ask(t.Context(), afterLosses(false, "w0")) })
				}
				time.Sleep(time.Millisecond)
				if c.kind != 0 {
					r.mustFail(t, c.req, c.kind)
					if took := time.Since(begun).Round(time.Second); took != testConfig.WorkerWaitTimeout {
						t.Errorf("it waited %v", took)
					}
				} else {
					r.mustAnswer(t, c.req, "")
					if _, at := startOf(c.req); at.Sub(begun).Round(10*time.Millisecond) != c.after {
						t.Errorf("it started after %v, want %v", at.Sub(begun), c.after)
					}
				}
				all.Wait()
			})
		})
	}
}

// Nobody joins a cautious request, as long as another worker is there.
func TestOthersKeepApartFromACautiousRequest(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		for _, w := range r.workers {
			w.plays(tokens(2, time.Second))
		}
		cautious := afterLosses(true, "w0")
		done := r.start(t, cautious)
		time.Sleep(2 * cautionGrace)
		place := cautious.Trace.Progress().WorkerID
		var late, fresh []*engine.Request
		var all sync.WaitGroup
		for range 4 {
			late, fresh = append(late, afterLosses(false, "w0")), append(fresh, request())
		}
		for _, req := range append(late, fresh...) {
			all.Go(func() { r.ask(t.Context(), req) })
		}
		all.Wait()
		<-done
		for _, req := range late {
			if where, _ := startOf(req); where == place {
				t.Error("a request that lost its worker joined the cautious one")
			}
		}
		joined := 0
		for _, req := range fresh {
			if where, _ := startOf(req); where == place {
				joined++
			}
		}
		if joined == 0 {
			t.Error("requests that lost no worker keep away too")
		}
	})
}

// Only who was alone in doubt is to blame for a death.
func TestCulprit(t *testing.T) {
	for _, c := range []struct {
		name     string
		others   []*engine.Request // on the same worker
		prefill  time.Duration     // theirs
		culprit  bool
		shared   bool
		survives bool // the worker does
	}{
		{"nobody else was there", nil, 0, true, false, false},
		{"another one had lost its worker too", []*engine.Request{afterLosses(false, "w0")}, time.Hour, false, true, false},
		{"that one had a token by then", []*engine.Request{afterLosses(false, "w0")}, time.Second, true, false, false},
		{"others had lost nothing", []*engine.Request{request(), request()}, time.Hour, true, false, false},
		{"the worker is not dead", []*engine.Request{afterLosses(false, "w0")}, time.Hour, false, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := passive()
			cfg.FirstTokenTimeout, cfg.StallTimeout = 0, 0
			newRig(t, 1, cfg, func(t *testing.T, r *rig) {
				w := r.workers["w1"]
				dies := make(chan struct{})
				w.plays(dying(dies, c.prefill))
				var all sync.WaitGroup
				for _, req := range c.others {
					all.Go(func() { r.ask(t.Context(), req) })
				}
				time.Sleep(time.Minute)
				w.plays(dying(dies, time.Hour))
				done := r.start(t, afterLosses(false, "w0"))
				time.Sleep(time.Second)
				w.do(func() { w.down = !c.survives })
				close(dies)
				if e := <-done; e.Culprit != c.culprit || e.Shared != c.shared {
					t.Errorf("culprit %v, shared %v", e.Culprit, e.Shared)
				}
				all.Wait()
				w.do(func() { w.down = false })
			})
		})
	}
}

// A loss is shared if others ran there.
func TestSharedLoss(t *testing.T) {
	for n := range 3 {
		newRig(t, 1, passive(), func(t *testing.T, r *rig) {
			dies := make(chan struct{})
			r.workers["w1"].plays(dying(dies, time.Hour))
			var ends []<-chan *engine.Error
			for range n + 1 {
				ends = append(ends, r.start(t, request()))
			}
			time.Sleep(time.Millisecond)
			close(dies)
			for _, end := range ends {
				if e := <-end; e.Shared != (n > 0) {
					t.Errorf("of %d: shared %v", n+1, e.Shared)
				}
			}
		})
	}
}
