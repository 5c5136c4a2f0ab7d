package frame

import (
	"cmp"
	"math"
	"slices"

	"baton/engine"
)

// A Position is what an event says of one generated token's probability. It
// need not say of which id.
type Position struct {
	ID      engine.TokenID // negative = not said
	Logprob float64
	Top     [2]int // the range of its alternatives in a list that all positions share
}

// IDs appends an array of token ids to dst. It reports false, with no ids, for null.
func (s *Scanner) IDs(dst []engine.TokenID) ([]engine.TokenID, bool) {
	if !s.Array() {
		return dst, false
	}
	for s.Element() {
		id := s.Int32()
		if id < 0 {
			s.Fail("token id %d", id)
		}
		dst = append(dst, id)
	}
	return dst, true
}

// Logprob reads a number, or the null that stands for one JSON lacks. What is
// no finite number, and the smallest float that engines write for a probability
// of zero, is engine.MissingLogprob.
func (s *Scanner) Logprob() float64 {
	if s.Null() {
		return engine.MissingLogprob
	}
	lp := s.Float()
	if math.IsNaN(lp) || math.IsInf(lp, 0) || lp < engine.MissingLogprob {
		return engine.MissingLogprob
	}
	return lp
}

// Best sorts alternatives, the most likely first, and cuts them to n: engines add
// the sampled token to them where it is not among the most likely.
func Best(tops []engine.TopLogprob, n int) []engine.TopLogprob {
	slices.SortStableFunc(tops, func(a, b engine.TopLogprob) int { return cmp.Compare(b.Logprob, a.Logprob) })
	return tops[:min(n, len(tops))]
}
