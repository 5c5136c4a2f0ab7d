package migration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/engine"
)

// Config holds the operator's limits.
type Config struct {
	Limit     int // how often one request may be moved, over its whole life; 0 = never
	MaxSeqLen int // prompt + output beyond which a request is not moved, in tokens; 0 = no bound
}

// An Operator is an engine.Engine that survives the workers of the engine below.
type Operator struct {
	workers engine.Engine
	cfg     Config
	log     *slog.Logger
	metrics *metrics
}

// New returns an Operator over workers, usually the router. Its metrics are
// registered with reg under the prefix namespace.
func New(workers engine.Engine, cfg Config, log *slog.Logger, reg prometheus.Registerer, namespace string) *Operator {
	return &Operator{workers: workers, cfg: cfg, log: log, metrics: newMetrics(reg, namespace)}
}

// AddModel makes the series of a model exist, at 0, before its first request.
func (o *Operator) AddModel(name string) { o.metrics.addModel(name, o.cfg.Limit) }

// Generate streams the answer to req over as many attempts as it takes and as
// the limit allows. See engine.Engine for the contract.
func (o *Operator) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		if req.Trace == nil {
			r := *req
			r.Trace = &engine.Trace{}
			req = &r
		}
		run := &run{o: o, c: newContinuation(req, o.cfg), yield: yield, began: time.Now(), lastToken: noToken}
		run.c.moves = req.Trace.Moves // of earlier parts of the same answer
		run.c.ends = append(run.ends[:0], run.c.ends...)
		if run.c.tooLong && req.Carried == 0 { // else the part of the answer before this one was counted
			o.metrics.tooLong(req.Model)
		}
		run.stream(ctx)
	}
}

// A run is one request on its way through the operator: the continuation and
// what is told about it.
type run struct {
	over  bool // the current attempt is: nothing more is taken
	early bool // the worker ended it as if it were complete
	yield func(engine.Delta, error) bool
	c     continuation

	began     time.Time
	lastToken time.Duration // when the newest token came, after began
	move      *move         // the move whose first token has not come yet
	held      engine.Delta  // of an answer that is held back: what the current attempt gave

	failure *engine.Error // how the current attempt failed
	o       *Operator
	ends    [4]engine.TokenID // memory of c.ends, while that is enough
}

// noToken is the lastToken of a request that has no token yet.
const noToken = -1

// A move is a change of workers under way.
type move struct {
	kind     engine.MigrationType
	cause    *engine.Error
	from     string
	failedAt time.Time
	asked    int // attempts in the trace before it
}

// stream is the loop around the continuation: attempt, judge, next.
func (r *run) stream(ctx context.Context) {
	req := r.c.first()
	for {
		err := r.attempt(ctx, req)
		if err == nil {
			return // complete, or the consumer left
		}
		if cause := engine.CauseOf(ctx); cause != nil {
			err = cause // whatever broke, it broke because the caller went
		}
		r.settle(false)
		switch v := r.c.judge(err); {
		case v.finish != "":
			r.held.FinishReason = v.finish
			r.yield(r.held, nil)
			return
		case v.move != "":
			r.move = &move{kind: v.move, cause: err, from: err.WorkerID, failedAt: time.Now(), asked: len(r.c.req.Trace.Attempts)}
			r.c.req.Trace.SetMoving(true)
			r.held = engine.Delta{}
			req = r.c.next(err)
			r.c.req.Trace.Moves = r.c.moves
		default:
			if v.refuse != "" {
				r.o.metrics.refused(r.c.req.Model, v.refuse)
				r.c.req.Trace.NotMoved = r.notMoved(v.refuse)
			} else if r.c.suspected(err) {
				r.c.req.Trace.NotMoved = engine.PoisonSuspected
			}
			r.yield(engine.Delta{}, r.final(err, v.refuse))
			return
		}
	}
}

// attempt hands on the deltas of one attempt. It returns nil when the stream is
// over, else how the attempt failed.
func (r *run) attempt(ctx context.Context, req *engine.Request) *engine.Error {
	r.over, r.failure = false, nil
	r.o.workers.Generate(ctx, req)(r.take) // cheaper than a range statement: see the router's attempt
	if r.early {
		r.early = false
		if last := r.c.req.Trace.Last(); last != nil {
			last.Err = r.failure // below, where the trace is kept, it was a success
		}
	}
	if !r.over {
		return &engine.Error{Kind: engine.Internal, Err: errors.New("migration: a stream ended without a finish reason or an error")}
	}
	return r.failure
}

