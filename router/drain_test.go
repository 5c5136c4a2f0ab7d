package router

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"baton/engine"
)

func movable() *engine.Request {
	req := request()
	req.VocabSize = 0
	req.Movable = func() bool { return true }
	return req
}

func drainConfig() Config {
	cfg := testConfig
	cfg.DrainTimeout = 5 * time.Second
	return cfg
}

func TestADrainedWorkerGetsNoRequests(t *testing.T) {
	newRig(t, 2, drainConfig(), func(t *testing.T, r *rig) {
		if running, ok := r.Drain("w1"); running != 0 || !ok {
			t.Fatal(running, ok)
		}
		r.mustBe(t, "w1", stateDraining)
		for range 10 {
			r.mustAnswer(t, request(), "w2")
		}
		time.Sleep(time.Minute) // no probe brings it back
		r.mustBe(t, "w1", stateDraining)
		r.Undrain("w1")
		r.mustBe(t, "w1", stateReady)
		if _, ok := r.Drain("nobody"); ok {
			t.Error("drained a worker that is not there")
		}
		if _, ok := r.Undrain("nobody"); ok {
			t.Error("undrained a worker that is not there")
		}
	})
}

// A drain is the operator's word: it outlives the death and the return of the
// worker.
func TestADrainOutlivesARestart(t *testing.T) {
	newRig(t, 2, drainConfig(), func(t *testing.T, r *rig) {
		w := r.workers["w1"]
		r.Drain("w1")
		w.do(func() { w.down = true; w.health = &engine.Error{Kind: engine.CannotConnect} })
		time.Sleep(20 * time.Second)
		w.do(func() { w.down = false; w.health = nil })
		time.Sleep(20 * time.Second)
		r.mustBe(t, "w1", stateDraining)
		r.mustAnswer(t, request(), "w2")
	})
}

// Streams of a drained worker may finish for DrainTimeout, then they are given
// up one by one.
func TestStreamsOfADrainedWorker(t *testing.T) {
	newRig(t, 2, drainConfig(), func(t *testing.T, r *rig) {
		r.workers["w1"].plays(tokens(1000, 10*time.Millisecond))
		r.Drain("w2")
		start := time.Now()
		var mu sync.Mutex
		var ended []time.Duration
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				ids, _, e := r.ask(t.Context(), movable())
				if e == nil || e.Kind != engine.Drained || e.WorkerID != "w1" {
					t.Errorf("%d ids, %v", len(ids), e)
				}
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, time.Since(start))
			})
		}
		time.Sleep(time.Second)
		r.Undrain("w2")
		if running, _ := r.Drain("w1"); running != 4 {
			t.Errorf("%d run", running)
		}
		all.Wait()
		for i, at := range ended {
			if at < 6*time.Second || at > 6200*time.Millisecond {
				t.Errorf("given up after %v", at)
			}
			if i > 0 && at-ended[i-1] < drainSpacing {
				t.Errorf("two given up within %v", at-ended[i-1])
			}
		}
		r.Undrain("w1")
		r.mustBe(t, "w1", stateReady) // a drain is no failure
	})
}

// Streams that have no token yet are given up too, within a second of the time, and
// those that must not be moved are not.
func TestAStreamOfADrainedWorkerBeforeItsFirstToken(t *testing.T) {
	const stay = 2
	newRig(t, 2, drainConfig(), func(t *testing.T, r *rig) {
		r.workers["w1"].plays(tokens(2, 15*time.Second))
		r.Drain("w2")
		start := time.Now()
		var mu sync.Mutex
		var ended []time.Duration
		var all sync.WaitGroup
		for i := range 20 + stay {
			req := movable()
			if i < stay {
				req.Movable = func() bool { return false }
			}
			all.Go(func() {
				ids, _, e := r.ask(t.Context(), req)
				mu.Lock()
				defer mu.Unlock()
				if e == nil {
					ended = append(ended, 0)
					return
				}
				if e.Kind != engine.Drained || len(ids) > 0 {
					t.Errorf("%d ids, %v", len(ids), e)
				}
				ended = append(ended, time.Since(start))
			})
		}
		time.Sleep(time.Second)
		r.Undrain("w2")
		r.Drain("w1")
		all.Wait()
		slices.Sort(ended)
		if len(ended) != 20+stay || ended[stay-1] != 0 || ended[stay] == 0 {
			t.Fatalf("%d moved: %v", len(ended)-stay, ended)
		}
		for i, at := range ended[stay:] {
			if at < 6*time.Second || at > 7500*time.Millisecond {
				t.Errorf("given up after %v", at)
			}
			if i > 0 && at-ended[stay+i-1] < drainSpacing {
				t.Errorf("two given up within %v", at-ended[stay+i-1])
			}
		}
		r.Undrain("w1")
		r.mustBe(t, "w1", stateReady)
	})
}

