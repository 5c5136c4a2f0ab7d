package trtllm

import (
	"encoding/json"
	"slices"
	"testing"

	"baton/engine"
)

// Every sampling parameter is in the request, also at its neutral value, and no
// field that some version does not know.
func TestBodies(t *testing.T) {
	seed := int64(1) << 40
	full := &engine.Request{
		ID: "r-1", Model: "m", TokenIDs: []engine.TokenID{1, 5, 9}, Priority: 1000, CacheSalt: "salt",
		Sampling: engine.SamplingParams{Temperature: 0.5, TopP: 0.9, TopK: 40, MinP: 0.1, RepetitionPenalty: 1.1, PresencePenalty: 0.25, FrequencyPenalty: -0.5, Seed: &seed, LogitBias: map[engine.TokenID]float64{7: -200, 8: 1}},
		Stop:     engine.StopConditions{MaxTokens: 16, TokenIDs: []engine.TokenID{4}, EOS: []engine.TokenID{2, 3}},
		Output:   engine.OutputOptions{Logprobs: true},
	}
	moved := *full
	moved.TokenIDs, moved.Carried, moved.Stop.MaxTokens = []engine.TokenID{1, 5, 9, 11, 12}, 2, 14
	plain := &engine.Request{
		Model: "m", TokenIDs: []engine.TokenID{1},
		Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1},
		Stop:     engine.StopConditions{MaxTokens: 1, EOS: []engine.TokenID{2}, IgnoreEOS: true},
	}
	const head = `"model":"m","stream":true,"stream_options":{"include_usage":true},"detokenize":false,"n":1,`
	newest := &fields{ignoreLength: true, priority: true}
	oldest := &fields{}
	tests := []struct {
		name  string
		req   *engine.Request
		known *fields
		want  string
	}{
		{"newest", full, newest, `{"prompt":[1,5,9],` + head + `"max_tokens":16,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,"repetition_penalty":1.1,"presence_penalty":0.25,"frequency_penalty":-0.5,"prompt_ignore_length":3,"seed":1099511627776,"logit_bias":{"7":-100,"8":1},"stop_token_ids":[4,2,3],"include_stop_str_in_output":true,"ignore_eos":false,"logprobs":1,"priority":0.25}`},
		{"continuation", &moved, newest, `{"prompt":[1,5,9,11,12],` + head + `"max_tokens":14,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,"repetition_penalty":1.1,"presence_penalty":0.25,"frequency_penalty":-0.5,"prompt_ignore_length":3,"seed":4303800260632642413,"logit_bias":{"7":-100,"8":1},"stop_token_ids":[4,2,3],"include_stop_str_in_output":true,"ignore_eos":false,"logprobs":1,"priority":0.25}`},
		{"oldest", full, oldest, `{"prompt":[1,5,9],` + head + `"max_tokens":16,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,"repetition_penalty":1.1,"presence_penalty":0.25,"frequency_penalty":-0.5,"seed":1099511627776,"logit_bias":{"7":-100,"8":1},"stop_token_ids":[4,2,3],"include_stop_str_in_output":true,"ignore_eos":false,"logprobs":1}`},
		{"plain", plain, newest, `{"prompt":[1],` + head + `"max_tokens":1,"temperature":0,"top_p":1,"top_k":1,"min_p":0,"repetition_penalty":1,"presence_penalty":0,"frequency_penalty":0,"stop_token_ids":[],"include_stop_str_in_output":true,"ignore_eos":true}`},
	}
	for _, test := range tests {
		got, err := completionsBody(test.req, test.known)
		if err != nil || !json.Valid(got) || string(got) != test.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", test.name, got, err, test.want)
		}
	}
}

func TestSeeds(t *testing.T) {
	value := func(s int64, carried int) int64 {
		derived := *seed(&s, carried)
		if derived < 0 {
			t.Errorf("seed %d after %d tokens is %d", s, carried, derived)
		}
		return derived
	}
	if seed(nil, 3) != nil || value(0, 0) != 0 || value(5, 0) != 5 {
		t.Error("a seed that the engine takes is not changed")
	}
	seen := []int64{value(5, 0), value(5, 1), value(5, 2), value(-5, 0), value(-5, 1), value(6, 1)}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 6 {
		t.Errorf("seeds collide: %v", seen)
	}
}

// The engine's priorities lie in [0, 1], and the higher is served earlier.
func TestPriority(t *testing.T) {
	if priority(0) != 0.5 {
		t.Errorf("none is %v", priority(0))
	}
	last := 1.0
	for _, p := range []int{-1 << 40, -1000000, -999999, -1, 0, 1, 2, 999999, 1000000, 1 << 40} {
		v := priority(p)
		if v < 0 || v > 1 || v >= last {
			t.Errorf("%d is %v, the one before it %v", p, v, last)
		}
		last = v
	}
}
