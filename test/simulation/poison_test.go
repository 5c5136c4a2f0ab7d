package simulation

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/engine"
	"baton/engine/sim"
	"baton/migration"
	"baton/router"
)

// A plague is a fleet with many running streams, one of which is a request that
// kills every worker that gets it.
type plague struct {
	workers int
	streams int           // bystanders
	spread  time.Duration // they begin, and the poison comes, within so long
	prefill time.Duration
	tokens  int // each asks for so many at most

	// The poison kills its worker after so many tokens; with 0 while the worker
	// reads the prompt, or in the sequel prompt and tokens.
	poisonAt int
	spacing  time.Duration
	limit    int
	notice   time.Duration // a stream's loss is noticed within so long
	restart  time.Duration // a dead worker is back after so long; 0 = never
}

func (p plague) String() string { return fmt.Sprintf("%+v", plain(p)) }

type plain plague

const poisonID = "poison"

// A mortal is a worker that dies of the poison.
type mortal struct {
	*sim.Engine
	p   plague
	rnd func(n int) int

	mu     sync.Mutex // guards deaths
	deaths int
}

// die ends the worker, and perhaps brings it back.
func (m *mortal) die() {
	m.mu.Lock()
	m.deaths++
	m.mu.Unlock()
	m.Kill()
	if m.p.restart > 0 {
		time.AfterFunc(m.p.restart, m.Revive)
	}
}

// late delays the news of a death.
func (m *mortal) late(s engine.Stream) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		for d, err := range s {
			if err != nil {
				time.Sleep(time.Duration(m.rnd(int(m.p.notice))))
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func (m *mortal) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	if !strings.HasPrefix(req.ID, poisonID) {
		return m.late(m.Engine.Generate(ctx, req))
	}
	return func(yield func(engine.Delta, error) bool) {
		left := m.p.poisonAt - req.Carried
		if left > 0 {
			for d, err := range m.Engine.Generate(ctx, req) {
				if !yield(d, err) || err != nil {
					return
				}
				if left -= len(d.TokenIDs); left <= 0 {
					break
				}
			}
		} else {
			select {
			case <-time.After(time.Duration(m.rnd(int(m.p.prefill)))):
			case <-ctx.Done():
				yield(engine.Delta{}, engine.CauseOf(ctx))
				return
			}
		}
		m.die()
		time.Sleep(time.Duration(m.rnd(int(m.p.notice))))
		yield(engine.Delta{}, &engine.Error{Kind: engine.Disconnected, Err: io.ErrUnexpectedEOF})
	}
}

// An ending is what became of one request.
type ending struct {
	id  string
	got result
}

// run plays the plague and returns how each request ended, the poison first, and
// how many workers died of it.
func (p plague) run(t *testing.T, seed uint64) (ends []ending, deaths int) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		source := rand.New(rand.NewPCG(seed, 1))
		rnd := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return source.IntN(max(n, 1))
		}
		fleet := map[string]*mortal{}
		var specs []router.Spec
		for i := range p.workers {
			id := fmt.Sprintf("w%d:80", i)
			fleet[id] = &mortal{p: p, rnd: rnd, Engine: sim.New(sim.Config{ID: id, MeanLength: -1, Prefill: p.prefill, Gap: 20 * time.Millisecond})}
			specs = append(specs, router.Spec{ID: id, URL: "http://" + id})
		}
		attach := func(ctx context.Context, s router.Spec) (*router.Worker, error) {
			if err := fleet[s.ID].Health(ctx); err != nil {
				return nil, err
			}
			return &router.Worker{Client: fleet[s.ID], Models: []router.Model{{Name: "m", Own: "m", ContextLength: sim.ModelContextLength}}}, nil
		}
		log := slog.New(slog.DiscardHandler)
		if *oneSeed != 0 {
			log = slog.New(slog.NewTextHandler(t.Output(), nil))
		}
		reg := prometheus.NewRegistry()
		workers := router.New(specs, attach, router.Config{
			ConnectTimeout: time.Second, FirstTokenTimeout: 5 * time.Minute, StallTimeout: 30 * time.Second,
			WorkerWaitTimeout: 10 * time.Second, InhibitDuration: 5 * time.Second, HealthInterval: 2 * time.Second, MoveSpacing: p.spacing,
			Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
				if fleet[address].Health(ctx) != nil {
					return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
				}
				a, b := net.Pipe()
				b.Close()
				return a, nil
			},
		}, log, reg, "sim", rnd)
		ctx, cancel := context.WithCancel(t.Context())
		running := make(chan error, 1)
		go func() { running <- workers.Run(ctx) }()
		synctest.Wait()
		op := migration.New(workers, migration.Config{Limit: p.limit}, log, reg, "sim")

		ends = make([]ending, p.streams+1)
		var all sync.WaitGroup
		for i := range ends {
			delay := time.Duration(rnd(int(p.spread)))
			all.Go(func() {
				id := fmt.Sprintf("req%03d-000", i)
				if i == 0 {
					id = poisonID + "-000"
				}
				time.Sleep(delay)
				ends[i] = ending{id, generate(ctx, op, bystander(id, i, p.tokens))}
			})
		}
		all.Wait()
		cancel()
		if err := <-running; err != nil {
			t.Error(err)
		}
		for _, m := range fleet {
			deaths += m.deaths
		}
	})
	return ends, deaths
}

