package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"baton/engine"
)

// An Engine is a simulated worker without HTTP, as the router sees it through a
// client: it implements engine.Client. Its clock may be virtual, and nothing in
// it is random. It is safe for concurrent use.
type Engine struct {
	config Config
	faults script

	mu       sync.Mutex // guards what follows
	requests []engine.Request
	dead     chan struct{} // closed when the worker is killed: streams are cut
	vanished chan struct{} // closed when it vanishes: streams are silent
	health   error         // what Health says of a living worker
	stats    Stats
}

var _ engine.Client = (*Engine)(nil)

// maxRecorded is how many of the newest requests are kept for inspection.
const maxRecorded = 4096

// Stats are a worker's counters.
type Stats struct {
	Running  int `json:"running"`  // requests at work now
	Started  int `json:"started"`  // requests that reached the worker
	Finished int `json:"finished"` // with a finish reason of success
	Aborted  int `json:"aborted"`  // the client left, or asked for the abort
	Failed   int `json:"failed"`   // a fault, or the request was refused
	Tokens   int `json:"tokens"`   // delivered
}

// New returns a worker. For a virtual clock, call it within the bubble of
// testing/synctest that it is used in.
func New(config Config) *Engine {
	e := &Engine{config: config.withDefaults(), dead: make(chan struct{}), vanished: make(chan struct{})}
	e.faults.set(config.Faults)
	return e
}

// Generate implements engine.Engine.
func (e *Engine) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		dead, vanished := e.begin(req)
		outcome := &e.stats.Failed
		defer func() { e.end(outcome) }()
		switch {
		case ctx.Err() != nil:
			outcome = &e.stats.Aborted
			yield(engine.Delta{}, engine.CauseOf(ctx))
			return
		case closed(dead) || closed(vanished):
			yield(engine.Delta{}, e.fail(engine.CannotConnect, syscall.ECONNREFUSED))
			return
		}
		r := &run{e: e, ctx: ctx, dead: dead, vanished: vanished, fault: e.faults.take(req.ID), yield: yield}
		err := r.generate(req)
		switch {
		case err == nil:
			outcome = &e.stats.Finished
		case errors.Is(err, errLeft) || ctx.Err() != nil:
			outcome = &e.stats.Aborted
		}
		if err != nil && !errors.Is(err, errLeft) && !errors.Is(err, errQuiet) {
			yield(engine.Delta{}, err)
		}
	}
}

// errLeft is the error of a run whose caller left the loop, errQuiet of one
// that ends without a word.
var (
	errLeft  = errors.New("the caller left")
	errQuiet = errors.New("quiet end")
)

func (e *Engine) begin(req *engine.Request) (dead, vanished <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests = append(e.requests, copyRequest(req))
	if len(e.requests) > maxRecorded {
		e.requests = slices.Delete(e.requests, 0, len(e.requests)-maxRecorded)
	}
	e.stats.Started++
	e.stats.Running++
	return e.dead, e.vanished
}

func (e *Engine) end(outcome *int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stats.Running--
	*outcome++
}

func (e *Engine) fail(kind engine.Kind, cause error) *engine.Error {
	return &engine.Error{Kind: kind, WorkerID: e.config.ID, Err: cause}
}

// A run is one request on its way through the worker.
type run struct {
	e              *Engine
	ctx            context.Context
	dead, vanished <-chan struct{}
	fault          *Fault
	yield          func(engine.Delta, error) bool

	timer *time.Timer
}

// generate delivers the answer. It returns nil after the finish reason.
func (r *run) generate(req *engine.Request) error {
	if r.fault.beforeResponse() {
		return r.beforeResponse()
	}
	c := &r.e.config
	if n := len(req.TokenIDs); n >= c.ContextLength || n == 0 {
		return &engine.Error{Kind: engine.InvalidRequest, WorkerID: c.ID, Status: http.StatusBadRequest,
			Message: fmt.Sprintf("the prompt has %d tokens, the context %d", n, c.ContextLength)}
	}
	p := &producer{config: c, g: newGeneration(c, req.TokenIDs, req.Sampling, req.Stop), output: req.Output, fault: r.fault, wait: r.wait}
	p.g.constrain(req.Constraint)
	for p.finish == "" {
		if done, err := r.strike(p); done {
			return err
		}
		d, err := p.delta()
		if err != nil {
			return err
		}
		if !c.FinishAlone && !p.due() {
			d.FinishReason = p.finish
		}
		if err := r.deliver(d); err != nil || d.FinishReason != "" {
			return err
		}
	}
	if done, err := r.strike(p); done {
		return err
	}
	return r.deliver(engine.Delta{FinishReason: p.finish})
}