// A stream that gets its first token just when it is given up goes either way, but
// not both (run it with -race).
func TestTheFirstTokenOfADrainedWorker(t *testing.T) {
	for offset := range 20 {
		newRig(t, 2, drainConfig(), func(t *testing.T, r *rig) {
			r.workers["w1"].plays(tokens(2, 6*time.Second+time.Duration(offset-10)))
			r.Drain("w2")
			req, n := movable(), 0
			req.Movable = func() bool { return n == 0 } // with a token it is too long, say
			done := make(chan struct{})
			go func() {
				defer close(done)
				for d, err := range r.Generate(t.Context(), req) {
					if err != nil && n > 0 {
						t.Errorf("after %d tokens: %v", n, err)
					}
					n += len(d.TokenIDs)
				}
			}()
			time.Sleep(time.Second)
			r.Undrain("w2")
			r.Drain("w1")
			<-done
		})
	}
}

// What cannot go on elsewhere runs to its end.
func TestADrainBreaksNothing(t *testing.T) {
	for _, c := range []struct {
		name    string
		workers int
		req     func() *engine.Request
		change  func(r *rig)
	}{
		{"no other worker", 1, movable, func(*rig) {}},
		{"the other one is drained too", 2, movable, func(r *rig) { r.Drain("w2") }},
		{"the other one cannot do it", 2, movable, func(r *rig) { w := r.workers["w2"]; w.do(func() { w.unsupported = "x" }) }},
		{"nobody would carry it on", 2, func() *engine.Request {
			req := movable()
			req.Movable = nil
			return req
		}, func(*rig) {}},
		{"it must not be moved any more", 2, func() *engine.Request {
			req := movable()
			req.Movable = func() bool { return false }
			return req
		}, func(*rig) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			newRig(t, c.workers, drainConfig(), func(t *testing.T, r *rig) {
				r.workers["w1"].plays(tokens(2000, 10*time.Millisecond))
				if c.workers == 2 {
					r.Drain("w2")
				}
				done := make(chan int)
				go func() {
					ids, finish, e := r.ask(t.Context(), c.req())
					if e != nil || finish == "" {
						t.Error(finish, e)
					}
					done <- len(ids)
				}()
				time.Sleep(time.Second)
				if c.workers == 2 {
					r.Undrain("w2")
				}
				c.change(r)
				r.Drain("w1")
				if n := <-done; n != 2000 {
					t.Errorf("%d tokens", n)
				}
			})
		})
	}
}

// A stream that was given up because another worker was there goes on where it
// was if that one does not take it after all, and then to its end.
func TestADrainedWorkerTakesBackWhatNobodyTakes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(r *rig)
	}{
		{"the other one is busy", func(r *rig) { r.workers["w2"].plays(fails(engine.Overloaded, 429)) }},
		{"the other one is set up wrongly", func(r *rig) { r.workers["w2"].plays(fails(engine.WorkerMisconfigured, 401)) }},
		{"the other one is drained meanwhile", func(r *rig) { r.Drain("w2") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			newRig(t, 2, drainConfig(), func(t *testing.T, r *rig) {
				r.workers["w1"].plays(tokens(200, 100*time.Millisecond))
				r.Drain("w1")
				c.change(r)
				time.Sleep(10 * time.Second) // its streams may no longer run
				req := movable()
				req.DrainedFrom, req.Avoid, req.Carried = "w1", []string{"w1"}, 1
				start := time.Now()
				r.mustAnswer(t, req, "w1")
				attempts := req.Trace.Attempts
				if last := attempts[len(attempts)-1]; last.Tokens != 200 || last.Start.Sub(start) > time.Second {
					t.Errorf("%d tokens, begun after %v", last.Tokens, last.Start.Sub(start))
				}
			})
		})
	}
	// A thought that ran to its end there is of no use without the answer behind it.
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprintf("the second part of an answer, of %d drained workers", workers), func(t *testing.T) {
			newRig(t, workers, drainConfig(), func(t *testing.T, r *rig) {
				for id := range r.workers {
					r.Drain(id)
				}
				req := movable()
				req.Prefer, req.Carried = "w1", 5
				start := time.Now()
				if r.mustAnswer(t, req, "w1"); time.Since(start) > time.Second {
					t.Errorf("after %v", time.Since(start))
				}
			})
		})
	}
	t.Run("a new request is none of them", func(t *testing.T) {
		newRig(t, 1, drainConfig(), func(t *testing.T, r *rig) {
			r.Drain("w1")
			r.mustFail(t, movable(), engine.NoWorker)
		})
	})
}

// A worker that failed, and has not answered since, is no place to go on.
func TestADrainTrustsNoSuspect(t *testing.T) {
	cfg := drainConfig()
	cfg.HealthInterval = 0
	newRig(t, 2, cfg, func(t *testing.T, r *rig) {
		r.Drain("w1")
		r.workers["w2"].plays(fails(engine.CannotConnect, 0))
		r.mustFail(t, request(), engine.CannotConnect)
		r.Undrain("w1")
		r.workers["w1"].plays(tokens(300, 100*time.Millisecond))
		r.Drain("w2")
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.mustAnswer(t, movable(), "w1")
		}()
		time.Sleep(time.Second)
		r.Undrain("w2")
		time.Sleep(10 * time.Second)
		r.mustBe(t, "w2", stateSuspect)
		r.Drain("w1")
		<-done
	})
}

