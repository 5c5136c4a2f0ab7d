package llamacpp

import (
	"maps"
	"math"
	"slices"

	"baton/engine"
	jsonframe "baton/engine/frame"
)

const (
	// pingInterval makes the server send a comment after each second without a
	// token. Its default is 30 s, and so long a stopped server stays silent.
	pingInterval = 1 // seconds

	// penaltyWindow is over how many of the last tokens penalties count, prompt
	// included; it is the engine's own default. A continuation is therefore
	// penalised exactly as the uncut answer.
	penaltyWindow = 64

	// randomSeed makes the engine draw one.
	randomSeed = math.MaxUint32
)

// completionBody is the request of POST /completion. Every sampling parameter
// is sent, because the server's own defaults are not neutral (top_k 40, top_p
// 0.95, min_p 0.05) and can be changed by its flags.
func completionBody(req *engine.Request, stream bool, grammar string) ([]byte, error) {
	p := &req.Sampling
	of := constraint{Grammar: grammar}
	if grammar == "" {
		of = constraintOf(req.Constraint)
	}
	probs := 0
	if req.Output.Logprobs {
		probs = max(1, req.Output.TopLogprobs) // 0 would give none at all
	}
	return jsonframe.WithIDs("prompt", req.TokenIDs, struct {
		NPredict         int      `json:"n_predict"` // never 0: that yields one token
		Stream           bool     `json:"stream"`
		ReturnTokens     bool     `json:"return_tokens"`
		CachePrompt      bool     `json:"cache_prompt"`
		PingInterval     int      `json:"sse_ping_interval"`
		Temperature      float64  `json:"temperature"`
		DynatempRange    float64  `json:"dynatemp_range"`
		TopK             int      `json:"top_k"`
		TopP             float64  `json:"top_p"`
		MinP             float64  `json:"min_p"`
		TopNSigma        float64  `json:"top_n_sigma"`
		TypicalP         float64  `json:"typical_p"`
		XTCProbability   float64  `json:"xtc_probability"`
		Mirostat         int      `json:"mirostat"`
		DryMultiplier    float64  `json:"dry_multiplier"`
		RepeatLastN      int      `json:"repeat_last_n"`
		RepeatPenalty    float64  `json:"repeat_penalty"`
		PresencePenalty  float64  `json:"presence_penalty"`
		FrequencyPenalty float64  `json:"frequency_penalty"`
		Seed             uint32   `json:"seed"`
		LogitBias        [][2]any `json:"logit_bias"`
		IgnoreEOS        bool     `json:"ignore_eos"`
		NProbs           int      `json:"n_probs"`
		PostSampling     bool     `json:"post_sampling_probs"`
		Stop             []string `json:"stop"`
		constraint
	}{
		NPredict: req.Stop.MaxTokens, Stream: stream, ReturnTokens: true, CachePrompt: true, PingInterval: pingInterval,
		Temperature: p.Temperature, TopK: max(p.TopK, 0), TopP: p.TopP, MinP: p.MinP, TopNSigma: -1, TypicalP: 1,
		RepeatLastN: penaltyWindow, RepeatPenalty: p.RepetitionPenalty, PresencePenalty: p.PresencePenalty, FrequencyPenalty: p.FrequencyPenalty,
		Seed: seed(p.Seed, req.Carried), LogitBias: bias(p.LogitBias), IgnoreEOS: req.Stop.IgnoreEOS, NProbs: probs,
		Stop: []string{}, constraint: of,
	})
}

// seed maps the client's seed to the engine's 32 bits. A seed of an uncut request
// that fits is used as it is. Others are derived from it, and so is that of a
// continuation.
func seed(s *int64, carried int) uint32 {
	if s == nil {
		return randomSeed
	}
	if carried == 0 && *s >= 0 && *s < randomSeed {
		return uint32(*s)
	}
	return uint32(engine.DerivedSeed(*s, carried) % randomSeed)
}

// bias lists the logit bias as pairs, in the order of the ids. The engine's word
// for minus infinity is false.
func bias(biases map[engine.TokenID]float64) [][2]any {
	pairs := make([][2]any, 0, len(biases))
	for _, id := range slices.Sorted(maps.Keys(biases)) {
		pair := [2]any{id, biases[id]}
		if math.IsInf(biases[id], -1) {
			pair[1] = false
		}
		pairs = append(pairs, pair)
	}
	return pairs
}
