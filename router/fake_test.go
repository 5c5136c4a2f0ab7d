package router

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/engine"
)

// A script is what a fake worker does with one request.
type script func(ctx context.Context, req *engine.Request, yield func(engine.Delta, error) bool)

// A fakeWorker is an engine.Client that follows scripts.
type fakeWorker struct {
	id         string
	models     []Model
	parameters engine.Parameters

	version string // with models, it is what Probe says

	mu          sync.Mutex // guards the rest
	play        script
	health      error
	down        bool // Attach and dial fail
	unsupported string
	requests    []engine.Request
	probes      int // generations that Run made
	attaches    int
	questions   int // that Probe answered
	dials       int
}

func (f *fakeWorker) Kind() string { return "fake" }

func (f *fakeWorker) Probe(context.Context) (engine.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.questions++
	return f.info(), nil
}

// info is what the worker says of itself. f.mu is held.
func (f *fakeWorker) info() engine.Info {
	info := engine.Info{Version: f.version}
	for _, m := range f.models {
		info.Models = append(info.Models, engine.ModelInfo{ID: m.Own, ContextLength: m.ContextLength})
	}
	return info
}

func (f *fakeWorker) Health(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.health
}

func (f *fakeWorker) Tokenize(context.Context, string, string) ([]engine.TokenID, bool, error) {
	return nil, false, nil
}

func (f *fakeWorker) Parameters() engine.Parameters { return f.parameters }

func (f *fakeWorker) Unsupported(*engine.Request) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.unsupported
}

func (f *fakeWorker) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		f.mu.Lock()
		play := f.play
		if strings.HasPrefix(req.ID, "probe-") {
			f.probes++
		} else {
			f.requests = append(f.requests, *req)
		}
		f.mu.Unlock()
		play(ctx, req, yield)
	}
}

// do changes what the worker does from now on.
func (f *fakeWorker) do(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeWorker) plays(s script) { f.do(func() { f.play = s }) }

// asked is how many requests, probes apart, came here.
func (f *fakeWorker) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

// count reads one of the worker's counters.
func (f *fakeWorker) count(n *int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *n
}

