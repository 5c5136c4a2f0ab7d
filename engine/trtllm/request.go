package trtllm

import (
	"math"

	"baton/engine"
	jsonframe "baton/engine/frame"
)

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// completionsBody is the request of POST /v1/completions. Every sampling
// parameter is sent: a server that was started with --generation-config auto fills
// what is missing from the model's own defaults.
func completionsBody(req *engine.Request, known *fields) ([]byte, error) {
	p := &req.Sampling
	body := struct {
		Model             string                     `json:"model"`
		Stream            bool                       `json:"stream"`
		StreamOptions     streamOptions              `json:"stream_options"`
		Detokenize        bool                       `json:"detokenize"` // false: else there are no ids
		N                 int                        `json:"n"`
		MaxTokens         int                        `json:"max_tokens"`
		Temperature       float64                    `json:"temperature"`
		TopP              float64                    `json:"top_p"`
		TopK              int                        `json:"top_k"` // 0 = off
		MinP              float64                    `json:"min_p"`
		RepetitionPenalty float64                    `json:"repetition_penalty"`
		PresencePenalty   float64                    `json:"presence_penalty"`
		FrequencyPenalty  float64                    `json:"frequency_penalty"`
		IgnoreLength      *int                       `json:"prompt_ignore_length,omitempty"`
		Seed              *int64                     `json:"seed,omitempty"`
		LogitBias         map[engine.TokenID]float64 `json:"logit_bias,omitempty"`
		StopTokenIDs      []engine.TokenID           `json:"stop_token_ids"`
		IncludeStop       bool                       `json:"include_stop_str_in_output"` // and the stop id
		IgnoreEOS         bool                       `json:"ignore_eos"`
		Logprobs          int                        `json:"logprobs,omitempty"`
		Priority          *float64                   `json:"priority,omitempty"`
		ResponseFormat    any                        `json:"response_format,omitempty"`
	}{
		Model: req.Model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true}, N: 1, MaxTokens: req.Stop.MaxTokens,
		Temperature: p.Temperature, TopP: p.TopP, TopK: max(p.TopK, 0), MinP: p.MinP,
		RepetitionPenalty: p.RepetitionPenalty, PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty,
		Seed: seed(p.Seed, req.Carried), LogitBias: bias(p.LogitBias),
		StopTokenIDs: req.Stop.EndIDs(), IncludeStop: true, IgnoreEOS: req.Stop.IgnoreEOS,
	}
	if req.Constraint != nil {
		body.ResponseFormat = responseFormat(req.Constraint)
	}
	if p.Temperature == 0 {
		body.TopK = 1 // greedy in every version, also where a temperature of 0 is not
	}
	if known.ignoreLength && (p.PresencePenalty != 0 || p.FrequencyPenalty != 0) {
		// Penalties count the prompt. Without the prompt they count the answer, and
		// on a continuation the part of it that is in the prompt now.
		original := len(req.TokenIDs) - req.Carried
		body.IgnoreLength = &original
	}
	if req.Output.Logprobs {
		body.Logprobs = 1 // 0 would give none; the sampled token's own comes with any number
	}
	if known.priority && req.Priority != 0 {
		share := priority(req.Priority)
		body.Priority = &share
	}
	return jsonframe.WithIDs("prompt", req.TokenIDs, body)
}

// seed maps the client's seed to one that the engine takes, which is not
// negative. That of a continuation is derived.
func seed(s *int64, carried int) *int64 {
	if s == nil || carried == 0 && *s >= 0 {
		return s
	}
	derived := int64(engine.DerivedSeed(*s, carried) & math.MaxInt64)
	return &derived
}

// maxBias is the bound of a bias. The server refuses what is beyond.
const maxBias = 100

func bias(biases map[engine.TokenID]float64) map[engine.TokenID]float64 {
	if len(biases) == 0 {
		return nil
	}
	within := make(map[engine.TokenID]float64, len(biases))
	for id, b := range biases {
		within[id] = min(max(b, -maxBias), maxBias)
	}
	return within
}

// priority maps a priority of which the lower is served earlier to the engine's,
// which lies in [0, 1], is 0.5 by default, and of which the higher is served
// earlier. Different priorities of less than a million stay different.
func priority(p int) float64 {
	x := float64(p)
	return 0.5 - x/(2*(math.Abs(x)+1000))
}
