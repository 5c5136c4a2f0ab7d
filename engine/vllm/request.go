package vllm

import (
	"encoding/json"
	"strconv"

	"baton/engine"
	jsonframe "baton/engine/frame"
)

// Every sampling parameter is sent, also at its neutral value: the server fills
// what is missing from the model's generation_config.json, which differs from
// worker to worker.

// Bodies are written by hand: encoding/json takes as long as all else between the ids
// of a usual prompt and the worker's socket.

// sampling is the part that both endpoints share; in the generate endpoint it is
// an object of its own.
type sampling struct {
	MaxTokens         int
	MinTokens         int
	Temperature       float64
	TopP              float64
	TopK              int // -1 = off in every version; 0 only in newer ones
	MinP              float64
	RepetitionPenalty float64
	PresencePenalty   float64
	FrequencyPenalty  float64
	Seed              *int64
	LogitBias         map[engine.TokenID]float64
	StopTokenIDs      []engine.TokenID
	IgnoreEOS         bool
	Logprobs          *int
	StructuredOutputs *structured
}

// completionsBody is the request of POST /v1/completions.
func completionsBody(req *engine.Request) ([]byte, error) {
	b := appendPrompt(`{"prompt":`, req)
	b = jsonframe.AppendString(append(b, `,"model":`...), req.Model)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true},"return_token_ids":true,"return_tokens_as_token_ids":`...)
	b = strconv.AppendBool(b, req.Output.Logprobs) // in logprobs, where text would be ambiguous
	b, err := appendSampling(append(appendPriority(b, req), ','), req)
	return append(b, '}'), err
}

// generateBody is the request of POST /inference/v1/generate.
func generateBody(req *engine.Request) ([]byte, error) {
	b := appendPrompt(`{"token_ids":`, req)
	if req.ID != "" {
		b = jsonframe.AppendString(append(b, `,"request_id":`...), req.ID)
	}
	if req.Model != "" {
		b = jsonframe.AppendString(append(b, `,"model":`...), req.Model)
	}
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}`...)
	b, err := appendSampling(append(appendPriority(b, req), `,"sampling_params":{`...), req)
	return append(b, `,"detokenize":false}}`...), err // text that nobody reads costs the worker time
}

func appendPrompt(field string, req *engine.Request) []byte {
	const usualBytes = 640 // of all but the ids
	return jsonframe.AppendIDs(append(make([]byte, 0, usualBytes+7*len(req.TokenIDs)), field...), req.TokenIDs)
}

// appendPriority appends what older servers refuse if it has another value than
// none, and the salt.
func appendPriority(b []byte, req *engine.Request) []byte {
	if req.Priority != 0 {
		b = appendInt(b, `,"priority":`, req.Priority)
	}
	if req.CacheSalt != "" {
		b = jsonframe.AppendString(append(b, `,"cache_salt":`...), req.CacheSalt)
	}
	return b
}

func appendSampling(b []byte, req *engine.Request) (_ []byte, err error) {
	s := samplingOf(req)
	b = appendInt(b, `"n":1,"max_tokens":`, s.MaxTokens)
	b = appendInt(b, `,"min_tokens":`, s.MinTokens)
	b = appendFloat(b, `,"temperature":`, s.Temperature)
	b = appendFloat(b, `,"top_p":`, s.TopP)
	b = appendInt(b, `,"top_k":`, s.TopK)
	b = appendFloat(b, `,"min_p":`, s.MinP)
	b = appendFloat(b, `,"repetition_penalty":`, s.RepetitionPenalty)
	b = appendFloat(b, `,"presence_penalty":`, s.PresencePenalty)
	b = appendFloat(b, `,"frequency_penalty":`, s.FrequencyPenalty)
	if s.Seed != nil {
		b = strconv.AppendInt(append(b, `,"seed":`...), *s.Seed, 10)
	}
	if len(s.LogitBias) > 0 {
		b, err = appendAny(b, `,"logit_bias":`, s.LogitBias)
	}
	b = jsonframe.AppendIDs(append(b, `,"stop_token_ids":`...), s.StopTokenIDs)
	b = strconv.AppendBool(append(b, `,"ignore_eos":`...), s.IgnoreEOS)
	if s.Logprobs != nil {
		b = appendInt(b, `,"logprobs":`, *s.Logprobs)
	}
	if s.StructuredOutputs != nil && err == nil {
		b, err = appendAny(b, `,"structured_outputs":`, s.StructuredOutputs)
	}
	return b, err
}

func appendInt(b []byte, name string, v int) []byte {
	return strconv.AppendInt(append(b, name...), int64(v), 10)
}

func appendFloat(b []byte, name string, v float64) []byte {
	return strconv.AppendFloat(append(b, name...), v, 'g', -1, 64)
}

func appendAny(b []byte, name string, v any) ([]byte, error) {
	value, err := json.Marshal(v)
	return append(append(b, name...), value...), err
}

func samplingOf(req *engine.Request) sampling {
	p := &req.Sampling
	s := sampling{
		MaxTokens:   req.Stop.MaxTokens,
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
