package simulation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/backend"
	"baton/engine"
	"baton/engine/sim"
	"baton/migration"
	"baton/model"
	"baton/preprocess"
	"baton/router"
	"baton/test/harness"
)

var (
	oneSeed = flag.Uint64("seed", 0, "run only this world, and tell its story")
	seeds   = flag.Int("seeds", 1000, "how many worlds to run")
)

var models *model.Set

func TestMain(m *testing.M) {
	flag.Parse()
	var remove func()
	var err error
	if models, remove, err = harness.SimModels(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	remove()
	os.Exit(code)
}

// A result is what a client gets of one choice.
type result struct {
	text   string
	ids    []engine.TokenID
	finish engine.FinishReason
	tokens int
	err    *engine.Error
	left   bool
	trace  *engine.Trace
}

// runText runs a world's request through the pipeline below the server.
func runText(t *testing.T, w *World) []result {
	t.Helper()
	var results []result
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		fleet := map[string]*sim.Engine{}
		var specs []router.Spec
		for _, c := range w.Workers {
			fleet[c.ID] = sim.New(c)
			specs = append(specs, router.Spec{ID: c.ID, URL: "http://" + c.ID})
		}
		attach := func(_ context.Context, s router.Spec) (*router.Worker, error) {
			return &router.Worker{Client: fleet[s.ID], Models: []router.Model{{Name: sim.DefaultModelName, Own: sim.DefaultModelName, ContextLength: sim.ModelContextLength}}}, nil
		}
		log := slog.New(slog.DiscardHandler)
		if *oneSeed != 0 {
			log = slog.New(slog.NewTextHandler(t.Output(), nil))
		}
		reg := prometheus.NewRegistry()
		next := w.Seed
		var mu sync.Mutex
		rnd := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			next = next*6364136223846793005 + 1442695040888963407
			return int(next>>33) % n
		}
		workers := router.New(specs, attach, router.Config{
			ConnectTimeout: time.Second, FirstTokenTimeout: 3 * time.Second, StallTimeout: 4 * time.Second,
			WorkerWaitTimeout: 20 * time.Second, InhibitDuration: 500 * time.Millisecond, HealthInterval: 200 * time.Millisecond,
			Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
				if fleet[address].Health(ctx) != nil {
					return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				a, b := net.Pipe()
				b.Close()
				return a, nil
			},
		}, log, reg, "sim", rnd)
		running := make(chan error, 1)
		go func() { running <- workers.Run(ctx) }()
		synctest.Wait()

		texts := backend.New(migration.New(workers, migration.Config{Limit: w.Limit, MaxSeqLen: w.MaxLen}, log, reg, "sim"))
		pre := preprocess.New(models, preprocess.Options{ContextLength: workers.ContextLength}, log)
		prepare := pre.Chat
		if strings.HasSuffix(w.Path, "/v1/completions") {
			prepare = pre.Completion
		}
		p, failure := prepare("req", w.JSON())
		if failure != nil {
			t.Fatalf("%v: %s %s", w, failure.Param, failure.Message)
		}
		results = make([]result, len(p.Choices))
		var wg sync.WaitGroup
		for i, c := range p.Choices {
			wg.Go(func() { results[i] = collect(ctx, texts, c.Request, w.Leave) })
		}
		wg.Wait()
		cancel()
		if err := <-running; err != nil {
			t.Error(err)
		}
		// A probe may have been in a scripted silence until now.
		for id, e := range fleet {
			if s := e.Stats(); s.Running != 0 {
				t.Errorf("%vworker %s still runs %d requests", w, id, s.Running)
			}
		}
	})
	return results
}

func collect(ctx context.Context, texts *backend.Backend, req *backend.Request, leave int) result {
	r := result{trace: &engine.Trace{}}
	tokens := *req.Tokens
	tokens.Trace = r.trace
	copied := *req
	copied.Tokens = &tokens
	pieces := 0
	for d, err := range texts.Generate(ctx, &copied) {
		if err != nil {
			errors.As(err, &r.err)
			break
		}
		r.text += string(d.Text)
		r.ids = append(r.ids, d.TokenIDs...)
		r.tokens, r.finish = d.CompletionTokens, d.FinishReason
		if len(d.Text) > 0 {
			if pieces++; pieces == leave {
				r.left = true
				break
			}
		}
	}
	return r
}

