package sglang

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"baton/engine"
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
	return withIDs(req, request)
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
		LogitBias:    bias(req, s.parameters),
		StopTokenIDs: stopIDs(&req.Stop), IgnoreEOS: req.Stop.IgnoreEOS,
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

// stopIDs lists the client's stop ids and, unless they are ignored, the model's
// end ids: the server may have been started with a configuration that knows
// fewer of them than the frontend.
func stopIDs(stop *engine.StopConditions) []engine.TokenID {
	ids := append([]engine.TokenID{}, stop.TokenIDs...)
	if !stop.IgnoreEOS {
		ids = append(ids, stop.EOS...)
	}
	return ids
}

// bias is the client's logit bias, plus what makes up for the penalties of
// carried tokens: SGLang counts over its own output only, and begins at zero on a
// continuation. It subtracts them before it adds the bias, and clamps neither.
// What is forgotten, the repetition penalty, is a factor, which no bias can be.
func bias(req *engine.Request, parameters engine.Parameters) map[engine.TokenID]float64 {
	compensated := func(name engine.Parameter, penalty float64) float64 {
		if parameters[name].Fidelity == engine.Compensated {
			return penalty
		}
		return 0
	}
	presence := compensated(engine.PresencePenalty, req.Sampling.PresencePenalty)
	frequency := compensated(engine.FrequencyPenalty, req.Sampling.FrequencyPenalty)
	carried := req.TokenIDs[len(req.TokenIDs)-req.Carried:]
	if len(carried) == 0 || presence == 0 && frequency == 0 {
		return req.Sampling.LogitBias // of a request that nobody changes
	}
	count := make(map[engine.TokenID]int)
	for _, id := range carried {
		count[id]++
	}
	merged := make(map[engine.TokenID]float64, len(count)+len(req.Sampling.LogitBias))
	maps.Copy(merged, req.Sampling.LogitBias)
	for id, n := range count {
		merged[id] -= frequency*float64(n) + presence
	}
	return merged
}

// withIDs encodes request with the ids in front, written by hand because a prompt
// has up to hundreds of thousands. One id outside the vocabulary would end the
// server, and the next one, and the one after that.
func withIDs(req *engine.Request, request any) ([]byte, error) {
	rest, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, 7*len(req.TokenIDs)+len(rest)+16)
	out = append(out, `{"input_ids":[`...)
	for i, id := range req.TokenIDs {
		if id < 0 || req.VocabSize > 0 && int(id) >= req.VocabSize {
			return nil, fmt.Errorf("token id %d is outside the vocabulary of %d", id, req.VocabSize)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, int64(id), 10)
	}
	out = append(out, "],"...)
	return append(out, rest[1:]...), nil
}
