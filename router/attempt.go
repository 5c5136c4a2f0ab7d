package router

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"baton/engine"
)

// errNoFinish is the cause of a Disconnected error for a sequence that ended
// against its contract.
var errNoFinish = errors.New("the stream ended without a finish reason")

// An attempt is one try of a request on one worker. It has been counted in
// flight when it is made and is counted until run returns or panics.
//
// What every delta touches comes first, and the loop over the answer is a method,
// take, and not the body of a range statement, whose variables would lie about
// the heap one by one: with many open streams a token costs the memory that it
// touches, which left the cache since the last one.
type attempt struct {
	finished bool // a finish reason has come
	ended    bool // nothing more is taken
	trial    bool // it goes first after an inhibition
	unproven bool // its request lost a worker, and no token has come since
	movable  bool // the request could go on elsewhere when it began
	tokens   int  // delivered so far
	full     int  // with so many tokens the answer is complete
	vocab    int  // every id is below; 0 = unknown
	yield    func(engine.Delta, error) bool
	w        *worker
	watch    watchdog

	r      *Router
	client engine.Client
	req    engine.Request // as the worker gets it
	model  string         // its public name
	epoch  int            // of the worker when the attempt began

	ctx     context.Context // the caller's
	trace   *engine.Attempt
	failure *engine.Error // why it ended, if it failed
	loss    *loss         // the death of its worker that ended it, if one did
}

// run ranges over the worker's answer. It returns the error of a worker that
// refused the request, for which another one is asked; any other end of the
// attempt has been yielded.
func (a *attempt) run(ctx context.Context, yield func(engine.Delta, error) bool) (refusal *engine.Error) {
	failure := a.stream(ctx, yield)
	if failure == nil {
		return nil
	}
	if a.tokens == 0 && (failure.Kind == engine.Overloaded || failure.Kind == engine.WorkerMisconfigured || failure.Elsewhere) {
		return failure
	}
	if a.suspicious() {
		failure.Shared = a.r.gone(ctx, a)
		if failure.Shared && a.r.alone(ctx, a) {
			failure.Shared, failure.Culprit = false, true
		}
	}
	yield(engine.Delta{}, failure) // the attempt is out of the books by now
	return nil
}

// stream yields what the worker delivers and keeps the books, also when the
// consumer leaves or panics. It returns how the attempt failed, if it did.
func (a *attempt) stream(ctx context.Context, yield func(engine.Delta, error) bool) *engine.Error {
	a.ctx, a.yield, a.vocab, a.full = ctx, yield, a.req.VocabSize, room(&a.req)
	a.movable = a.req.Movable != nil && a.req.Movable()
	a.trace = a.req.Trace.Begin(a.req.ID, a.w.spec.ID)
	a.trace.Parameters = a.client.Parameters()
	a.watch.begin(a)
	defer func() {
		a.watch.stop()
		a.trace.Tokens, a.trace.Err, a.trace.End = a.tokens, a.failure, time.Now()
		a.req.Trace.Ended()
		a.r.end(a)
	}()
	a.client.Generate(a.watch.ctx, &a.req)(a.take)
	if !a.ended && !a.finished {
		a.failure = a.judge(a.error(engine.Disconnected, errNoFinish))
	}
	return a.failure
}

// take takes what the worker's client yields, and returns false when the attempt
// is over: it failed, or the consumer left.
func (a *attempt) take(d engine.Delta, err error) bool {
	if a.finished || a.ended {
		return false // what comes after the finish reason does not count
	}
	if err != nil || a.watch.verdict.Load() != nil { // what comes after the verdict was never there
		return a.fail(a.judge(err))
	}
	if len(d.TokenIDs) == 0 && d.FinishReason == "" {
		return true // says nothing, and does not end the silence
	}
	a.watch.arrived()
	if id, ok := a.foreign(d.TokenIDs); ok {
		return a.fail(a.error(engine.ProtocolError, fmt.Errorf("token id %d is outside the vocabulary of %d", id, a.vocab)))
	}
	if a.tokens == 0 {
		if !a.watch.first() {
			return a.fail(a.judge(nil))
		}
		a.r.delivered(a)
	}
	a.tokens += len(d.TokenIDs)
	if d.FinishReason != "" {
		a.finished = true
		a.trace.Tokens = a.tokens // whoever gets the end may read the trace
	}
	if !a.yield(d, nil) {
		a.ended = true
		return false
	}
	if a.finished {
		return true // the client only closes its stream
	}
	if failure := a.drained(); failure != nil {
		return a.fail(failure)
	}
	if a.tokens >= a.full {
		a.watch.complete.Store(true) // its end is known, whatever the worker then says or does not say
	}
	a.watch.restart()
	return true
}

// room returns with how many tokens the answer to req is complete: its budget, or
// what the context of the model leaves.
func room(req *engine.Request) int {
	n := math.MaxInt
	if req.Stop.MaxTokens > 0 {
		n = req.Stop.MaxTokens
	}
	if req.ContextLength > 0 {
		n = min(n, req.ContextLength-len(req.TokenIDs))
	}
	return n
}

func (a *attempt) fail(failure *engine.Error) bool {
	a.ended, a.failure = true, failure
	return false
}

// judge says how the attempt failed. The caller's context is asked first: a
// leaving client makes transport errors that look like a dying worker. Then the
// watchdog: what the client reports after it was cancelled is only the echo.
func (a *attempt) judge(err error) *engine.Error {
	if e := engine.CauseOf(a.ctx); e != nil {
		return e
	}
	if e := a.watch.verdict.Load(); e != nil {
		return e
	}
	e := *engine.AsError(err)
	e.WorkerID = a.w.spec.ID
	if a.tokens > 0 && (e.Kind == engine.Overloaded || e.Kind == engine.WorkerMisconfigured) {
		e.Kind = engine.EngineError // a refusal of what runs already is a failure
	}
	return &e
}

func (a *attempt) error(kind engine.Kind, err error) *engine.Error {
	return &engine.Error{Kind: kind, WorkerID: a.w.spec.ID, Err: err}
}

// foreign returns the first id that cannot be of the model.
func (a *attempt) foreign(ids []engine.TokenID) (engine.TokenID, bool) {
	for _, id := range ids {
		if id < 0 || a.vocab > 0 && int(id) >= a.vocab {
			return id, true
		}
	}
	return 0, false
}

// delivered notes the first token of an attempt: the one that went first after
// an inhibition thereby opens the gate for all, and one that lost another worker
// is proven.
func (r *Router) delivered(a *attempt) {
	if !a.trial && !a.unproven {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a.settled()
	if a.trial && a.w.epoch == a.epoch {
		r.reopen(a.w, "the first request after the inhibition was answered")
	}
}

// end takes an attempt out of the books and draws the conclusions about its
// worker. There is no failure also when the consumer left before the end.
func (r *Router) end(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, failure, now := a.w, a.failure, time.Now()
	if failure.IsLoss() {
		a.noteLoss(now)
	}
	a.settled()
	w.inFlight--
	r.left(w)
	delete(w.streams, &a.watch)
	if a.finished && w.epoch == a.epoch {
		w.step = 0
	}
	if failure != nil {
		if failure.Kind == engine.Overloaded && !errors.Is(failure, engine.ErrExhausted) {
			w.pause(failure, now)
		}
		r.inhibit(w, failure, a.epoch, now)
	}
	if a.trial && w.epoch == a.epoch && w.trial {
		w.trial = false // it proved nothing: the next one goes first
		r.signal()
	}
}