func (r *run) deliver(d engine.Delta) error {
	r.e.mu.Lock()
	r.e.stats.Tokens += len(d.TokenIDs)
	r.e.mu.Unlock()
	more := r.yield(d, nil)
	// The slices were the caller's until now. One that still reads them, against
	// the contract, shall see nonsense rather than be right by chance.
	for i := range d.TokenIDs {
		d.TokenIDs[i] = spoiled
	}
	for i := range d.Logprobs {
		clear(d.Logprobs[i].Top)
		d.Logprobs[i] = engine.TokenLogprob{ID: spoiled}
	}
	if !more {
		return errLeft
	}
	return nil
}

// spoiled is the id in a delta whose time is over.
const spoiled engine.TokenID = -1 << 31

// wait takes d of time. It returns an error when the caller has left or the
// worker died meanwhile; for d = 0 it only looks.
func (r *run) wait(d time.Duration) error {
	var elapsed <-chan time.Time
	if d > 0 {
		if r.timer == nil {
			r.timer = time.NewTimer(d)
		} else {
			r.timer.Reset(d)
		}
		defer r.timer.Stop()
		elapsed = r.timer.C
	} else {
		select {
		case <-r.ctx.Done():
			return engine.CauseOf(r.ctx)
		case <-r.dead:
			return r.e.fail(engine.Disconnected, io.ErrUnexpectedEOF)
		case <-r.vanished:
			return r.silence()
		default:
			return nil
		}
	}
	select {
	case <-elapsed:
		return nil
	case <-r.vanished:
		return r.silence()
	case <-r.ctx.Done():
		return engine.CauseOf(r.ctx)
	case <-r.dead:
		return r.e.fail(engine.Disconnected, io.ErrUnexpectedEOF)
	}
}

// silence lasts until the caller has enough or the worker dies.
func (r *run) silence() error {
	select {
	case <-r.ctx.Done():
		return engine.CauseOf(r.ctx)
	case <-r.dead:
		return r.e.fail(engine.Disconnected, io.ErrUnexpectedEOF)
	}
}

// beforeResponse acts out the faults that come before any token.
func (r *run) beforeResponse() error {
	switch f := r.fault; f.Kind {
	case FaultRefuse:
		return r.e.fail(engine.CannotConnect, syscall.ECONNREFUSED)
	case FaultDialTimeout:
		delay := time.Duration(f.Delay)
		if delay == 0 {
			delay = defaultConnectDelay
		}
		if err := r.wait(delay); err != nil {
			return err
		}
		return r.e.fail(engine.ConnectionTimeout, syscall.ETIMEDOUT)
	case FaultStatus:
		return r.e.statusError(f)
	default:
		return r.silence()
	}
}

// statusError is the error that the clients make of a refused request.
func (e *Engine) statusError(f *Fault) *engine.Error {
	status := f.status(http.StatusServiceUnavailable)
	err := &engine.Error{WorkerID: e.config.ID, Status: status, RetryAfter: time.Duration(f.RetryAfter) * time.Second}
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		err.Kind = engine.Overloaded
		if e.config.Kind == KindTRTLLM && status == http.StatusServiceUnavailable && f.Message == "" {
			err.Kind = engine.EngineShutdown // its word for that
		}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		err.Kind = engine.WorkerMisconfigured
	default:
		err.Kind = engine.EngineError
		if status < 500 {
			err.Kind, err.Message = engine.InvalidRequest, f.Message
			if err.Message == "" {
				err.Message = "the simulated worker refuses this request"
			}
		}
	}
	return err
}

