package migration

import (
	"context"
	"errors"
	"hash/fnv"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"baton/engine"
)

// eos is the end id of the scripted model; ordinary ids are 1 to 99.
const eos engine.TokenID = 0

// nextToken is a hash of the whole sequence, so that one token lost, doubled or
// reordered changes all that follow.
func nextToken(ids []engine.TokenID) engine.TokenID {
	h := fnv.New64a()
	for _, id := range ids {
		h.Write([]byte{byte(id), byte(id >> 8)})
	}
	return engine.TokenID(h.Sum64()%99) + 1
}

// A step is how one attempt goes: so many tokens, then its end.
type step struct {
	worker string
	tokens int         // before the end; -1 = to the end of the answer
	fail   engine.Kind // how it fails, if it does not finish
	finish engine.FinishReason
	gone   bool // it fails because its worker is dead, and the request is to blame
	shared bool // other requests were lost with the worker
	late   bool // the finish reason comes in a delta of its own
	perID  int  // ids a delta; 0 = 1
}

// A scripted engine answers the n-th attempt by the n-th step, and remembers
// what it was asked. eosAt is the place of the end id in the answer, -1 = none.
type scripted struct {
	steps  []step
	prompt int
	eosAt  int
	asked  []engine.Request
}

func (s *scripted) token(ids []engine.TokenID) engine.TokenID {
	if s.eosAt >= 0 && len(ids)-s.prompt == s.eosAt {
		return eos
	}
	return nextToken(ids)
}

func (s *scripted) Generate(_ context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		n := len(s.asked)
		copied := *req
		copied.TokenIDs = slices.Clone(req.TokenIDs)
		s.asked = append(s.asked, copied)
		if n >= len(s.steps) {
			yield(engine.Delta{}, &engine.Error{Kind: engine.NoWorker})
			return
		}
		st := s.steps[n]
		attempt := req.Trace.Begin(req.ID, st.worker)
		fail := func(kind engine.Kind) {
			attempt.Err = &engine.Error{Kind: kind, WorkerID: st.worker, Message: "scripted", Culprit: st.gone, Shared: st.shared}
			yield(engine.Delta{}, attempt.Err)
		}
		ids := slices.Clone(req.TokenIDs)
		var pending []engine.TokenID // one buffer, reused: the operator must copy
		flush := func(reason engine.FinishReason) bool {
			d := engine.Delta{TokenIDs: pending, FinishReason: reason}
			if reason != "" && st.late {
				if len(pending) > 0 && !yield(engine.Delta{TokenIDs: pending}, nil) {
					return false
				}
				d.TokenIDs = nil
			}
			ok := yield(d, nil)
			for i := range pending {
				pending[i] = -1
			}
			pending = pending[:0]
			return ok && reason == ""
		}
		for i := 0; ; i++ {
			if st.tokens >= 0 && i == st.tokens {
				if len(pending) > 0 && !flush("") {
					return
				}
				if st.finish != "" {
					flush(st.finish)
					return
				}
				fail(st.fail)
				return
			}
			id := s.token(ids)
			ids = append(ids, id)
			pending = append(pending, id)
			attempt.Tokens++
			switch {
			case id == eos && !req.Stop.IgnoreEOS && st.tokens < 0:
				flush(engine.FinishStop)
				return
			case i+1 == req.Stop.MaxTokens && st.tokens < 0:
				flush(engine.FinishLength)
				return
			case len(pending) >= max(1, st.perID):
				if !flush("") {
					return
				}
			}
		}
	}
}

// reference is the answer without faults.
func (s *scripted) reference(req *engine.Request) ([]engine.TokenID, engine.FinishReason) {
	ids := slices.Clone(req.TokenIDs)
	for n := 1; ; n++ {
		id := s.token(ids)
		ids = append(ids, id)
		if id == eos && !req.Stop.IgnoreEOS {
			return ids[len(req.TokenIDs):], engine.FinishStop
		}
		if n == req.Stop.MaxTokens {
			return ids[len(req.TokenIDs):], engine.FinishLength
		}
	}
}

// An answer is all that a client sees of a stream.
type answer struct {
	ids    []engine.TokenID
	finish engine.FinishReason
	err    *engine.Error
}

func collect(s engine.Stream) answer {
	var o answer
	for d, err := range s {
		if err != nil {
			if o.err != nil || o.finish != "" {
				panic("the stream went on after its end")
			}
			errors.As(err, &o.err)
			continue
		}
		if o.err != nil || o.finish != "" {
			panic("the stream went on after its end")
		}
		o.ids = append(o.ids, d.TokenIDs...)
		o.finish = d.FinishReason
	}
	return o
}

func newOperator(s *scripted, cfg Config) (*Operator, *prometheus.Registry) {
	reg := prometheus.NewRegistry()
	return New(s, cfg, slog.New(slog.DiscardHandler), reg, "test"), reg
}

// endless delivers n tokens, one a delta, at no cost of its own.
type endless struct{ n int }

func (e *endless) Generate(context.Context, *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		ids := []engine.TokenID{5}
		for range e.n {
			if !yield(engine.Delta{TokenIDs: ids}, nil) {
				return
			}
		}
		yield(engine.Delta{FinishReason: engine.FinishStop}, nil)
	}
}

func newRegistry() *prometheus.Registry { return prometheus.NewRegistry() }
