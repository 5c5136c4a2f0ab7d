package llamacpp

import (
	"encoding/json"
	"testing"

	"baton/engine"
)

func TestCompletionBody(t *testing.T) {
	s := int64(7)
	full := &engine.Request{
		TokenIDs: []engine.TokenID{1, 5, 9},
		Sampling: engine.SamplingParams{Temperature: 0.5, TopP: 0.9, TopK: 40, MinP: 0.1, RepetitionPenalty: 1.1, PresencePenalty: 0.25, FrequencyPenalty: -0.5, Seed: &s, LogitBias: map[engine.TokenID]float64{9: -100, 7: 1.5}},
		Stop:     engine.StopConditions{MaxTokens: 16, TokenIDs: []engine.TokenID{4}, EOS: []engine.TokenID{2}, IgnoreEOS: true},
		Output:   engine.OutputOptions{Logprobs: true, TopLogprobs: 2},
	}
	plain := &engine.Request{
		TokenIDs: []engine.TokenID{1},
		Sampling: engine.SamplingParams{TopP: 1, TopK: -1, RepetitionPenalty: 1},
		Stop:     engine.StopConditions{MaxTokens: 1},
		Output:   engine.OutputOptions{Logprobs: true},
	}
	tests := []struct {
		req    *engine.Request
		stream bool
		want   string
	}{
		{full, true, `{"prompt":[1,5,9],"n_predict":16,"stream":true,"return_tokens":true,"cache_prompt":true,"sse_ping_interval":1,"temperature":0.5,"dynatemp_range":0,"top_k":40,"top_p":0.9,"min_p":0.1,"top_n_sigma":-1,"typical_p":1,"xtc_probability":0,"mirostat":0,"dry_multiplier":0,"repeat_last_n":64,"repeat_penalty":1.1,"presence_penalty":0.25,"frequency_penalty":-0.5,"seed":7,"logit_bias":[[7,1.5],[9,-100]],"ignore_eos":true,"n_probs":2,"post_sampling_probs":false,"stop":[]}`},
		{plain, false, `{"prompt":[1],"n_predict":1,"stream":false,"return_tokens":true,"cache_prompt":true,"sse_ping_interval":1,"temperature":0,"dynatemp_range":0,"top_k":0,"top_p":1,"min_p":0,"top_n_sigma":-1,"typical_p":1,"xtc_probability":0,"mirostat":0,"dry_multiplier":0,"repeat_last_n":64,"repeat_penalty":1,"presence_penalty":0,"frequency_penalty":0,"seed":4294967295,"logit_bias":[],"ignore_eos":false,"n_probs":1,"post_sampling_probs":false,"stop":[]}`},
	}
	for _, test := range tests {
		got, err := completionBody(test.req, test.stream, "")
		if err != nil || !json.Valid(got) || string(got) != test.want {
			t.Errorf("got  %s, %v\nwant %s", got, err, test.want)
		}
	}
}

func TestSeed(t *testing.T) {
	of := func(s int64, carried int) uint32 { return seed(&s, carried) }
	if seed(nil, 0) != randomSeed || seed(nil, 5) != randomSeed {
		t.Error("no seed is not random")
	}
	for _, s := range []int64{0, 1, 7, randomSeed - 1} {
		if of(s, 0) != uint32(s) {
			t.Errorf("seed %d became %d", s, of(s, 0))
		}
	}
	seen := map[uint32]string{}
	for _, s := range []int64{7, 8, -1, randomSeed, randomSeed + 7, 1 << 40, -1 << 63} {
		for _, carried := range []int{0, 1, 2, 100} {
			got := of(s, carried)
			if got == randomSeed {
				t.Errorf("seed %d, %d carried: became the random one", s, carried)
			}
			if other, ok := seen[got]; ok {
				t.Errorf("seed %d, %d carried: the same as %s", s, carried, other)
			}
			seen[got] = string(rune(s)) + "/" + string(rune(carried))
			if of(s, carried) != got {
				t.Error("not deterministic")
			}
		}
	}
}
