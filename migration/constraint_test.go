package migration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"baton/engine"
)

// A constrained answer moves before its first token, and at any time if nobody is
// shown a part of it; then it begins anew. It is never continued.
func TestConstrained(t *testing.T) {
	const budget = 6
	for _, held := range []bool{false, true} {
		for first := range budget + 1 {
			for _, perID := range []int{1, 3} {
				for limit := range 2 {
					name := fmt.Sprintf("held %v, cut at %d, %d ids a delta, limit %d", held, first, perID, limit)
					s := &scripted{prompt: 3, eosAt: budget - 2, steps: []step{
						{worker: "a", tokens: first, fail: engine.Disconnected, perID: perID}, {worker: "b", tokens: -1, perID: perID},
					}}
					trace := &engine.Trace{}
					req := &engine.Request{
						ID: "r", Model: "m", TokenIDs: []engine.TokenID{7, 8, 9}, Trace: trace,
						Constraint: &engine.Constraint{JSONObject: true}, HoldBack: held,
						Stop: engine.StopConditions{MaxTokens: budget, EOS: []engine.TokenID{eos}},
					}
					want, _ := s.reference(req)
					op, _ := newOperator(s, Config{Limit: limit})
					got := collect(op.Generate(context.Background(), req))
					complete := first >= len(want) // only the finish reason was lost
					moves := limit > 0 && !complete && (held || first == 0)
					for _, asked := range s.asked {
						if asked.Carried != 0 || !slices.Equal(asked.TokenIDs, req.TokenIDs) || asked.Stop.MaxTokens != budget {
							t.Fatalf("%s: it was continued: %+v", name, asked)
						}
					}
					switch {
					case complete || moves:
						if got.err != nil || !slices.Equal(got.ids, want) || got.finish != engine.FinishStop || len(s.asked) > 2 || trace.Migrations() != len(s.asked)-1 {
							t.Fatalf("%s: got %v %q %v, want %v", name, got.ids, got.finish, got.err, want)
						}
						if moves && trace.Attempts[1].Migration != engine.NewRequest {
							t.Fatalf("%s: the move is %q", name, trace.Attempts[1].Migration)
						}
					default:
						reason := engine.GuidedDecoding
						if limit == 0 {
							reason = engine.MigrationOff
						}
						if got.err == nil || got.finish != "" || trace.NotMoved != reason || held && len(got.ids) > 0 {
							t.Fatalf("%s: got %v %q %v, not moved for %q", name, got.ids, got.finish, got.err, trace.NotMoved)
						}
					}
				}
			}
		}
	}
}

// A drained worker keeps a constrained answer of which something was delivered.
func TestConstrainedIsMovable(t *testing.T) {
	for _, held := range []bool{false, true} {
		req := &engine.Request{ID: "r", TokenIDs: []engine.TokenID{1}, Constraint: &engine.Constraint{JSONObject: true}, HoldBack: held,
			Stop: engine.StopConditions{MaxTokens: 9}}
		c := newContinuation(req, Config{Limit: 1})
		if !c.first().Movable() {
			t.Error("it is not movable before its first token")
		}
		c.observe(engine.Delta{TokenIDs: []engine.TokenID{5}})
		if c.movable() != held {
			t.Errorf("held back %v: movable %v after a token", held, c.movable())
		}
	}
}
