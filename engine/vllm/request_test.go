package vllm

import (
	"encoding/json"
	"maps"
	"testing"

	"baton/engine"
)

// Every sampling parameter is in the request, also at its neutral value.
func TestBodies(t *testing.T) {
	seed := int64(1) << 40
	full := &engine.Request{
		ID: "r-1", Model: "m", TokenIDs: []engine.TokenID{1, 5, 9}, Priority: -3, CacheSalt: "salt",
		Sampling: engine.SamplingParams{Temperature: 0.5, TopP: 0.9, TopK: 40, MinP: 0.1, RepetitionPenalty: 1.1, PresencePenalty: 0.25, FrequencyPenalty: -0.5, Seed: &seed, LogitBias: map[engine.TokenID]float64{7: -100}},
		Stop:     engine.StopConditions{MaxTokens: 16, MinTokens: 3, TokenIDs: []engine.TokenID{4}, EOS: []engine.TokenID{2, 3}},
		Output:   engine.OutputOptions{Logprobs: true, TopLogprobs: 2},
	}
	plain := &engine.Request{
		Model: "m", TokenIDs: []engine.TokenID{1},
		Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1},
		Stop:     engine.StopConditions{MaxTokens: 1, MinTokens: 5, TokenIDs: []engine.TokenID{4}, EOS: []engine.TokenID{2}, IgnoreEOS: true},
		Output:   engine.OutputOptions{Logprobs: true},
	}
	tests := []struct {
		name   string
		encode func(*engine.Request) ([]byte, error)
		req    *engine.Request
		want   string
	}{
		{"completions", completionsBody, full, `{"prompt":[1,5,9],"model":"m","stream":true,"stream_options":{"include_usage":true},"return_token_ids":true,"return_tokens_as_token_ids":true,"priority":-3,"cache_salt":"salt","n":1,"max_tokens":16,"min_tokens":3,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,"repetition_penalty":1.1,"presence_penalty":0.25,"frequency_penalty":-0.5,"seed":1099511627776,"logit_bias":{"7":-100},"stop_token_ids":[4,2,3],"ignore_eos":false,"logprobs":2}`},
		{"completions, plain", completionsBody, plain, `{"prompt":[1],"model":"m","stream":true,"stream_options":{"include_usage":true},"return_token_ids":true,"return_tokens_as_token_ids":true,"n":1,"max_tokens":1,"min_tokens":1,"temperature":0,"top_p":1,"top_k":-1,"min_p":0,"repetition_penalty":1,"presence_penalty":0,"frequency_penalty":0,"stop_token_ids":[4],"ignore_eos":true,"logprobs":0}`},
		{"generate", generateBody, full, `{"token_ids":[1,5,9],"request_id":"r-1","model":"m","stream":true,"stream_options":{"include_usage":true},"priority":-3,"cache_salt":"salt","sampling_params":{"n":1,"max_tokens":16,"min_tokens":3,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,"repetition_penalty":1.1,"presence_penalty":0.25,"frequency_penalty":-0.5,"seed":1099511627776,"logit_bias":{"7":-100},"stop_token_ids":[4,2,3],"ignore_eos":false,"logprobs":2,"detokenize":false}}`},
	}
	for _, test := range tests {
		got, err := test.encode(test.req)
		if err != nil || !json.Valid(got) || string(got) != test.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", test.name, got, err, test.want)
		}
	}
}

func TestPenaltyCompensation(t *testing.T) {
	tests := []struct {
		name                string
		carried             int
		presence, frequency float64
		client, want        map[engine.TokenID]float64
	}{
		{"nothing carried", 0, 0.5, 0.5, nil, nil},
		{"no penalty", 4, 0, 0, map[engine.TokenID]float64{7: 1}, map[engine.TokenID]float64{7: 1}},
		{"frequency", 4, 0, 0.5, nil, map[engine.TokenID]float64{7: -1.5, 8: -0.5}},
		{"presence", 4, 0.25, 0, nil, map[engine.TokenID]float64{7: -0.25, 8: -0.25}},
		{"both, with the client's bias", 4, 0.25, 0.5, map[engine.TokenID]float64{7: 2, 9: 3}, map[engine.TokenID]float64{7: 0.25, 8: -0.75, 9: 3}},
		{"only what is carried counts", 1, 0, 0.5, nil, map[engine.TokenID]float64{7: -0.5}},
		{"negative penalties reward", 1, -0.25, -0.5, nil, map[engine.TokenID]float64{7: 0.75}},
		{"clamped", 4, 0, 2, map[engine.TokenID]float64{7: -99, 8: 100}, map[engine.TokenID]float64{7: -100, 8: 98}},
	}
	for _, test := range tests {
		client := maps.Clone(test.client)
		req := &engine.Request{
			TokenIDs: []engine.TokenID{8, 7, 7, 8, 7}, Carried: test.carried,
			Sampling: engine.SamplingParams{PresencePenalty: test.presence, FrequencyPenalty: test.frequency, LogitBias: test.client},
		}
		if got := biasOf(req); !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
		if !maps.Equal(test.client, client) {
			t.Errorf("%s: the request's own bias was changed", test.name)
		}
	}
}
