package vllm

import (
	"baton/engine"
	jsonframe "baton/engine/frame"
)

// Every sampling parameter is sent, also at its neutral value: the server fills
// what is missing from the model's generation_config.json, which differs from
// worker to worker.

// sampling is the part that both endpoints share; in the generate endpoint it is
// an object of its own.
type sampling struct {
	N                 int                        `json:"n"`
	MaxTokens         int                        `json:"max_tokens"`
	MinTokens         int                        `json:"min_tokens"`
	Temperature       float64                    `json:"temperature"`
	TopP              float64                    `json:"top_p"`
	TopK              int                        `json:"top_k"` // -1 = off in every version; 0 only in newer ones
	MinP              float64                    `json:"min_p"`
	RepetitionPenalty float64                    `json:"repetition_penalty"`
	PresencePenalty   float64                    `json:"presence_penalty"`
	FrequencyPenalty  float64                    `json:"frequency_penalty"`
	Seed              *int64                     `json:"seed,omitempty"`
	LogitBias         map[engine.TokenID]float64 `json:"logit_bias,omitempty"`
	StopTokenIDs      []engine.TokenID           `json:"stop_token_ids"`
	IgnoreEOS         bool                       `json:"ignore_eos"`
	Logprobs          *int                       `json:"logprobs,omitempty"`
	StructuredOutputs *structured                `json:"structured_outputs,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// completionsBody is the request of POST /v1/completions.
func completionsBody(req *engine.Request) ([]byte, error) {
	return jsonframe.WithIDs("prompt", req.TokenIDs, struct {
		Model                  string        `json:"model"`
		Stream                 bool          `json:"stream"`
		StreamOptions          streamOptions `json:"stream_options"`
		ReturnTokenIDs         bool          `json:"return_token_ids"`
		ReturnTokensAsTokenIDs bool          `json:"return_tokens_as_token_ids"` // in logprobs, where text would be ambiguous
		Priority               int           `json:"priority,omitempty"`         // older servers refuse other values than 0
		CacheSalt              string        `json:"cache_salt,omitempty"`
		sampling
	}{
		Model: req.Model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
		ReturnTokenIDs: true, ReturnTokensAsTokenIDs: req.Output.Logprobs,
		Priority: req.Priority, CacheSalt: req.CacheSalt,
		sampling: samplingOf(req),
	})
}

// generateBody is the request of POST /inference/v1/generate.
func generateBody(req *engine.Request) ([]byte, error) {
	type params struct {
		sampling
		Detokenize bool `json:"detokenize"` // false: text that nobody reads costs the worker time
	}
	return jsonframe.WithIDs("token_ids", req.TokenIDs, struct {
		RequestID     string        `json:"request_id,omitempty"`
		Model         string        `json:"model,omitempty"`
		Stream        bool          `json:"stream"`
		StreamOptions streamOptions `json:"stream_options"`
		Priority      int           `json:"priority,omitempty"`
		CacheSalt     string        `json:"cache_salt,omitempty"`
		Params        params        `json:"sampling_params"`
	}{
		RequestID: req.ID, Model: req.Model, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
		Priority: req.Priority, CacheSalt: req.CacheSalt,
		Params: params{sampling: samplingOf(req)},
	})
}

func samplingOf(req *engine.Request) sampling {
	p := &req.Sampling
	s := sampling{
		N: 1, MaxTokens: req.Stop.MaxTokens,
		MinTokens:   min(req.Stop.MinTokens, req.Stop.MaxTokens), // more is refused, and means the same
		Temperature: p.Temperature, TopP: p.TopP, TopK: p.TopK, MinP: p.MinP,
		RepetitionPenalty: p.RepetitionPenalty, PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty,
		Seed: p.Seed, // kept on a continuation: newer servers key their noise by position
		// With a repetition penalty this is approximate: that scales a biased logit.
		LogitBias:    req.CompensatedBias(Parameters, maxBias),
		StopTokenIDs: req.Stop.EndIDs(), IgnoreEOS: req.Stop.IgnoreEOS,
	}
	if s.TopK <= 0 {
		s.TopK = -1
	}
	s.StructuredOutputs = structuredOf(req.Constraint)
	if req.Output.Logprobs {
		s.Logprobs = &req.Output.TopLogprobs
	}
	return s
}

// maxBias is the bound to which vLLM clamps a bias.
const maxBias = 100