// bystander is a request that has an answer of its own.
func bystander(id string, i, tokens int) *engine.Request {
	return &engine.Request{
		ID: id, Model: "m", TokenIDs: []engine.TokenID{engine.TokenID(i % 200), 7, 9, engine.TokenID(1 + i/200)}, ContextLength: sim.ModelContextLength,
		Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1}, Stop: engine.StopConditions{MaxTokens: tokens},
		Trace: new(engine.Trace),
	}
}

// generate collects an answer at the level of tokens.
func generate(ctx context.Context, e engine.Engine, req *engine.Request) result {
	r := result{trace: req.Trace}
	for d, err := range e.Generate(ctx, req) {
		if err != nil {
			r.err = engine.AsError(err)
			break
		}
		r.ids = append(r.ids, d.TokenIDs...)
		r.finish = cmp.Or(d.FinishReason, r.finish)
	}
	return r
}

// check holds the endings against the answers of a worker that does not die.
func (p plague) check(t *testing.T, seed uint64, ends []ending) {
	t.Helper()
	calm := sim.New(sim.Config{MeanLength: -1})
	for i, e := range ends {
		if i == 0 {
			if e.got.err == nil || e.got.err.Kind != engine.Poison {
				t.Errorf("seed %d %v: the poison ended with %v after %d attempts", seed, p, e.got.err, len(e.got.trace.Attempts))
			}
			continue
		}
		want := generate(t.Context(), calm, bystander(e.id, i, p.tokens))
		if e.got.err != nil || !slices.Equal(e.got.ids, want.ids) || e.got.finish != want.finish {
			t.Errorf("seed %d %v: %s got %d of %d tokens and %v", seed, p, e.id, len(e.got.ids), len(want.ids), e.got.err)
			for _, a := range e.got.trace.Attempts {
				t.Logf("  %s %s %v +%v %d tokens %v", e.id, a.WorkerID, a.Start.UnixMilli(), a.End.Sub(a.Start), a.Tokens, a.Err)
			}
		}
	}
}

// One request that kills each worker that reads its prompt gets an error after
// its second worker, and everybody else's answer is whole.
func TestPoisonHarmsNobodyElse(t *testing.T) {
	plagues(t, 2, func(r *rand.Rand) plague {
		return plague{
			workers: 3 + r.IntN(4), streams: 1 + r.IntN(60), tokens: 20 + r.IntN(200), limit: 3,
			prefill: time.Duration(1+r.IntN(300)) * time.Millisecond,
			spread:  time.Duration(1+r.IntN(3000)) * time.Millisecond,
			spacing: spacings[r.IntN(len(spacings))],
			notice:  30 * time.Millisecond,
		}
	})
}

// A small fleet whose workers are started again is no different.
func TestPoisonInASmallFleet(t *testing.T) {
	plagues(t, 2, func(r *rand.Rand) plague {
		return plague{
			workers: 1 + r.IntN(2), streams: 1 + r.IntN(30), tokens: 20 + r.IntN(200), limit: 3,
			prefill: time.Duration(1+r.IntN(100)) * time.Millisecond,
			spread:  time.Duration(1+r.IntN(3000)) * time.Millisecond,
			spacing: spacings[r.IntN(len(spacings))],
			notice:  30 * time.Millisecond, restart: 3 * time.Second,
		}
	})
}

// If it cannot be told from others that lost the same two workers, because it
// had been writing like them or because prompts take long to read, a third worker
// may be lost, but still nobody is taken for it.
func TestPoisonIsToldFromBystanders(t *testing.T) {
	plagues(t, 3, func(r *rand.Rand) plague {
		p := plague{
			workers: 4 + r.IntN(4), streams: 1 + r.IntN(60), tokens: 20 + r.IntN(200), limit: 5,
			prefill: time.Duration(1+r.IntN(100)) * time.Millisecond,
			spread:  time.Duration(1+r.IntN(3000)) * time.Millisecond,
			spacing: spacings[r.IntN(len(spacings))],
			notice:  30 * time.Millisecond,
		}
		if r.IntN(2) == 0 {
			p.poisonAt = 1 + r.IntN(p.tokens-1)
		} else {
			p.prefill = time.Duration(300+r.IntN(1000)) * time.Millisecond
			p.streams = 1 + r.IntN(12)
		}
		return p
	})
}

var spacings = []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond}

// plagues plays many of them, each of which may cost so many workers.
func plagues(t *testing.T, maxDeaths int, draw func(*rand.Rand) plague) {
	first, n := uint64(1), uint64(*seeds/5)
	if *oneSeed != 0 {
		first, n = *oneSeed, 1
	}
	most := 0
	for seed := first; seed < first+n && !t.Failed(); seed++ {
		p := draw(rand.New(rand.NewPCG(seed, 2)))
		ends, deaths := p.run(t, seed)
		p.check(t, seed, ends)
		if deaths < 2 || deaths > maxDeaths {
			t.Errorf("seed %d %v: %d workers died", seed, p, deaths)
		}
		most = max(most, deaths)
	}
	if n >= 100 && most != maxDeaths {
		t.Errorf("at most %d workers died, so the hard cases were not met", most)
	}
}
