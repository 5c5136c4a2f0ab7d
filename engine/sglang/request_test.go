package sglang

import (
	"encoding/json"
	"maps"
	"testing"

	"baton/engine"
)

// Every sampling parameter is in the request, also at its neutral value.
func TestBody(t *testing.T) {
	seed := int64(1) << 40
	full := &engine.Request{
		ID: "r-1", Model: "m", TokenIDs: []engine.TokenID{1, 5, 9}, Priority: -3, CacheSalt: "salt",
		Sampling: engine.SamplingParams{Temperature: 0.5, TopP: 0.9, TopK: 40, MinP: 0.1, RepetitionPenalty: 1.1, PresencePenalty: 0.25, FrequencyPenalty: -0.5, Seed: &seed, LogitBias: map[engine.TokenID]float64{7: -100}},
		Stop:     engine.StopConditions{MaxTokens: 16, MinTokens: 3, TokenIDs: []engine.TokenID{4}, EOS: []engine.TokenID{2, 3}},
		Output:   engine.OutputOptions{Logprobs: true, TopLogprobs: 2},
	}
	plain := &engine.Request{
		ID: "r-2", Model: "adapter", TokenIDs: []engine.TokenID{1},
		Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1},
		Stop:     engine.StopConditions{MaxTokens: 1, MinTokens: 5, TokenIDs: []engine.TokenID{4}, EOS: []engine.TokenID{2}, IgnoreEOS: true},
		Output:   engine.OutputOptions{TopLogprobs: 3},
	}
	all := settings{deterministic: true, priorities: true}
	lowFirst := settings{deterministic: true, priorities: true, lowFirst: true, contextLength: 8, adapters: map[string]bool{"adapter": true}}
	none := settings{noTokenizer: true}
	tests := []struct {
		name     string
		req      *engine.Request
		settings settings
		want     string
	}{
		{"every option, larger priorities first", full, all, `{"input_ids":[1,5,9],"rid":"r-1","stream":true,"return_logprob":true,"logprob_start_len":-1,"top_logprobs_num":2,"return_text_in_logprobs":false,"priority":3,"extra_key":"salt","sampling_params":{"max_new_tokens":16,"min_new_tokens":3,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,"repetition_penalty":1.1,"presence_penalty":0.25,"frequency_penalty":-0.5,"logit_bias":{"7":-100},"sampling_seed":1099511627776,"stop":null,"stop_token_ids":[4,2,3],"ignore_eos":false}}`},
		{"a small context, smaller priorities first", full, lowFirst, `{"input_ids":[1,5,9],"rid":"r-1","stream":true,"return_logprob":true,"logprob_start_len":-1,"top_logprobs_num":2,"return_text_in_logprobs":false,"priority":-3,"extra_key":"salt","sampling_params":{"max_new_tokens":5,"min_new_tokens":3,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,"repetition_penalty":1.1,"presence_penalty":0.25,"frequency_penalty":-0.5,"logit_bias":{"7":-100},"sampling_seed":1099511627776,"stop":null,"stop_token_ids":[4,2,3],"ignore_eos":false}}`},
		{"no option", full, none, `{"input_ids":[1,5,9],"rid":"r-1","stream":true,"return_logprob":true,"logprob_start_len":-1,"top_logprobs_num":2,"return_text_in_logprobs":false,"extra_key":"salt","sampling_params":{"max_new_tokens":16,"min_new_tokens":0,"temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.1,"repetition_penalty":1.1,"presence_penalty":0.25,"frequency_penalty":-0.5,"logit_bias":{"7":-100},"sampling_seed":1099511627776,"stop":null,"stop_token_ids":[4,2,3],"ignore_eos":false}}`},
		{"plain, of an adapter", plain, lowFirst, `{"input_ids":[1],"rid":"r-2","stream":true,"return_logprob":false,"logprob_start_len":-1,"top_logprobs_num":0,"return_text_in_logprobs":false,"lora_path":"adapter","priority":0,"sampling_params":{"max_new_tokens":1,"min_new_tokens":1,"temperature":0,"top_p":1,"top_k":-1,"min_p":0,"repetition_penalty":1,"presence_penalty":0,"frequency_penalty":0,"stop":null,"stop_token_ids":[4],"ignore_eos":true}}`},
	}
	for _, test := range tests {
		test.settings.parameters = parametersOf(&test.settings)
		got, err := body(test.req, &test.settings)
		if err != nil || !json.Valid(got) || string(got) != test.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", test.name, got, err, test.want)
		}
	}
}

// An id that the server does not know ends it.
func TestForeignIDsAreNotSent(t *testing.T) {
	for _, id := range []engine.TokenID{-1, 100, 101} {
		req := &engine.Request{TokenIDs: []engine.TokenID{1, id, 2}, VocabSize: 100, Stop: engine.StopConditions{MaxTokens: 1}}
		if got, err := body(req, newSettings()); err == nil {
			t.Errorf("id %d: %s", id, got)
		}
	}
	unknown := &engine.Request{TokenIDs: []engine.TokenID{999999}, Stop: engine.StopConditions{MaxTokens: 1}}
	if _, err := body(unknown, newSettings()); err != nil {
		t.Errorf("without a vocabulary: %v", err)
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
		{"nothing is clamped", 4, 0, 2, map[engine.TokenID]float64{7: -99}, map[engine.TokenID]float64{7: -105, 8: -2}},
	}
	for _, test := range tests {
		client := maps.Clone(test.client)
		req := &engine.Request{
			TokenIDs: []engine.TokenID{8, 7, 7, 8, 7}, Carried: test.carried,
			Sampling: engine.SamplingParams{PresencePenalty: test.presence, FrequencyPenalty: test.frequency, RepetitionPenalty: 1.5, LogitBias: test.client},
		}
		if got := samplingOf(req, &settings{parameters: Parameters}).LogitBias; !maps.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
		if !maps.Equal(test.client, client) {
			t.Errorf("%s: the request's own bias was changed", test.name)
		}
	}
	exact := engine.Parameters{}
	req := &engine.Request{TokenIDs: []engine.TokenID{8, 7}, Carried: 2, Sampling: engine.SamplingParams{FrequencyPenalty: 1, PresencePenalty: 1}}
	if got := samplingOf(req, &settings{parameters: exact}).LogitBias; len(got) != 0 {
		t.Errorf("what the table calls exact is compensated: %v", got)
	}
}
