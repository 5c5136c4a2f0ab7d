package engine

import (
	"slices"
	"testing"
)

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
		if !full.Uses(name) {
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