// strike acts out the fault if it is due. It returns true when the run is over.
func (r *run) strike(p *producer) (bool, error) {
	if !p.due() {
		return false, nil
	}
	e, f := r.e, p.fault
	switch f.Kind {
	case FaultStall:
		return true, r.silence()
	case FaultVanish:
		e.Vanish()
		return true, r.silence()
	case FaultFreeze, FaultPause:
		if f.Kind == FaultFreeze && f.Delay == 0 {
			return true, r.silence()
		}
		p.fault = nil
		err := r.wait(time.Duration(f.Delay))
		return err != nil, err
	case FaultAbort:
		return true, e.fail(engine.EngineError, errors.New(`finish reason "abort"`))
	case FaultError:
		err := e.fail(engine.EngineError, errors.New("error frame"))
		err.Status = f.status(http.StatusInternalServerError)
		return true, err
	case FaultGarbage:
		return true, e.fail(engine.ProtocolError, errors.New("an event is no JSON"))
	case FaultShutdown:
		return true, e.fail(engine.EngineShutdown, nil)
	case FaultQuiet:
		return true, errQuiet
	case FaultKill:
		e.Kill()
		return true, e.fail(engine.Disconnected, io.ErrUnexpectedEOF)
	case FaultLength:
		if err := r.deliver(engine.Delta{FinishReason: engine.FinishLength}); err != nil {
			return true, err
		}
		return true, nil
	case FaultReset, FaultHalfNumber, FaultHalfString:
		return true, e.fail(engine.Disconnected, syscall.ECONNRESET)
	case FaultCut:
		return true, e.fail(engine.Disconnected, io.ErrUnexpectedEOF)
	case FaultEnd, FaultDone:
		return true, e.fail(engine.Disconnected, io.EOF)
	}
	return false, nil // drip, miscount, wrong_id: not an end
}

// Kill ends the worker: its streams fail with Disconnected, later requests with
// CannotConnect.
func (e *Engine) Kill() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !closed(e.dead) {
		close(e.dead)
	}
}

// Vanish makes the worker do what live ones do on SIGTERM: its streams are
// silent, later requests fail with CannotConnect.
func (e *Engine) Vanish() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !closed(e.vanished) {
		close(e.vanished)
	}
}

// Revive brings back a worker that was killed or has vanished. Its streams of
// before stay as they are.
func (e *Engine) Revive() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if closed(e.dead) || closed(e.vanished) {
		e.dead, e.vanished = make(chan struct{}), make(chan struct{})
	}
}

// SetFaults replaces the faults; their counts begin anew.
func (e *Engine) SetFaults(faults ...Fault) { e.faults.set(faults) }

// Requests returns copies of the requests that the worker got, refused ones
// included, oldest first.
func (e *Engine) Requests() []engine.Request {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stats
}

// copyRequest returns a request that shares nothing with req that its owner
// could still change.
func copyRequest(req *engine.Request) engine.Request {
	c := *req
	c.TokenIDs = slices.Clone(req.TokenIDs)
	c.Stop.TokenIDs = slices.Clone(req.Stop.TokenIDs)
	c.Stop.EOS = slices.Clone(req.Stop.EOS)
	c.Sampling.LogitBias = maps.Clone(req.Sampling.LogitBias)
	c.Avoid = slices.Clone(req.Avoid)
	c.Trace = nil
	return c
}

// Kind implements engine.Client.
func (e *Engine) Kind() string { return e.config.Kind }

// Probe implements engine.Client.
func (e *Engine) Probe(ctx context.Context) (engine.Info, error) {
	if err := e.Health(ctx); err != nil {
		return engine.Info{}, err
	}
	return engine.Info{Version: version, Models: []engine.ModelInfo{{
		ID: e.config.Model, ContextLength: e.config.ContextLength, VocabSize: e.config.VocabSize,
	}}}, nil
}

// Health implements engine.Client.
func (e *Engine) Health(ctx context.Context) error {
	if err := engine.CauseOf(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if closed(e.dead) || closed(e.vanished) {
		return e.fail(engine.CannotConnect, syscall.ECONNREFUSED)
	}
	return e.health
}

// Tokenize implements engine.Client, with the tokenizer of the simulated model.
func (e *Engine) Tokenize(ctx context.Context, _, text string) (ids []engine.TokenID, ok bool, err error) {
	return Tokenize(text), true, e.Health(ctx)
}

// SetHealth sets what Health and Probe say while the worker lives, whatever it
// does otherwise; nil = it is well. It should be an *engine.Error.
func (e *Engine) SetHealth(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.health = err
}

// Parameters implements engine.Client: all of them are exact.
func (e *Engine) Parameters() engine.Parameters { return nil }

// Unsupported implements engine.Client.
func (e *Engine) Unsupported(*engine.Request) string { return "" }
