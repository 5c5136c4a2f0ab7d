package migration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"baton/engine"
)

var movable = []engine.Kind{
	engine.CannotConnect, engine.ConnectionTimeout, engine.Disconnected, engine.Stalled,
	engine.EngineShutdown, engine.EngineError, engine.ProtocolError,
}

// Every short generation, cut at every pair of places, for every kind of
// failure, limit, way to finish and number of ids a delta: what the client gets
// is the fault-free answer or an error, and never more attempts than allowed.
func TestEveryCutOfAShortAnswer(t *testing.T) {
	const budget = 5
	cases := 0
	for _, eosAt := range []int{-1, 0, 2, 4} {
		for _, kind := range movable {
			for limit := range 4 {
				for first := range budget + 1 {
					for second := range budget + 1 {
						for _, late := range []bool{false, true} {
							for _, perID := range []int{1, 3} {
								s := &scripted{prompt: 3, eosAt: eosAt, steps: []step{
									{worker: "a", tokens: first, fail: kind, perID: perID},
									{worker: "b", tokens: second, fail: kind, perID: perID},
									{worker: "c", tokens: -1, late: late, perID: perID},
								}}
								name := fmt.Sprintf("eos at %d, %v, limit %d, cuts %d and %d, late %v, %d ids a delta", eosAt, kind, limit, first, second, late, perID)
								checkCut(t, name, s, limit, budget)
								cases++
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

func checkCut(t *testing.T, name string, s *scripted, limit, budget int) {
	t.Helper()
	req := &engine.Request{
		ID: "r", Model: "m", TokenIDs: []engine.TokenID{7, 8, 9},
		Stop: engine.StopConditions{MaxTokens: budget, EOS: []engine.TokenID{eos}},
	}
	want, finish := s.reference(req)
	op, _ := newOperator(s, Config{Limit: limit})
	got := collect(op.Generate(context.Background(), req))

	if len(s.asked) > limit+1 {
		t.Fatalf("%s: %d attempts", name, len(s.asked))
	}
	for i, r := range s.asked {
		carried := want[:r.Carried]
		if !slices.Equal(r.TokenIDs, slices.Concat(req.TokenIDs, carried)) {
			t.Fatalf("%s: attempt %d was given %v, not the prompt and %v", name, i, r.TokenIDs, carried)
		}
		if r.Stop.MaxTokens != budget-r.Carried || r.Stop.MaxTokens < 1 {
			t.Fatalf("%s: attempt %d has a budget of %d after %d", name, i, r.Stop.MaxTokens, r.Carried)
		}
	}
	if got.err != nil {
		if len(s.asked) != limit+1 || !slices.Equal(got.ids, want[:len(got.ids)]) {
			t.Fatalf("%s: error %v after %d attempts, with %v of %v", name, got.err, len(s.asked), got.ids, want)
		}
		return
	}
	if !slices.Equal(got.ids, want) || got.finish != finish {
		t.Fatalf("%s: got %v %s, want %v %s", name, got.ids, got.finish, want, finish)
	}
}
