package sglang

import (
	"fmt"
	"math"

	"baton/engine"
	jsonframe "baton/engine/frame"
)

// Every sampling parameter is sent, also at its neutral value: the server fills
// what is missing from the model's generation_config.json and from its own
// --preferred-sampling-params. A parameter that a version does not know makes it
// refuse the request, or worse, so nothing newer is sent than what the server
// says it can do.

// samplingParams are SGLang's, by its names.
type samplingParams struct {
	MaxNewTokens      int                        `json:"max_new_tokens"`
	MinNewTokens      int                        `json:"min_new_tokens"`
	Temperature       float64                    `json:"temperature"`
	TopP              float64                    `json:"top_p"`
	TopK              int                        `json:"top_k"` // -1 = off in every version; 0 only in newer ones
	MinP              float64                    `json:"min_p"`
	RepetitionPenalty float64                    `json:"repetition_penalty"`
	PresencePenalty   float64                    `json:"presence_penalty"`
	FrequencyPenalty  float64                    `json:"frequency_penalty"`
	LogitBias         map[engine.TokenID]float64 `json:"logit_bias,omitempty"`
	Seed              *int64                     `json:"sampling_seed,omitempty"`
	Stop              *string                    `json:"stop"` // none: strings are matched above
	StopTokenIDs      []engine.TokenID           `json:"stop_token_ids"`
	IgnoreEOS         bool                       `json:"ignore_eos"`
	grammar
}

// body is the request of POST /generate.
func body(req *engine.Request, s *settings) ([]byte, error) {
	request := struct {
		RID             string         `json:"rid"`
		Stream          bool           `json:"stream"`
		ReturnLogprob   bool           `json:"return_logprob"`
		LogprobStart    int            `json:"logprob_start_len"` // -1 = none of the prompt
		TopLogprobs     int            `json:"top_logprobs_num"`
		TextInLogprobs  bool           `json:"return_text_in_logprobs"`
		LoRA            string         `json:"lora_path,omitempty"` // the adapter's name
		Priority        *int           `json:"priority,omitempty"`
		CacheNamespace  string         `json:"extra_key,omitempty"`
		SamplingOptions samplingParams `json:"sampling_params"`
	}{
		RID: req.ID, Stream: true,
		ReturnLogprob: req.Output.Logprobs, LogprobStart: -1,
		CacheNamespace:  req.CacheSalt,
		SamplingOptions: samplingOf(req, s),
	}
	if req.Output.Logprobs {
		request.TopLogprobs = req.Output.TopLogprobs
	}
	if s.adapters[req.Model] {
		request.LoRA = req.Model
	}
	if s.parameters[engine.Priority].Fidelity != engine.Unsupported {
		// Also 0: a server that schedules by priority serves requests without one last.
		p := req.Priority
		if !s.lowFirst {
			p = -p
		}
		request.Priority = &p
	}
	for _, id := range req.TokenIDs {
		// One outside the vocabulary would end the server, and the next one, and the
		// one after that.
		if id < 0 || req.VocabSize > 0 && int(id) >= req.VocabSize {
			return nil, fmt.Errorf("token id %d is outside the vocabulary of %d", id, req.VocabSize)
		}
	}
	return jsonframe.WithIDs("input_ids", req.TokenIDs, request)
}

func samplingOf(req *engine.Request, s *settings) samplingParams {
	p := &req.Sampling
	budget := req.Stop.MaxTokens
	if room := s.contextLength - len(req.TokenIDs); s.contextLength > 0 && room > 0 {
		budget = min(budget, room) // more is refused, not cut
	}
	params := samplingParams{
		MaxNewTokens: budget,
		Temperature:  p.Temperature, TopP: p.TopP, TopK: p.TopK, MinP: p.MinP,
		RepetitionPenalty: p.RepetitionPenalty, PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty,
		// Penalties are subtracted before the bias is added, and neither is clamped. What is
		// forgotten, the repetition penalty, is a factor, which no bias can be.
		LogitBias:    req.CompensatedBias(s.parameters, math.Inf(1)),
		StopTokenIDs: req.Stop.EndIDs(), IgnoreEOS: req.Stop.IgnoreEOS,
	}
	params.grammar = grammarOf(req.Constraint)
	if params.TopK <= 0 {
		params.TopK = -1
	}
	if s.parameters[engine.MinTokens].Fidelity != engine.Unsupported {
		params.MinNewTokens = min(req.Stop.MinTokens, budget) // more is refused, and means the same
	}
	if s.parameters[engine.Seed].Fidelity != engine.Unsupported {
		params.Seed = p.Seed // kept on a continuation: the noise is keyed by position
	}
	return params
}
