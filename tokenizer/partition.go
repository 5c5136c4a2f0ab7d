package tokenizer

import (
	"cmp"
	"slices"
)

// In a .gguf file's tokenizer the longest added token is cut out of the text
// first, wherever it stands, then the next shorter one from what is left, as
// llama.cpp does; the reference library takes what comes first. The two differ
// only where a token overlaps the end of another and is longer. So the finder
// goes from left to right, too, and sorts out such a cluster when it meets one.

// straddled tells whether a longer token begins within text[start:end], which
// is a token, and reaches out of it.
func (s *addedSet) straddled(text string, start, end int) bool {
	for at := s.nextFirst(text[:end], start+1); at < end; at = s.nextFirst(text[:end], at+1) {
		if token, size := s.longestAt(text[at:]); token != nil && at+size > end && size > end-start {
			return true
		}
	}
	return false
}

// cluster returns the tokens in the stretch that begins at start and in which
// each token overlaps another one, from left to right.
func (s *addedSet) cluster(text string, start int) []addedMatch {
	begins := map[int][]int{} // by size: where the longest token that is still possible begins
	longest, end := 0, start+1
	for at := start; at < end && at < len(text); at++ {
		if token, size := s.longestAt(text[at:]); token != nil {
			begins[size] = append(begins[size], at)
			longest, end = max(longest, size), max(end, at+size)
		}
	}
	taken := make([]bool, end-start)
	var matches []addedMatch
	for size := longest; size > 0; size-- {
		slices.Sort(begins[size])
		for _, at := range begins[size] {
			room := 0
			for room < size && !taken[at-start+room] {
				room++
			}
			if room == 0 {
				continue
			}
			token, fitting := s.longestAt(text[at : at+room])
			switch {
			case token == nil:
			case fitting < size: // a longer one took the rest: its turn comes later
				begins[fitting] = append(begins[fitting], at)
			default:
				for i := range size {
					taken[at-start+i] = true
				}
				matches = append(matches, addedMatch{at, at + size, int32(token.ID), true})
			}
		}
	}
	slices.SortFunc(matches, func(a, b addedMatch) int { return cmp.Compare(a.start, b.start) })
	return matches
}