// take takes the next delta of the current attempt. It returns false when there
// is to be no other one.
func (r *run) take(d engine.Delta, err error) bool {
	if r.over {
		return false
	}
	if err != nil {
		r.over, r.failure = true, engine.AsError(err)
		return false
	}
	wasTooLong := r.c.tooLong
	d, early := r.c.observe(d)
	if len(d.TokenIDs) > 0 {
		if r.c.tooLong && !wasTooLong {
			r.o.metrics.tooLong(r.c.req.Model)
		}
		now := time.Since(r.began)
		if r.move != nil {
			r.arrived(now)
		}
		if !r.c.restarts() {
			r.lastToken = now
		}
	}
	if r.c.restarts() {
		r.hold(d)
		if d.FinishReason == "" && early == nil {
			return true
		}
		if d = r.held; early != nil {
			d = engine.Delta{} // the attempt failed, and with it what it gave
		}
	}
	r.over = d.FinishReason != "" || early != nil
	switch {
	case !r.yield(d, nil):
		r.over = true
		r.settle(false)
	case early != nil:
		early.WorkerID = r.worker()
		r.failure, r.early = early, true
	case r.over:
		r.settle(true)
	}
	return !r.over
}

// hold adds d to what is held back. It copies what belongs to the stream.
func (r *run) hold(d engine.Delta) {
	r.held.TokenIDs = append(r.held.TokenIDs, d.TokenIDs...)
	for _, p := range d.Logprobs {
		p.Top = slices.Clone(p.Top)
		r.held.Logprobs = append(r.held.Logprobs, p)
	}
	r.held.FinishReason = d.FinishReason
}

func (r *run) worker() string {
	if last := r.c.req.Trace.Last(); last != nil {
		return last.WorkerID
	}
	return ""
}

// arrived closes a move whose first token is there, now after the beginning.
func (r *run) arrived(now time.Duration) {
	gap := now - r.lastToken
	if r.lastToken == noToken { // the client waits from the failure on, but saw no gap between tokens
		gap = time.Since(r.move.failedAt)
	} else {
		r.o.metrics.gap(r.c.req.Model, gap)
	}
	if last := r.c.req.Trace.Last(); last != nil {
		last.Gap = gap
	}
	r.settle(true)
}

// settle counts and logs the move under way, if there is one: it was a move
// only if the request reached another worker and was not refused there.
func (r *run) settle(ok bool) {
	m := r.move
	if m == nil {
		return
	}
	r.move = nil
	model, trace := r.c.req.Model, r.c.req.Trace
	trace.SetMoving(false)
	r.o.metrics.duration(model, m.kind, ok, time.Since(m.failedAt))
	to := trace.Last()
	if to == nil || len(trace.Attempts) == m.asked || to.Err != nil && isRefusal(to) {
		return
	}
	trace.Moved(m.kind, r.c.req.Carried+r.c.generated-r.c.delivered)
	r.o.metrics.moved(model, m.kind, to.Carried)
	id, choice := splitID(r.c.req.ID)
	record := []any{
		"request_id", id, "choice", choice, "model", model, "from", m.from, "to", to.WorkerID,
		"kind", string(m.kind), "reason", m.cause.Kind.String(), "cause", m.cause.Error(),
		"tokens_carried", to.Carried, "moves_left", r.c.limit - r.c.moves,
	}
	if drift := r.approximate(to); drift != "" {
		record = append(record, "approximate", drift)
	}
	if ok { // else there was no first token after the gap
		record = append(record, "gap_ms", float64(to.Gap.Microseconds())/1000)
	}
	r.o.log.Warn("request migrated", record...)
}

// approximate names the parameters of the request that do not go on exactly at
// the attempt to as they were where the last token before it was generated.
func (r *run) approximate(to *engine.Attempt) string {
	if to.Carried == 0 {
		return "" // nothing has been generated by any rule yet
	}
	attempts := r.c.req.Trace.Attempts
	for i := len(attempts) - 2; i >= 0; i-- {
		if from := &attempts[i]; from.Tokens > 0 {
			var names []string
			for _, name := range from.Parameters.Drift(to.Parameters, r.c.req) {
				names = append(names, string(name))
			}
			return strings.Join(names, ",")
		}
	}
	return ""
}

// splitID takes the id of a choice, <request>-<choice> or <request>-<choice>p<part>,
// apart, so that a record has the request's id as all others have it.
func splitID(id string) (request, choice string) {
	if i := strings.LastIndexByte(id, '-'); i >= 0 {
		choice, _, _ = strings.Cut(id[i+1:], "p")
		return id[:i], choice
	}
	return id, ""
}

// isRefusal reports whether a failed attempt only was a worker saying no.
func isRefusal(a *engine.Attempt) bool {
	return a.Tokens == 0 && (a.Err.Kind == engine.Overloaded || a.Err.Kind == engine.WorkerMisconfigured)
}

// notMoved is a refusal as the trace has it, which tells apart what the metric
// does not.
func (r *run) notMoved(refuse refusal) engine.NotMoved {
	if refuse == refusedLimit && r.c.limit == 0 {
		return engine.MigrationOff
	}
	return engine.NotMoved(refuse)
}

// final is the error that the client gets.
func (r *run) final(err *engine.Error, refuse refusal) *engine.Error {
	e := *err
	switch {
	case refuse == refusedPoison:
		e.Kind = engine.Poison
	case r.c.generated > 0 && err.Kind == engine.InvalidRequest:
		// Not the client's fault alone: it names the loss of the worker before.
		e.Message = fmt.Sprintf("the answer was lost with its worker after %d tokens, and the next worker refused to go on with it: %s", r.c.generated, err.Message)
	}
	return &e
}
