package router

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"baton/engine"
)

// spec is the spec of a rig's worker, which is made if it is not there.
func (r *rig) spec(id string) Spec {
	if r.workers[id] == nil {
		r.workers[id] = &fakeWorker{id: id, play: tokens(3, 0), models: []Model{{Name: "m", Own: "own-" + id}}}
	}
	return Spec{ID: id, URL: "http://" + id + ":8000"}
}

// set makes ids the workers and waits until the router has come to rest.
func (r *rig) set(ids ...string) {
	var specs []Spec
	for _, id := range ids {
		specs = append(specs, r.spec(id))
	}
	r.SetWorkers(specs)
	synctest.Wait()
}

// mustHave fails the test unless these are the workers, in this order.
func (r *rig) mustHave(t *testing.T, ids ...string) {
	t.Helper()
	var have []string
	for _, w := range r.Workers() {
		have = append(have, w.ID)
	}
	if !slices.Equal(have, ids) {
		t.Fatalf("workers %v, want %v", have, ids)
	}
}

func TestWorkersComeAndGo(t *testing.T) {
	newRig(t, 2, drainConfig(), func(t *testing.T, r *rig) {
		r.set("w3", "w2")
		r.mustHave(t, "w3", "w2") // nothing ran on w1
		r.mustBe(t, "w3", stateReady)
		r.Drain("w2")
		r.mustAnswer(t, request(), "w3")
		r.set("w2", "w3")
		r.mustHave(t, "w2", "w3")
		r.mustBe(t, "w2", stateDraining) // it was not touched
		if n := r.workers["w2"].count(&r.workers["w2"].attaches); n != 1 {
			t.Errorf("w2 was attached to %d times", n)
		}
		if n := r.log.count("the set of workers has changed"); n != 1 {
			t.Errorf("%d records of one change", n)
		}
		attaches := r.workers["w1"].count(&r.workers["w1"].attaches)
		time.Sleep(time.Hour)
		if n := r.workers["w1"].count(&r.workers["w1"].attaches); n != attaches {
			t.Error("a worker that is gone is still attached to")
		}
		// One that is gone and comes back is a new one: nobody has drained that.
		r.set("w3")
		r.set("w3", "w2")
		r.mustBe(t, "w2", stateReady)
	})
}

// A removed worker is left as a drained one is, and forgotten after its last stream.
func TestRemovalUnderWay(t *testing.T) {
	newRig(t, 2, drainConfig(), func(t *testing.T, r *rig) {
		r.workers["w1"].plays(tokens(100, 100*time.Millisecond)) // 10 s
		r.Drain("w2")
		var mu sync.Mutex
		ends := make(map[string]time.Duration)
		var all sync.WaitGroup
		start := time.Now()
		run := func(name string, req *engine.Request, wanted bool) {
			all.Go(func() {
				_, finish, e := r.ask(t.Context(), req)
				if wanted && (e != nil || finish == "") || !wanted && (e == nil || e.Kind != engine.Drained) {
					t.Errorf("%s: %q, %v", name, finish, e)
				}
				mu.Lock()
				defer mu.Unlock()
				ends[name] = time.Since(start)
			})
		}
		stays := request()
		stays.VocabSize = 0
		run("stays", stays, true)
		run("moves", movable(), false)
		time.Sleep(time.Second)
		r.Undrain("w2")
		r.set("w2")
		r.mustHave(t, "w2", "w1")
		r.mustBe(t, "w1", stateRemoving)
		if w := r.Workers()[1]; w.InFlight != 2 || w.Reason == "" {
			t.Errorf("%+v", w)
		}
		if n := testutil.CollectAndCount(newCollector(r.Router, "test"), "test_worker_state"); n != 2*len(allStates) {
			t.Errorf("%d series of states", n)
		}
		for range 5 {
			r.mustAnswer(t, request(), "w2")
		}
		if _, ok := r.Undrain("w1"); ok {
			t.Error("undrained a worker that is being removed")
		}
		all.Wait()
		if at := ends["moves"]; at < 6*time.Second || at > 6200*time.Millisecond {
			t.Errorf("given up after %v", at)
		}
		if at := ends["stays"]; at < 10*time.Second {
			t.Errorf("a request that cannot be moved ended after %v", at)
		}
		time.Sleep(10 * time.Second) // while the one that moved could come back
		r.mustHave(t, "w2")
		if n := testutil.CollectAndCount(newCollector(r.Router, "test"), "test_worker_state"); n != len(allStates) {
			t.Errorf("%d series of states", n)
		}
	})
}

