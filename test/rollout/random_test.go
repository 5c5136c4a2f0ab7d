package rollout

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/engine"
	"baton/engine/sim"
	"baton/migration"
	"baton/router"
)

var seeds = flag.Int("seeds", 200, "how many random rollouts to run")

// Whatever is added, taken away and taken back, and when: with a limit of 1 every
// answer is exact, no request fails, and no worker that is gone is left in the router
// or runs anything; also if new workers refuse their first requests.
func TestRandomChangesOfTheSet(t *testing.T) {
	moved := 0
	for seed := range *seeds {
		synctest.Test(t, func(t *testing.T) { moved += randomRollout(t, uint64(seed)) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if moved < *seeds {
		t.Errorf("%d moves in %d rollouts: that tests little", moved, *seeds)
	}
	t.Logf("%d moves in %d rollouts", moved, *seeds)
}

// randomRollout runs one seed and returns how often requests moved.
func randomRollout(t *testing.T, seed uint64) (moved int) {
	r := rand.New(rand.NewPCG(seed, 1))
	kind := []string{sim.KindVLLM, sim.KindLlamaCPP}[r.IntN(2)]
	worker := sim.Config{Kind: kind, MeanLength: -1, Prefill: time.Duration(r.IntN(60)) * time.Millisecond, Gap: time.Duration(1+r.IntN(15)) * time.Millisecond}
	busy := sim.Fault{Kind: sim.FaultStatus, Status: []int{429, 503}[r.IntN(2)], Nth: 1, Times: r.IntN(4)} // of each new worker
	var mu sync.Mutex                                                                                      // guards what follows
	there := make(map[string]*sim.Engine)
	var gone []*sim.Engine
	attach := func(_ context.Context, s router.Spec) (*router.Worker, error) {
		mu.Lock()
		defer mu.Unlock()
		if there[s.ID] == nil {
			c := worker
			if c.ID = s.ID; busy.Times > 0 {
				c.Faults = []sim.Fault{busy}
			}
			there[s.ID] = sim.New(c)
		}
		return &router.Worker{Client: there[s.ID], Models: []router.Model{{Name: "m", Own: "m", ContextLength: sim.ModelContextLength}}}, nil
	}
	forget := func(id string) {
		mu.Lock()
		defer mu.Unlock()
		if e := there[id]; e != nil {
			if n := e.Stats().Running; n != 0 {
				t.Errorf("worker %s was forgotten with %d requests", id, n)
			}
			gone = append(gone, e)
			delete(there, id)
		}
	}
	log, reg := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	workers := router.New(nil, attach, router.Config{
		StallTimeout: 5 * time.Second, FirstTokenTimeout: 5 * time.Second, WorkerWaitTimeout: time.Minute, InhibitDuration: time.Second,
		HealthInterval: time.Duration(r.IntN(2)) * time.Second, MoveSpacing: time.Duration(r.IntN(5)) * time.Millisecond,
		DrainTimeout: time.Duration(r.IntN(3)) * 100 * time.Millisecond, Forget: forget,
	}, log, reg, "test", func(n int) int { return 0 })
	tokens := migration.New(workers, migration.Config{Limit: 1}, log, reg, "test")
	ctx, cancel := context.WithCancel(t.Context())
	running := make(chan error, 1)
	go func() { running <- workers.Run(ctx) }()

	spec := func(i int) router.Spec {
		id := fmt.Sprintf("w%d:80", i)
		return router.Spec{ID: id, URL: []string{"http://", "https://"}[i%2] + id, Kind: []string{"", kind}[r.IntN(4)/3]}
	}
	var requests, changes sync.WaitGroup
	reference := sim.New(worker)
	for i := range 12 {
		length, start := 1+r.IntN(150), time.Duration(r.IntN(1500))*time.Millisecond
		requests.Go(func() {
			req := func() *engine.Request {
				return &engine.Request{ID: fmt.Sprint("q", i), Model: "m", TokenIDs: []engine.TokenID{engine.TokenID(100 + i), 7}, VocabSize: sim.ModelVocabSize(),
					Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1}, Stop: engine.StopConditions{MaxTokens: length}, Trace: new(engine.Trace)}
			}
			want, err := generate(t.Context(), reference, req())
			if err != nil || len(want) != length {
				t.Errorf("the reference fails: %d ids, %v", len(want), err)
			}
			time.Sleep(start)
			asked := req()
			got, err := generate(t.Context(), tokens, asked)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("request %d: %d ids of %d, %v", i, len(got), len(want), err)
			}
			mu.Lock()
			defer mu.Unlock()
			moved += asked.Trace.Migrations()
		})
	}
	over := make(chan struct{})
	changes.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(time.Duration(r.IntN(250)) * time.Millisecond):
			}
			var specs []router.Spec
			for _, i := range r.Perm(6)[:r.IntN(7)] {
				specs = append(specs, spec(i))
			}
			workers.SetWorkers(specs)
		}
	})
	time.Sleep(3 * time.Second)
	close(over)
	changes.Wait()
	workers.SetWorkers([]router.Spec{{ID: "last:80", URL: "http://last:80"}})
	requests.Wait()
	time.Sleep(2 * time.Minute) // until what was removed is gone
	if all := workers.Workers(); len(all) != 1 || all[0].ID != "last:80" || all[0].State != "ready" {
		t.Errorf("workers at the end: %+v", all)
	}
	cancel()
	if err := <-running; err != nil {
		t.Error(err)
	}
	for _, e := range gone {
		if n := e.Stats().Running; n != 0 {
			t.Errorf("a worker that is gone runs %d requests", n)
		}
	}
	return moved
}

// generate returns the ids of a whole answer.
func generate(ctx context.Context, e engine.Engine, req *engine.Request) (ids []engine.TokenID, err error) {
	finish := engine.FinishReason("")
	for d, err := range e.Generate(ctx, req) {
		if err != nil {
			return ids, err
		}
		ids, finish = append(ids, d.TokenIDs...), d.FinishReason
	}
	if finish != engine.FinishLength {
		return ids, fmt.Errorf("finish reason %q", finish)
	}
	return ids, nil
}
