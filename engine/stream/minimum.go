package stream

import (
	"context"
	"maps"

	"baton/engine"
)

// WithMinimum gives a request with min_tokens as two on the same server: one whose
// budget is the minimum and which cannot choose an end id, because each has the bias
// ban, then its continuation with the rest of the budget. So an end id is suppressed
// as the engines do it that have the parameter: its probability is zero until the
// minimum is reached.
func WithMinimum(ctx context.Context, req *engine.Request, ban float64, generate func(context.Context, *engine.Request) engine.Stream) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		first, rest := *req, *req
		first.Stop = engine.StopConditions{MaxTokens: min(req.Stop.MinTokens, req.Stop.MaxTokens), IgnoreEOS: true}
		first.Sampling.LogitBias = withBans(req.Sampling.LogitBias, req.Stop.EndIDs(), ban)
		rest.Stop.MinTokens = 0
		rest.TokenIDs = append([]engine.TokenID(nil), req.TokenIDs...)
		for delta, err := range generate(ctx, &first) {
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
		generate(ctx, &rest)(yield)
	}
}

// withBans adds the ids that must not end the first half.
func withBans(biases map[engine.TokenID]float64, ids []engine.TokenID, ban float64) map[engine.TokenID]float64 {
	banned := maps.Clone(biases)
	if banned == nil {
		banned = make(map[engine.TokenID]float64)
	}
	for _, id := range ids {
		banned[id] = ban
	}
	return banned
}