// A worker that is named again before it is gone is the same as before.
func TestARemovedWorkerIsKeptAfterAll(t *testing.T) {
	newRig(t, 2, drainConfig(), func(t *testing.T, r *rig) {
		r.workers["w1"].plays(tokens(200, 100*time.Millisecond))
		r.Drain("w2")
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.mustAnswer(t, movable(), "w1")
		}()
		time.Sleep(time.Second)
		r.Undrain("w2")
		r.set("w2")
		time.Sleep(4 * time.Second) // its streams may still run
		r.set("w2", "w1")
		r.mustBe(t, "w1", stateReady)
		<-done // where it was, although the drain timeout is long over
		if n := r.workers["w1"].count(&r.workers["w1"].attaches); n != 1 {
			t.Errorf("attached to %d times", n)
		}
		// What an operator said holds, too.
		r.workers["w1"].plays(thenSilent(1))
		r.Drain("w2")
		ctx, cancel := context.WithCancel(t.Context())
		go r.ask(ctx, request())
		synctest.Wait()
		r.Drain("w1")
		r.set("w2")
		r.mustBe(t, "w1", stateRemoving)
		r.set("w1", "w2")
		r.mustBe(t, "w1", stateDraining)
		cancel()
		synctest.Wait()
		r.mustHave(t, "w1", "w2")
	})
}

// A stream that left a removed worker, and that no other one takes, goes on there.
func TestARemovedWorkerTakesBackWhatNobodyTakes(t *testing.T) {
	newRig(t, 2, drainConfig(), func(t *testing.T, r *rig) {
		r.workers["w1"].plays(tokens(100, 100*time.Millisecond))
		r.Drain("w2")
		failed := make(chan *engine.Error)
		go func() {
			_, _, e := r.ask(t.Context(), movable())
			failed <- e
		}()
		time.Sleep(time.Second)
		r.Undrain("w2")
		r.set("w2")
		if e := <-failed; e == nil || e.Kind != engine.Drained {
			t.Fatal(e)
		}
		r.workers["w2"].plays(fails(engine.Overloaded, 429))
		time.Sleep(9 * time.Second) // as long as it may have tried elsewhere
		req := movable()
		req.DrainedFrom, req.Avoid, req.Carried = "w1", []string{"w1"}, 1
		r.mustAnswer(t, req, "w1")
		synctest.Wait()
		time.Sleep(time.Minute)
		r.mustHave(t, "w2")
	})
}

// Another scheme or kind at an address is another worker, which waits for nobody;
// a worker that is named twice is one.
func TestReplacedWorkers(t *testing.T) {
	newRig(t, 1, drainConfig(), func(t *testing.T, r *rig) {
		r.workers["w1"].plays(thenSilent(1))
		ctx, cancel := context.WithCancel(t.Context())
		go r.ask(ctx, request())
		synctest.Wait()
		for _, id := range []string{"w1-2", "w1-3"} {
			r.spec(id)
		}
		secure := Spec{ID: "w1", URL: "https://w1:8000"}
		stated := Spec{ID: "w1", URL: "https://w1:8000", Kind: "fake"}
		r.SetWorkers([]Spec{secure, stated, secure})
		synctest.Wait()
		r.mustHave(t, "w1-2", "w1-3", "w1")
		r.mustBe(t, "w1-2", stateReady)
		r.mustBe(t, "w1", stateRemoving)
		cancel()
		synctest.Wait()
		r.mustHave(t, "w1-2", "w1-3")
		r.SetWorkers([]Spec{stated, {ID: "w1", URL: "http://w1:8000"}})
		synctest.Wait()
		r.mustHave(t, "w1-3", "w1") // an id stays with its worker, and is free after it
	})
}

// Removal waits for nobody who is being asked what it is or how it is.
func TestAWorkerThatDoesNotAnswerIsForgottenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attach := func(ctx context.Context, _ Spec) (*Worker, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		var forgotten []string
		cfg := testConfig
		cfg.Forget = func(id string) { forgotten = append(forgotten, id) }
		r := New([]Spec{{ID: "w1", URL: "http://w1:8000"}}, attach, cfg, discard, noMetrics{}, "test", func(int) int { return 0 })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		start := time.Now()
		r.SetWorkers(nil)
		synctest.Wait()
		if n := len(r.Workers()); n != 0 || time.Since(start) > 0 {
			t.Errorf("%d workers after %v", n, time.Since(start))
		}
		if !slices.Equal(forgotten, []string{"w1"}) {
			t.Errorf("forgotten: %v", forgotten)
		}
		cancel()
		<-done
	})
}

