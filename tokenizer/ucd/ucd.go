package ucd

import "sort"

// Named returns one recorded set. The names are Unicode's short names of
// general categories (Lu), the first letters that stand for several (L), and
// names of scripts (Han), and those of the constants below.
func Named(name string) (Set, bool) {
	if s, ok := sets[name]; ok {
		return s, true
	}
	if name == "C" { // everything that is in no other category, unassigned and surrogates included
		var assigned []Set
		for _, major := range []string{"L", "M", "N", "P", "S", "Z"} {
			s, _ := Named(major)
			assigned = append(assigned, s)
		}
		return Set(nil).Union(assigned...).Not(), true
	}
	minors, ok := majorCategories[name]
	if !ok {
		return nil, false
	}
	var parts []Set
	for _, m := range minors {
		parts = append(parts, sets[name+string(m)])
	}
	return Set(nil).Union(parts...), true
}

// The sets of the reference's parts that are no Unicode property.
const (
	RegexWord   = "regex.word"  // \w in a split expression
	RegexSpace  = "regex.space" // \s in a split expression
	RegexDigit  = "regex.digit" // \d in a split expression
	Numeric     = "numeric"     // what the Digits pre-tokenizer isolates
	Punctuation = "punctuation" // what the Punctuation pre-tokenizer isolates
	Whitespace  = "whitespace"  // what WhitespaceSplit removes
	Word        = "word"        // the word characters of the Whitespace pre-tokenizer
	Strip       = "strip"       // what the Strip normalizer takes off
	SingleWord  = "singleword"  // what may not stand beside a single_word token
	Normalizes  = "normalizes"  // what has a decomposition or is reordered by the normalizers
)

var majorCategories = map[string]string{"L": "ultmo", "M": "nce", "N": "dlo", "P": "cdseifo", "S": "mcko", "Z": "slp"}

// MustNamed is like [Named] for the names that this package is known to have.
func MustNamed(name string) Set {
	s, ok := Named(name)
	if !ok {
		panic("ucd: no set is named " + name)
	}
	return s
}

// A caseRange says that every step-th code point from lo to hi has its lower case delta above it.
type caseRange struct{ lo, hi, step, delta rune }

// ToLower appends the lower case of r to dst: one code point, or two for U+0130.
func ToLower(dst []rune, r rune) []rune {
	if r < 0x80 {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(dst, r)
	}
	if r == 0x130 {
		return append(dst, 'i', 0x307)
	}
	i := sort.Search(len(lower), func(i int) bool { return lower[i].hi >= r })
	if i < len(lower) && lower[i].lo <= r && (r-lower[i].lo)%lower[i].step == 0 {
		r += lower[i].delta
	}
	return append(dst, r)
}