// reached counts what a run came across, so that a run that never met a fault
// cannot pass for one that survived it.
type reached map[string]int

func (c reached) take(w *World, results []result) {
	for _, cfg := range w.Workers {
		for _, f := range cfg.Faults {
			c["scripted "+string(f.Kind)]++
		}
	}
	for i := range results {
		r := &results[i]
		for _, a := range r.trace.Attempts {
			if a.Err != nil {
				c["attempt "+a.Err.Kind.String()]++
			}
			if a.Migration != "" {
				c["move "+string(a.Migration)]++
			}
		}
		switch {
		case r.left:
			c["client left"]++
		case r.err != nil:
			c["failed "+r.err.Kind.String()]++
		default:
			c["finish "+string(r.finish)]++
		}
		if len(r.trace.Attempts) > 3 {
			c["four attempts"]++
		}
	}
}

func (c reached) mustHave(t *testing.T, things ...string) {
	t.Helper()
	for _, thing := range things {
		if c[thing] == 0 {
			t.Errorf("never reached: %s", thing)
		}
	}
	if t.Failed() {
		c.tell(t)
	}
}

func (c reached) tell(t *testing.T) {
	for _, k := range slices.Sorted(maps.Keys(c)) {
		t.Logf("%6d %s", c[k], k)
	}
}

// enoughSeeds is from how many worlds on everything must have been reached.
const enoughSeeds = 300

func TestFaultsDoNotShowInTheText(t *testing.T) {
	if *oneSeed != 0 {
		w := NewWorld(*oneSeed, sim.KindVLLM, sim.KindLlamaCPP)
		t.Log(w)
		check(t, w, runText(t, w.faultless()), runText(t, w))
		return
	}
	c := reached{}
	for seed := range uint64(*seeds) {
		w := NewWorld(seed+1, sim.KindVLLM, sim.KindLlamaCPP)
		want := runText(t, w.faultless())
		got := runText(t, w)
		c.take(w, got)
		check(t, w, want, got)
		if t.Failed() {
			return
		}
	}
	if *seeds < enoughSeeds {
		return
	}
	if testing.Verbose() {
		c.tell(t)
	}
	c.mustHave(t,
		"move new_request", "move ongoing_request", "finish stop", "finish length", "client left", "four attempts",
		"attempt cannot_connect", "attempt connection_timeout", "attempt disconnected", "attempt stalled", "attempt engine_shutdown",
		"attempt overloaded", "attempt worker_misconfigured", "attempt engine_error", "attempt protocol_error", "failed disconnected")
	for _, kind := range slices.Concat(movable, tame) {
		c.mustHave(t, "scripted "+string(kind))
	}
}

// check compares what a client got with what it gets without faults.
func check(t *testing.T, w *World, want, got []result) {
	t.Helper()
	for i := range want {
		a, b := &want[i], &got[i]
		if a.err != nil {
			t.Errorf("%vchoice %d fails without faults: %v", w, i, a.err)
			continue
		}
		switch {
		case b.left:
			if !strings.HasPrefix(a.text, b.text) {
				t.Errorf("%vchoice %d: left with %q, which is no beginning of %q", w, i, b.text, a.text)
			}
		case b.err != nil:
			if w.Saved {
				t.Errorf("%vchoice %d could have been saved: %v", w, i, b.err)
			}
			if !strings.HasPrefix(a.text, b.text) || len(b.ids) > len(a.ids) || !slices.Equal(a.ids[:len(b.ids)], b.ids) {
				t.Errorf("%vchoice %d: failed with %q, which is no beginning of %q", w, i, b.text, a.text)
			}
		case a.text != b.text || a.finish != b.finish || a.tokens != b.tokens || !slices.Equal(a.ids, b.ids):
			t.Errorf("%vchoice %d:\n got %d %s %q %v\nwant %d %s %q %v\ntrace %+v", w, i, b.tokens, b.finish, b.text, b.ids, a.tokens, a.finish, a.text, a.ids, b.trace.Attempts)
		}
	}
}