// A crowd that spacing would hold up for long starts closer together.
func TestACrowdDoesNotWaitLong(t *testing.T) {
	cfg := testConfig
	cfg.MoveSpacing = 20 * time.Millisecond
	newRig(t, 2, cfg, func(t *testing.T, r *rig) {
		r.rnd = rand.New(rand.NewPCG(1, 2)).IntN
		const crowd = 1000 // 20 s apart
		now := time.Now()
		early, last := 0, time.Duration(0)
		r.mu.Lock()
		defer r.mu.Unlock()
		for range crowd {
			wait := r.pace("m", now, 1).Sub(now)
			last = max(last, wait)
			if wait < maxMoveWait/2 {
				early++
			}
		}
		if last > maxMoveWait || last < maxMoveWait*9/10 {
			t.Errorf("the last one waits %v", last)
		}
		if early < crowd/3 || early > crowd*2/3 {
			t.Errorf("%d of %d start in the first half", early, crowd)
		}
		if next := r.pace("m", now.Add(2*maxMoveWait), 1).Sub(now); next != 2*maxMoveWait {
			t.Errorf("a lone one, later, waits %v", next-2*maxMoveWait)
		}
	})
}

func TestMovedRequestsAreSpread(t *testing.T) {
	cfg := testConfig
	cfg.MoveSpacing = 20 * time.Millisecond
	newRig(t, 5, cfg, func(t *testing.T, r *rig) {
		moved := func() *engine.Request {
			req := request()
			req.Avoid = []string{"w1"}
			req.TokenIDs, req.Carried = append(req.TokenIDs, 4), 1
			return req
		}
		for id := range r.workers {
			r.workers[id].plays(tokens(100, 100*time.Millisecond))
		}
		start := time.Now()
		lone := moved()
		r.ask(t.Context(), lone)
		if at := lone.Trace.Attempts[0].Start.Sub(start); at != 0 {
			t.Errorf("a lone stream started after %v", at)
		}
		start = time.Now()
		var mu sync.Mutex
		on := map[string]int{}
		var last time.Duration
		var all sync.WaitGroup
		for range 40 {
			all.Go(func() {
				req := moved()
				r.ask(t.Context(), req)
				mu.Lock()
				defer mu.Unlock()
				on[req.Trace.Attempts[0].WorkerID]++
				last = max(last, req.Trace.Attempts[0].Start.Sub(start))
			})
		}
		all.Wait()
		for id, n := range on {
			if n > 13 || id == "w1" {
				t.Errorf("%s got %d of 40 streams", id, n)
			}
		}
		if last < 150*time.Millisecond || last > 250*time.Millisecond {
			t.Errorf("the last one started after %v", last)
		}
	})
}

func TestModelsDoNotWaitForEachOther(t *testing.T) {
	cfg := testConfig
	cfg.MoveSpacing = 20 * time.Millisecond
	newRig(t, 1, cfg, func(t *testing.T, r *rig) {
		now := time.Now()
		for _, want := range []struct {
			model string
			after time.Duration
		}{{"a", 0}, {"a", 10 * time.Millisecond}, {"a", 20 * time.Millisecond}, {"b", 0}} {
			if after := r.pace(want.model, now, 2).Sub(now); after != want.after {
				t.Errorf("model %s starts after %v, want %v", want.model, after, want.after)
			}
		}
	})
}

// A death counts against a request only if the worker is really gone, and the
// ones before it are.
func TestGone(t *testing.T) {
	for _, c := range []struct {
		name   string
		down   []string
		kind   engine.Kind
		tokens int
		gone   bool
	}{
		{"both are gone", []string{"w1", "w2"}, engine.Disconnected, 0, true},
		{"this one lives", []string{"w1"}, engine.Disconnected, 0, false},
		{"the other one lives", []string{"w2"}, engine.Disconnected, 0, false},
		{"the engine said so", []string{"w1"}, engine.EngineShutdown, 0, true},
		{"there was a token", []string{"w1", "w2"}, engine.Disconnected, 1, false},
		{"another failure", []string{"w1", "w2"}, engine.EngineError, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			newRig(t, 2, passive(), func(t *testing.T, r *rig) {
				r.workers["w2"].plays(thenFails(c.tokens, c.kind))
				r.Drain("w1")
				for _, id := range c.down {
					w := r.workers[id]
					w.do(func() { w.down = true })
				}
				req := request()
				req.Suspects = []string{"w1"}
				e := r.mustFail(t, req, c.kind)
				if e.Culprit != c.gone {
					t.Errorf("culprit: %v", e.Culprit)
				}
				for _, w := range r.workers {
					w.do(func() { w.down = false })
				}
			})
		})
	}
	t.Run("nobody looks without suspects", func(t *testing.T) {
		newRig(t, 1, passive(), func(t *testing.T, r *rig) {
			r.workers["w1"].plays(thenFails(0, engine.Disconnected))
			r.mustFail(t, request(), engine.Disconnected)
			if n := r.workers["w1"].count(&r.workers["w1"].dials); n != 0 {
				t.Errorf("%d looks", n)
			}
		})
	})
}
