package thinking

import (
	"context"
	"errors"
	"slices"

	"baton/engine"
)

// A Stage is an engine.Engine over another one.
type Stage struct{ tokens engine.Engine }

// New returns a Stage over tokens, usually the migration operator.
func New(tokens engine.Engine) *Stage { return &Stage{tokens: tokens} }

// Generate streams the answer to req. A request without a constraint or without a
// Thought passes through.
func (s *Stage) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	if req.Constraint == nil || req.Thought == nil {
		return s.tokens.Generate(ctx, req)
	}
	return func(yield func(engine.Delta, error) bool) {
		r := *req
		if r.Trace == nil {
			r.Trace = &engine.Trace{}
		}
		a := &answer{tokens: s.tokens, req: &r, yield: yield}
		a.stream(ctx)
	}
}

// An answer is one request on its way through the stage.
type answer struct {
	tokens engine.Engine
	req    *engine.Request
	yield  func(engine.Delta, error) bool

	thought []engine.TokenID // all that was delivered
	parts   int              // how many were asked for
	over    bool             // nothing more is yielded
}

func (a *answer) stream(ctx context.Context) {
	if len(a.req.Thought.Opens) > 0 && !a.opens(ctx) {
		if !a.over {
			a.tokens.Generate(ctx, a.next())(a.yield)
		}
		return
	}
	// A token that ends the reasoning may also stand inside of it: gpt-oss begins
	// each of its messages with it.
	for !a.over && !hasEnd(a.thought, a.req.Thought.Ends) {
		if !a.hasRoom() {
			a.yield(engine.Delta{FinishReason: engine.FinishLength}, nil)
			return
		}
		a.think(ctx)
	}
	switch {
	case a.over:
	case !a.hasRoom():
		a.yield(engine.Delta{FinishReason: engine.FinishLength}, nil)
	default:
		a.tokens.Generate(ctx, a.next())(a.yield)
	}
}

// opens asks for one token, and delivers it if it opens a thought.
func (a *answer) opens(ctx context.Context) bool {
	r := a.next()
	r.Constraint, r.HoldBack = nil, false
	r.Stop.MaxTokens, r.Stop.MinTokens = 1, 0
	opened := false
	a.run(ctx, r, func(d engine.Delta, err error) {
		switch {
		case err != nil:
			a.fail(err)
		case len(d.TokenIDs) > 0 && slices.Contains(a.req.Thought.Opens, d.TokenIDs[0]):
			opened = true
			a.thought = append(a.thought, d.TokenIDs[0])
			d.TokenIDs, d.FinishReason = d.TokenIDs[:1], ""
			a.deliver(d)
		}
	})
	return opened
}

// think hands on a part of the reasoning. If the end of the part is not that of the
// reasoning, it is the end of the answer.
func (a *answer) think(ctx context.Context) {
	r := a.next()
	end := a.req.Thought.Ends[len(a.req.Thought.Ends)-1]
	r.Constraint, r.HoldBack = nil, false
	r.Stop.MinTokens = 0 // it would also keep the reasoning from ending
	r.Stop.TokenIDs = append(slices.Clone(r.Stop.TokenIDs), end)
	before := len(a.thought)
	a.run(ctx, r, func(d engine.Delta, err error) {
		if err != nil {
			a.fail(err)
			return
		}
		a.thought = append(a.thought, d.TokenIDs...)
		n := len(a.thought)
		if d.FinishReason == engine.FinishStop && n > before && a.thought[n-1] == end && !slices.Contains(a.req.Stop.EndIDs(), end) {
			d.FinishReason = ""
		}
		a.deliver(d)
	})
}

// run ranges over a part, until it has ended or the consumer has left.
func (a *answer) run(ctx context.Context, r *engine.Request, take func(engine.Delta, error)) {
	for d, err := range a.tokens.Generate(ctx, r) {
		take(d, err)
		if a.over || d.FinishReason != "" {
			return
		}
	}
	a.fail(&engine.Error{Kind: engine.Internal, Err: errors.New("thinking: a stream ended without a finish reason or an error")})
}

func (a *answer) deliver(d engine.Delta) {
	a.over = !a.yield(d, nil) || d.FinishReason != ""
}

func (a *answer) fail(err error) {
	a.over = true
	a.yield(engine.Delta{}, err)
}

// hasRoom reports whether at least one more token may be generated.
func (a *answer) hasRoom() bool {
	r, n := a.req, len(a.thought)
	return n < r.Stop.MaxTokens && (r.ContextLength == 0 || len(r.TokenIDs)+n < r.ContextLength)
}

// next returns the request that goes on with all that was delivered, where that lies
// in a cache.
func (a *answer) next() *engine.Request {
	r := *a.req
	r.Thought = nil
	if a.parts > 0 {
		r.ID = engine.SubID(r.ID, "p", a.parts, 2)
		if last := r.Trace.Last(); last != nil {
			r.Prefer = last.WorkerID
		}
		r.Avoid = slices.Concat(a.req.Avoid, failed(r.Trace))
	}
	a.parts++
	n := len(a.thought)
	r.TokenIDs = slices.Concat(r.TokenIDs, a.thought)
	r.Carried += n
	r.Stop.MaxTokens -= n
	r.Stop.MinTokens = max(0, r.Stop.MinTokens-n)
	return &r
}

// failed returns the workers that failed an earlier part.
func failed(t *engine.Trace) (workers []string) {
	for i := range t.Attempts {
		a := &t.Attempts[i]
		if a.Err != nil && (a.Tokens > 0 || a.Err.Kind != engine.Overloaded) && !slices.Contains(workers, a.WorkerID) {
			workers = append(workers, a.WorkerID)
		}
	}
	return workers
}

// hasEnd reports whether ids end with what ends a thought: see Thought.Ends.
func hasEnd(ids, end []engine.TokenID) bool {
	begin, last := end[:len(end)-1], end[len(end)-1]
	n := len(ids) - 1
	if n < 0 || ids[n] != last {
		return false
	}
	for i := n - 1; i >= 0 && len(begin) > 0; i-- {
		switch ids[i] {
		case begin[0]:
			return n-i >= len(begin) && slices.Equal(ids[i:i+len(begin)], begin)
		case last:
			return false // of something else that has ended
		}
	}
	return len(begin) == 0
}
