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

// appendSampling appends the members that both endpoints share; in the generate
// endpoint they are an object of their own.
func appendSampling(b []byte, req *engine.Request) (_ []byte, err error) {
	stop, p := &req.Stop, &req.Sampling
	b = appendInt(b, `"n":1,"max_tokens":`, stop.MaxTokens)
	b = appendInt(b, `,"min_tokens":`, min(stop.MinTokens, stop.MaxTokens)) // more is refused, and means the same
	b = appendFloat(b, `,"temperature":`, p.Temperature)
	b = appendFloat(b, `,"top_p":`, p.TopP)
	topK := p.TopK
	if topK <= 0 {
		topK = -1 // off in every version; 0 only in newer ones
	}
	b = appendInt(b, `,"top_k":`, topK)
	b = appendFloat(b, `,"min_p":`, p.MinP)
	b = appendFloat(b, `,"repetition_penalty":`, p.RepetitionPenalty)
	b = appendFloat(b, `,"presence_penalty":`, p.PresencePenalty)
	b = appendFloat(b, `,"frequency_penalty":`, p.FrequencyPenalty)
	if p.Seed != nil { // kept on a continuation: newer servers key their noise by position
		b = strconv.AppendInt(append(b, `,"seed":`...), *p.Seed, 10)
	}
	if bias := biasOf(req); len(bias) > 0 {
		b, err = appendAny(b, `,"logit_bias":`, bias)
	}
	b = jsonframe.AppendIDs(append(b, `,"stop_token_ids":`...), stop.EndIDs())
	b = strconv.AppendBool(append(b, `,"ignore_eos":`...), stop.IgnoreEOS)
	if req.Output.Logprobs {
		b = appendInt(b, `,"logprobs":`, req.Output.TopLogprobs)
	}
	if req.Constraint != nil && err == nil {
		b, err = appendAny(b, `,"structured_outputs":`, structuredOf(req.Constraint))
	}
	return b, err
}

// biasOf returns the client's bias, changed for the penalties of tokens that were
// carried. With a repetition penalty this is approximate: that scales a biased logit.
func biasOf(req *engine.Request) map[engine.TokenID]float64 {
	return req.CompensatedBias(Parameters, maxBias)
}

// maxBias is the bound to which vLLM clamps a bias.
const maxBias = 100

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
