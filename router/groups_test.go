package router

import (
	"slices"
	"testing"
	"testing/synctest"

	"baton/engine"
)

func TestGroups(t *testing.T) {
	newRig(t, 2, Config{}, func(t *testing.T, r *rig) {
		w3 := r.spec("w3")
		r.workers["w3"].models = []Model{{Name: "m", Own: "base", ContextLength: 64}, {Name: "a", Own: "ad", Base: "m"}}
		r.SetWorkers([]Spec{r.spec("w1"), r.spec("w2"), w3})
		synctest.Wait()
		groups := r.Groups()
		if len(groups) != 2 || groups[0].Model != "a" || groups[0].Base != "m" || groups[1].Model != "m" || groups[1].Base != "" {
			t.Fatalf("groups %+v", groups)
		}
		if m := groups[0].Members; len(m) != 1 || m[0].WorkerID != "w3" || m[0].Own != "ad" || m[0].Kind != "fake" {
			t.Errorf("members of the adapter %+v", m)
		}
		var ids []string
		for _, m := range groups[1].Members {
			ids = append(ids, m.WorkerID)
		}
		if !slices.Equal(ids, []string{"w1", "w2", "w3"}) {
			t.Errorf("members of the model %v", ids)
		}
		r.SetWorkers([]Spec{w3})
		synctest.Wait()
		if groups := r.Groups(); len(groups) != 2 || len(groups[1].Members) != 1 {
			t.Errorf("a removed worker is still in %+v", groups)
		}
	})
}

func TestGroupOfUnequalMembers(t *testing.T) {
	a := engine.Parameters{engine.PresencePenalty: {Meaning: "output"}, engine.Seed: {Fidelity: engine.Redrawn, Meaning: "a"}}
	b := engine.Parameters{engine.PresencePenalty: {Meaning: "all"}, engine.Seed: {Meaning: "a"}, engine.CacheSalt: {Fidelity: engine.Unsupported, Meaning: "b"}}
	none := engine.Parameters{engine.PresencePenalty: {Fidelity: engine.Unsupported}, engine.CacheSalt: {Fidelity: engine.Unsupported}}
	for _, test := range []struct {
		name              string
		members           []Member
		different         []engine.Parameter
		partial           []engine.Parameter
		smallest, largest int
	}{
		{"one", []Member{{Parameters: a, ContextLength: 8}}, nil, nil, 8, 8},
		{"two of a kind", []Member{{Parameters: a, ContextLength: 8}, {Parameters: a}}, nil, nil, 8, 8},
		{"two kinds", []Member{{Parameters: a, ContextLength: 8}, {Parameters: b, ContextLength: 4}}, []engine.Parameter{engine.PresencePenalty}, []engine.Parameter{engine.CacheSalt}, 4, 8},
		{"the first has none", []Member{{Parameters: none}, {Parameters: a}, {Parameters: b}}, []engine.Parameter{engine.PresencePenalty, engine.Seed}, []engine.Parameter{engine.PresencePenalty, engine.CacheSalt}, 0, 0},
		{"nobody has it", []Member{{Parameters: none}, {Parameters: none}}, nil, nil, 0, 0},
	} {
		g := Group{Members: test.members}
		smallest, largest := g.Contexts()
		if !slices.Equal(g.Differences(), test.different) || !slices.Equal(g.Partial(), test.partial) || smallest != test.smallest || largest != test.largest {
			t.Errorf("%s: different %v, partial %v, contexts %d to %d", test.name, g.Differences(), g.Partial(), smallest, largest)
		}
	}
}

// The trace knows what the worker of an attempt makes of each parameter, so that a
// move can tell what was not exact.
func TestTraceHasTheParameters(t *testing.T) {
	newRig(t, 1, Config{}, func(t *testing.T, r *rig) {
		r.workers["w1"].parameters = engine.Parameters{engine.Seed: {Meaning: "here"}}
		req := request()
		req.Trace = &engine.Trace{}
		for _, err := range r.Generate(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := req.Trace.Last().Parameters[engine.Seed].Meaning; got != "here" {
			t.Errorf("parameters %v", req.Trace.Last().Parameters)
		}
	})
}