// tokens yields n tokens, each after pause, and finishes.
func tokens(n int, pause time.Duration) script {
	return func(ctx context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
		for i := range n {
			if pause > 0 && !sleep(ctx, pause) {
				yield(engine.Delta{}, &engine.Error{Kind: engine.Disconnected, Err: ctx.Err()})
				return
			}
			d := engine.Delta{TokenIDs: []engine.TokenID{engine.TokenID(i)}}
			if i == n-1 {
				d.FinishReason = engine.FinishLength
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// fails yields an error of kind at once.
func fails(kind engine.Kind, status int) script {
	return func(_ context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
		yield(engine.Delta{}, &engine.Error{Kind: kind, Status: status})
	}
}

// thenFails yields n tokens and an error of kind.
func thenFails(n int, kind engine.Kind) script {
	return func(_ context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
		for i := range n {
			if !yield(engine.Delta{TokenIDs: []engine.TokenID{engine.TokenID(i)}}, nil) {
				return
			}
		}
		yield(engine.Delta{}, &engine.Error{Kind: kind})
	}
}

// thenSilent yields n tokens and nothing more until the request is cancelled.
func thenSilent(n int) script {
	return func(ctx context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
		for i := range n {
			if !yield(engine.Delta{TokenIDs: []engine.TokenID{engine.TokenID(i)}}, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(engine.Delta{}, &engine.Error{Kind: engine.Disconnected, Err: ctx.Err()})
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// A rig is a router over fake workers, in a bubble.
type rig struct {
	*Router
	workers map[string]*fakeWorker
	log     *lockedBuffer
	reg     *prometheus.Registry
}

var testConfig = Config{
	ConnectTimeout:    3 * time.Second,
	FirstTokenTimeout: 5 * time.Minute,
	StallTimeout:      30 * time.Second,
	WorkerWaitTimeout: 10 * time.Second,
	InhibitDuration:   5 * time.Second,
	HealthInterval:    2 * time.Second,
}

// passive is testConfig without probes.
func passive() Config {
	cfg := testConfig
	cfg.HealthInterval = 0
	return cfg
}

// newRig runs test in a bubble with workers w1, w2, … that serve "m" and answer
// each request with three tokens.
func newRig(t *testing.T, n int, cfg Config, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{workers: make(map[string]*fakeWorker), log: new(lockedBuffer), reg: prometheus.NewRegistry()}
		var specs []Spec
		for i := range n {
			id := "w" + string(rune('1'+i))
			f := &fakeWorker{id: id, play: tokens(3, 0), models: []Model{{Name: "m", Own: "own-" + id}}}
			r.workers[id] = f
			specs = append(specs, Spec{ID: id, URL: "http://" + id + ":8000"})
		}
		cfg.Dial = r.dial
		rnd := func(n int) int { return 0 }
		log := slog.New(slog.NewTextHandler(r.log, nil))
		r.Router = New(specs, r.attach, cfg, log, r.reg, "test", rnd)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		test(t, r)
		cancel()
		if err := <-done; err != nil {
			t.Error("Run:", err)
		}
		for _, w := range r.Workers() {
			if w.InFlight != 0 {
				t.Errorf("%s has %d requests in flight at the end", w.ID, w.InFlight)
			}
		}
	})
}

func (r *rig) attach(_ context.Context, spec Spec) (*Worker, error) {
	f := r.workers[spec.ID]
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attaches++
	if f.down {
		return nil, errors.New("connection refused")
	}
	return &Worker{Client: f, Info: f.info(), Models: append([]Model(nil), f.models...)}, nil
}

func (r *rig) dial(ctx context.Context, _, address string) (net.Conn, error) {
	f := r.workers[strings.TrimSuffix(address, ":8000")]
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dials++
	if f.down {
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	theirs.Close()
	return ours, nil
}

func request() *engine.Request {
	return &engine.Request{ID: "q", Model: "m", TokenIDs: []engine.TokenID{1, 2, 3}, VocabSize: 100, Trace: new(engine.Trace)}
}

// ask ranges over one generation and returns its ids, its finish and its error.
func (r *rig) ask(ctx context.Context, req *engine.Request) (ids []engine.TokenID, finish engine.FinishReason, failure *engine.Error) {
	for d, err := range r.Generate(ctx, req) {
		if err != nil {
			return ids, finish, err.(*engine.Error)
		}
		ids = append(ids, d.TokenIDs...)
		finish = d.FinishReason
	}
	return ids, finish, nil
}

// mustAnswer fails the test unless req is answered by the worker.
func (r *rig) mustAnswer(t *testing.T, req *engine.Request, workerID string) {
	t.Helper()
	ids, finish, e := r.ask(t.Context(), req)
	if e != nil || finish == "" || len(ids) == 0 {
		t.Fatalf("got ids %v, finish %q, error %v", ids, finish, e)
	}
	if last := req.Trace.Last(); workerID != "" && last.WorkerID != workerID {
		t.Fatalf("answered by %s, want %s", last.WorkerID, workerID)
	}
}

// mustFail fails the test unless req fails with kind.
func (r *rig) mustFail(t *testing.T, req *engine.Request, kind engine.Kind) *engine.Error {
	t.Helper()
	_, _, e := r.ask(t.Context(), req)
	if e == nil || e.Kind != kind {
		t.Fatalf("got error %v, want %v", e, kind)
	}
	return e
}

func (r *rig) mustBe(t *testing.T, workerID, state string) {
	t.Helper()
	for _, w := range r.Workers() {
		if w.ID == workerID && w.State != state {
			t.Fatalf("%s is %s (%s), want %s", workerID, w.State, w.Reason, state)
		}
	}
}

// lockedBuffer holds the log.
type lockedBuffer struct {
	mu sync.Mutex
	strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(p)
}

func (b *lockedBuffer) count(s string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.Builder.String(), s)
}

var _ io.Writer = (*lockedBuffer)(nil)

// dying yields a token after prefill and no other one, until the worker dies.
func dying(dies <-chan struct{}, prefill time.Duration) script {
	return func(ctx context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
		first := time.NewTimer(prefill)
		defer first.Stop()
		for {
			select {
			case <-first.C:
				if !yield(engine.Delta{TokenIDs: []engine.TokenID{1}}, nil) {
					return
				}
				continue
			case <-dies:
				yield(engine.Delta{}, &engine.Error{Kind: engine.Disconnected})
			case <-ctx.Done():
				yield(engine.Delta{}, &engine.Error{Kind: engine.Disconnected, Err: ctx.Err()})
			}
			return
		}
	}
}