// Before Run, too, the workers may change; those that Run never met are not forgotten.
func TestSetWorkersBeforeRun(t *testing.T) {
	newRig(t, 0, testConfig, func(t *testing.T, r *rig) {
		cfg := testConfig
		cfg.Forget = func(id string) { t.Error("forgotten:", id) }
		other := New([]Spec{r.spec("w1")}, r.attach, cfg, discard, noMetrics{}, "test", func(int) int { return 0 })
		other.SetWorkers([]Spec{r.spec("w2")})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- other.Run(ctx) }()
		synctest.Wait()
		if w := other.Workers(); len(w) != 1 || w[0].ID != "w2" || w[0].State != stateReady {
			t.Errorf("%+v", w)
		}
		cancel()
		<-done
	})
}

// The model of the last worker goes with it. Its requests wait for one that comes,
// and are told that there is none.
func TestTheLastWorkerOfAModel(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.set()
		if models := r.Models(); len(models) != 0 {
			t.Errorf("models %+v", models)
		}
		start := time.Now()
		r.mustFail(t, request(), engine.NoWorker)
		if waited := time.Since(start); waited != 10*time.Second {
			t.Errorf("waited %v", waited)
		}
		go func() {
			time.Sleep(5 * time.Second)
			r.set("w2")
		}()
		r.mustAnswer(t, request(), "w2")
		if waited := time.Since(start); waited != 15*time.Second {
			t.Errorf("waited %v", waited-10*time.Second)
		}
		if models := r.Models(); len(models) != 1 || models[0].Ready != 1 {
			t.Errorf("models %+v", models)
		}
	})
}

// Thousands of changes, with requests, leave nothing behind.
func TestChangesLeaveNothingBehind(t *testing.T) {
	cfg := drainConfig()
	cfg.MoveSpacing = time.Millisecond
	var mu sync.Mutex
	known := make(map[string]int)
	cfg.Forget = func(id string) {
		mu.Lock()
		defer mu.Unlock()
		known[id]++
	}
	newRig(t, 1, cfg, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(tokens(20, 10*time.Millisecond))
		goroutines := runtime.NumGoroutine()
		changes := 3000
		if testing.Short() {
			changes = 300
		}
		var all sync.WaitGroup
		for i := range changes {
			id := fmt.Sprintf("x%d", i)
			r.spec(id)
			r.workers[id].plays(tokens(20, 10*time.Millisecond))
			r.workers[id].models[0].Name = fmt.Sprintf("m%d", i)
			r.set("w1", id)
			for _, model := range []string{"m", fmt.Sprintf("m%d", i)} {
				all.Go(func() {
					req := request()
					req.Model, req.Carried = model, 1
					if _, finish, e := r.ask(t.Context(), req); e != nil || finish == "" {
						t.Errorf("%s: %q, %v", model, finish, e)
					}
				})
			}
			time.Sleep(15 * time.Millisecond)
			if i%7 == 0 {
				r.set("w1") // the next one is new
			}
			if i%5 == 0 {
				r.set("w1", id) // and this one comes back
			}
		}
		r.set("w1")
		all.Wait()
		time.Sleep(time.Minute)
		r.mustHave(t, "w1")
		r.mustAnswer(t, request(), "w1")
		if n := len(known); n != changes {
			t.Errorf("%d workers were forgotten, of %d", n, changes)
		}
		r.mu.Lock()
		if n, m := len(r.table.models), len(r.nextMove); n != 1 || m > 1 {
			t.Errorf("%d models in the table, %d that pace", n, m)
		}
		r.mu.Unlock()
		synctest.Wait()
		if n := runtime.NumGoroutine(); n > goroutines+10 { // those of the tests before may still be ending
			t.Errorf("%d goroutines, %d at first", n, goroutines)
		}
		if n := r.log.count("worker is gone"); n < changes {
			t.Errorf("%d records of workers that are gone", n)
		}
	})
}

func TestListed(t *testing.T) {
	var workers []*worker
	for i := range 12 {
		workers = append(workers, newWorker(Spec{ID: fmt.Sprint(i)}))
	}
	if got := strings.Join(listed(workers), " "); got != "0 1 2 3 4 5 6 7 8 9 and 2 more" {
		t.Error(got)
	}
}
