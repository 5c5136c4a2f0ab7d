package vllm

import (
	"encoding/json"
	"strconv"

	"baton/engine"
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
	return withIDs("prompt", req.TokenIDs, struct {
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
	return withIDs("token_ids", req.TokenIDs, struct {
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
		Seed:         p.Seed, // kept on a continuation: newer servers key their noise by position
		LogitBias:    bias(req),
		StopTokenIDs: stopIDs(&req.Stop), IgnoreEOS: req.Stop.IgnoreEOS,
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

// maxBias is the bound to which vLLM clamps a bias.
const maxBias = 100

// bias is the client's logit bias, plus what makes up for the penalties of
// carried tokens: vLLM counts presence and frequency over its own output only,
// and begins at zero on a continuation. Frequency is exact. Presence is, until a
// carried token comes again, when it counts twice. With a repetition penalty both
// are approximate, because it scales a biased logit.
func bias(req *engine.Request) map[engine.TokenID]float64 {
	presence, frequency := req.Sampling.PresencePenalty, req.Sampling.FrequencyPenalty
	carried := req.TokenIDs[len(req.TokenIDs)-req.Carried:]
	if len(carried) == 0 || presence == 0 && frequency == 0 {
		return req.Sampling.LogitBias // of a request that nobody changes
	}
	count := make(map[engine.TokenID]int)
	for _, id := range carried {
		count[id]++
	}
	merged := make(map[engine.TokenID]float64, len(count)+len(req.Sampling.LogitBias))
	for id, b := range req.Sampling.LogitBias {
		merged[id] = b
	}
	for id, n := range count {
		b := merged[id] - frequency*float64(n) - presence
		merged[id] = min(max(b, -maxBias), maxBias)
	}
	return merged
}

// withIDs encodes body, which must have fields, with one more field in front: a
// list of ids, written by hand because a prompt has up to hundreds of thousands.
func withIDs(field string, ids []engine.TokenID, body any) ([]byte, error) {
	rest, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(field)+7*len(ids)+len(rest)+8)
	out = append(out, `{"`+field+`":[`...)
	for i, id := range ids {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(out, int64(id), 10)
	}
	out = append(out, "],"...)
	return append(out, rest[1:]...), nil
}
