package engine

import (
	"slices"
	"testing"
)

var constraints = []Parameter{JSONSchema, JSONObject, Regex, Choice, Grammar, StructuralTag}

// A constraint is of one sort, and an engine that ignores one of its keywords is
// told.
func TestConstraint(t *testing.T) {
	for i, c := range []*Constraint{
		{JSONSchema: []byte("{}"), Keywords: []string{"not", "contains"}}, {JSONObject: true}, {Regex: "a"},
		{Choice: []string{"a"}}, {Grammar: "a"}, {StructuralTag: []byte("{}")},
	} {
		req := &Request{Constraint: c, Sampling: SamplingParams{TopP: 1, RepetitionPenalty: 1}}
		for j, name := range constraints {
			if req.Uses(name) != (i == j) {
				t.Errorf("constraint %d: uses %s: %v", i, name, req.Uses(name))
			}
		}
	}
	c := &Constraint{Keywords: []string{"not", "contains"}}
	if got := c.Unenforced([]string{"contains"}) + c.Unenforced([]string{"if"}) + (*Constraint)(nil).Unenforced([]string{"not"}); got != "contains" {
		t.Errorf("unenforced: %q", got)
	}
}

// A request that uses nothing uses nothing, and one that uses everything each.
func TestUses(t *testing.T) {
	neutral := &Request{Sampling: SamplingParams{TopP: 1, RepetitionPenalty: 1}}
	seed := int64(1)
	full := &Request{
		Sampling: SamplingParams{Temperature: 1, TopP: .5, TopK: 1, MinP: .1, RepetitionPenalty: 2, PresencePenalty: 1,
			FrequencyPenalty: 1, Seed: &seed, LogitBias: map[TokenID]float64{1: 1}},
		Stop:     StopConditions{MaxTokens: 1, MinTokens: 1, TokenIDs: []TokenID{1}, IgnoreEOS: true},
		Output:   OutputOptions{Logprobs: true},
		Priority: 1, CacheSalt: "s",
	}
	for _, name := range AllParameters {
		if neutral.Uses(name) {
			t.Errorf("the neutral request uses %s", name)
		}
		if !full.Uses(name) && !slices.Contains(constraints, name) {
			t.Errorf("the full request does not use %s", name)
		}
	}
	greedy := *full
	greedy.Sampling.Temperature = 0
	if greedy.Uses(Seed) || !greedy.Uses(PresencePenalty) {
		t.Error("greedy decoding draws no number, and has penalties")
	}
}

func TestUnsupportedAndDrift(t *testing.T) {
	req := &Request{Sampling: SamplingParams{TopP: 1, RepetitionPenalty: 1.1, PresencePenalty: 1}, CacheSalt: "s"}
	a := Parameters{RepetitionPenalty: {Meaning: "all"}, PresencePenalty: {Fidelity: Compensated, Meaning: "output"}}
	b := Parameters{RepetitionPenalty: {Meaning: "output"}, PresencePenalty: {Meaning: "output"}, CacheSalt: {Fidelity: Unsupported}}
	if got := a.Unsupported(req); got != "" {
		t.Errorf("a lacks %q", got)
	}
	if got := b.Unsupported(req); got != "cache_salt" {
		t.Errorf("b lacks %q, want cache_salt", got)
	}
	for _, test := range []struct {
		from, to Parameters
		want     []Parameter
	}{
		{a, a, []Parameter{PresencePenalty}},                    // compensated
		{b, b, []Parameter{CacheSalt}},                          // a worker that should not be asked
		{b, a, []Parameter{RepetitionPenalty, PresencePenalty}}, // another meaning; compensated
		{nil, nil, nil},
	} {
		if got := test.from.Drift(test.to, req); !slices.Equal(got, test.want) {
			t.Errorf("drift %v, want %v", got, test.want)
		}
	}
}

func TestDifferences(t *testing.T) {
	a := Parameters{PresencePenalty: {Fidelity: Compensated, Meaning: "output"}, Seed: {Meaning: "a"}, CacheSalt: {Meaning: "a"}}
	b := Parameters{PresencePenalty: {Meaning: "output"}, Seed: {Meaning: "b"}, CacheSalt: {Fidelity: Unsupported}}
	if got := a.Differences(b); !slices.Equal(got, []Parameter{Seed}) || !slices.Equal(b.Differences(a), got) {
		t.Errorf("differences %v and %v, want the seed", got, b.Differences(a))
	}
}
