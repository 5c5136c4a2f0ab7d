package engine

import "maps"

// CompensatedBias is the client's logit bias, plus what makes up for the penalties of
// carried tokens on an engine that counts over its own output only, and so begins at
// zero on a continuation: those that p calls [Compensated]. Frequency is exact.
// Presence is, until a carried token comes again, when it counts twice. A bias that is
// changed lies within ±limit. The map may be that of a request that nobody changes.
func (r *Request) CompensatedBias(p Parameters, limit float64) map[TokenID]float64 {
	penalty := func(name Parameter, value float64) float64 {
		if p[name].Fidelity == Compensated {
			return value
		}
		return 0
	}
	presence := penalty(PresencePenalty, r.Sampling.PresencePenalty)
	frequency := penalty(FrequencyPenalty, r.Sampling.FrequencyPenalty)
	carried := r.TokenIDs[len(r.TokenIDs)-r.Carried:]
	if len(carried) == 0 || presence == 0 && frequency == 0 {
		return r.Sampling.LogitBias
	}
	count := make(map[TokenID]int)
	for _, id := range carried {
		count[id]++
	}
	merged := make(map[TokenID]float64, len(count)+len(r.Sampling.LogitBias))
	maps.Copy(merged, r.Sampling.LogitBias)
	for id, n := range count {
		b := merged[id] - frequency*float64(n) - presence
		merged[id] = min(max(b, -limit), limit)
	}
	return merged
}
