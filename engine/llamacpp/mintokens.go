package llamacpp

import (
	"context"
	"maps"
	"math"

	"baton/engine"
)

// generateMinimum gives a request with min_tokens, which llama.cpp lacks, as two
// on the same server: one whose budget is the minimum and which cannot choose an
// end id, then its continuation with the rest of the budget. A stop id is
// suppressed in the same way as in the engines that have the parameter: its
// probability is zero until the minimum is reached.
func (c *Client) generateMinimum(ctx context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		first, rest := *req, *req
		first.Stop = engine.StopConditions{MaxTokens: min(req.Stop.MinTokens, req.Stop.MaxTokens), IgnoreEOS: true}
		first.Sampling.LogitBias = withBans(req.Sampling.LogitBias, req.Stop)
		rest.Stop.MinTokens = 0
		rest.TokenIDs = append([]engine.TokenID(nil), req.TokenIDs...)
		for delta, err := range c.generate(ctx, &first) {
			if err != nil {
				yield(engine.Delta{}, err)
				return
			}
			rest.TokenIDs = append(rest.TokenIDs, delta.TokenIDs...)
			rest.Carried += len(delta.TokenIDs)
			rest.Stop.MaxTokens -= len(delta.TokenIDs)
			// The end of the first half is none, unless the whole budget is used
			// up, or the half is short because the context is full.
			reached := req.Stop.MaxTokens-rest.Stop.MaxTokens >= req.Stop.MinTokens
			if delta.FinishReason != "" && reached && rest.Stop.MaxTokens > 0 {
				delta.FinishReason = ""
			}
			if (len(delta.TokenIDs) > 0 || delta.FinishReason != "") && !yield(delta, nil) || delta.FinishReason != "" {
				return
			}
		}
		c.generate(ctx, &rest)(yield)
	}
}

// withBans adds the ids that must not end the first half. IgnoreEOS keeps the
// engine from its own end ids only.
func withBans(biases map[engine.TokenID]float64, stop engine.StopConditions) map[engine.TokenID]float64 {
	banned := maps.Clone(biases)
	if banned == nil {
		banned = make(map[engine.TokenID]float64)
	}
	for _, id := range stop.TokenIDs {
		banned[id] = math.Inf(-1)
	}
	if !stop.IgnoreEOS {
		for _, id := range stop.EOS {
			banned[id] = math.Inf(-1)
		}
	}
	return banned
}
