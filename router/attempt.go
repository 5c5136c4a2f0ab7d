package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"baton/engine"
)

// errNoFinish is the cause of a Disconnected error for a sequence that ended
// against its contract.
var errNoFinish = errors.New("the stream ended without a finish reason")

// An attempt is one try of a request on one worker. It has been counted in
// flight when it is made and is counted until run returns or panics.
type attempt struct {
	r      *Router
	w      *worker
	client engine.Client
	req    engine.Request // as the worker gets it
	epoch  int            // of the worker when the attempt began
	trial  bool           // it goes first after an inhibition

	tokens   int  // delivered so far
	finished bool // a finish reason has come
}

// run ranges over the worker's answer. It returns the error of a worker that
// refused the request, for which another one is asked; any other end of the
// attempt has been yielded.
func (a *attempt) run(ctx context.Context, yield func(engine.Delta, error) bool) (refusal *engine.Error) {
	failure := a.stream(ctx, yield)
	if failure == nil {
		return nil
	}
	if a.tokens == 0 && (failure.Kind == engine.Overloaded || failure.Kind == engine.WorkerMisconfigured) {
		return failure
	}
	yield(engine.Delta{}, failure) // the attempt is out of the books by now
	return nil
}

// stream yields what the worker delivers and keeps the books, also when the
// consumer leaves or panics. It returns how the attempt failed, if it did.
func (a *attempt) stream(ctx context.Context, yield func(engine.Delta, error) bool) (failure *engine.Error) {
	trace := a.req.Trace.Begin(a.req.ID, a.w.spec.ID)
	actx, cancel := context.WithCancelCause(ctx)
	watch := newWatchdog(a, actx, cancel)
	defer func() {
		watch.stop()
		trace.Err = failure
		a.r.end(a, watch, failure)
	}()
	return a.deliver(ctx, watch, trace, yield)
}

// deliver is the loop of stream. It returns nil also when the consumer left.
func (a *attempt) deliver(ctx context.Context, watch *watchdog, trace *engine.Attempt, yield func(engine.Delta, error) bool) *engine.Error {
	for d, err := range a.client.Generate(watch.ctx, &a.req) {
		if a.finished {
			break // what comes after the finish reason does not count
		}
		if err != nil || watch.verdict.Load() != nil { // what comes after the verdict was never there
			return a.judge(ctx, watch, err)
		}
		if len(d.TokenIDs) == 0 && d.FinishReason == "" {
			continue // says nothing, and does not end the silence
		}
		watch.arrived()
		if id, ok := a.foreign(d.TokenIDs); ok {
			return a.failure(engine.ProtocolError, fmt.Errorf("token id %d is outside the vocabulary of %d", id, a.req.VocabSize))
		}
		if a.tokens == 0 {
			a.r.delivered(a)
		}
		a.tokens += len(d.TokenIDs)
		trace.Tokens = a.tokens
		a.finished = d.FinishReason != ""
		if !yield(d, nil) {
			return nil
		}
		if !a.finished { // else the client only closes its stream
			watch.restart()
		}
	}
	if a.finished {
		return nil
	}
	return a.judge(ctx, watch, a.failure(engine.Disconnected, errNoFinish))
}

// judge says how the attempt failed. The caller's context is asked first: a
// leaving client makes transport errors that look like a dying worker. Then the
// watchdog: what the client reports after it was cancelled is only the echo.
func (a *attempt) judge(ctx context.Context, watch *watchdog, err error) *engine.Error {
	if e := engine.CauseOf(ctx); e != nil {
		return e
	}
	if e := watch.verdict.Load(); e != nil {
		return e
	}
	e := *engine.AsError(err)
	e.WorkerID = a.w.spec.ID
	if a.tokens > 0 && (e.Kind == engine.Overloaded || e.Kind == engine.WorkerMisconfigured) {
		e.Kind = engine.EngineError // a refusal of what runs already is a failure
	}
	return &e
}

func (a *attempt) failure(kind engine.Kind, err error) *engine.Error {
	return &engine.Error{Kind: kind, WorkerID: a.w.spec.ID, Err: err}
}

// foreign returns the first id that cannot be of the model.
func (a *attempt) foreign(ids []engine.TokenID) (engine.TokenID, bool) {
	for _, id := range ids {
		if id < 0 || a.req.VocabSize > 0 && int(id) >= a.req.VocabSize {
			return id, true
		}
	}
	return 0, false
}

// delivered notes the first token of an attempt: the one that went first after
// an inhibition thereby opens the gate for all.
func (r *Router) delivered(a *attempt) {
	if !a.trial {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.w.epoch == a.epoch {
		r.reopen(a.w, "the first request after the inhibition was answered")
	}
}

// end takes an attempt out of the books and draws the conclusions about its
// worker. failure is nil also when the consumer left before the end.
func (r *Router) end(a *attempt, watch *watchdog, failure *engine.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, now := a.w, time.Now()
	w.inFlight--
	delete(w.streams, watch)
	if a.finished && w.epoch == a.epoch {
		w.step = 0
	}
	if failure != nil {
		if failure.Kind == engine.Overloaded {
			w.pause(failure, now)
		}
		r.inhibit(w, failure, a.epoch, now)
	}
	if a.trial && w.epoch == a.epoch && w.trial {
		w.trial = false // it proved nothing: the next one goes first
		r.signal()
	}
}
