package ucd

import (
	"slices"
	"sort"
	"unicode/utf8"
)

// MaxRune is the largest code point.
const MaxRune = 0x10FFFF

// A Range is the code points from Lo to Hi, both included.
type Range struct{ Lo, Hi rune }

// A Set is a set of code points: ranges in rising order that neither overlap
// nor touch. Sets are immutable; operations make new ones.
type Set []Range

// Of returns the set of the given ranges, in any order and overlapping or not.
func Of(ranges ...Range) Set {
	sorted := slices.Clone(ranges)
	sort.Slice(sorted, func(i, j int) bool { return sorted[i].Lo < sorted[j].Lo })
	var out Set
	for _, r := range sorted {
		if n := len(out); n > 0 && r.Lo <= out[n-1].Hi+1 {
			out[n-1].Hi = max(out[n-1].Hi, r.Hi)
		} else if r.Lo <= r.Hi {
			out = append(out, r)
		}
	}
	return out
}

// Runes returns the set of the given code points.
func Runes(runes ...rune) Set {
	ranges := make([]Range, len(runes))
	for i, r := range runes {
		ranges[i] = Range{r, r}
	}
	return Of(ranges...)
}

// Union returns the code points that are in s or in any of the others.
func (s Set) Union(others ...Set) Set {
	return Of(slices.Concat(append([]Set{s}, others...)...)...)
}

// Not returns the code points that are not in s.
func (s Set) Not() Set {
	var out Set
	next := rune(0)
	for _, r := range s {
		if r.Lo > next {
			out = append(out, Range{next, r.Lo - 1})
		}
		next = r.Hi + 1
	}
	if next <= MaxRune {
		out = append(out, Range{next, MaxRune})
	}
	return out
}

// And returns the code points that are in both sets.
func (s Set) And(o Set) Set {
	var out Set
	for i, j := 0, 0; i < len(s) && j < len(o); {
		if lo, hi := max(s[i].Lo, o[j].Lo), min(s[i].Hi, o[j].Hi); lo <= hi {
			out = append(out, Range{lo, hi})
		}
		if s[i].Hi < o[j].Hi {
			i++
		} else {
			j++
		}
	}
	return out
}

// Contains tells whether r is in s. It searches; use a [Table] where it matters.
func (s Set) Contains(r rune) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].Hi >= r })
	return i < len(s) && s[i].Lo <= r
}

// A Table answers in constant time whether a code point is in a set.
type Table struct {
	ascii [128]bool
	index [(MaxRune + 1) / pageSize]uint16 // which page holds the bits of these 256 code points
	pages [][pageSize / 64]uint64
}

const pageSize = 256

// Table returns the table of s.
func (s Set) Table() *Table {
	t := &Table{}
	seen := map[[pageSize / 64]uint64]uint16{}
	keep := func(page [pageSize / 64]uint64) uint16 {
		n, ok := seen[page]
		if !ok {
			n = uint16(len(t.pages))
			seen[page] = n
			t.pages = append(t.pages, page)
		}
		return n
	}
	// Nearly all pages have nothing or everything in them.
	const all = ^uint64(0)
	nothing, everything := keep([pageSize / 64]uint64{}), keep([pageSize / 64]uint64{all, all, all, all})
	i := 0
	for p := range t.index {
		lo, hi := rune(p*pageSize), rune(p*pageSize+pageSize-1)
		for i < len(s) && s[i].Hi < lo {
			i++
		}
		switch {
		case i == len(s) || s[i].Lo > hi:
			t.index[p] = nothing
			continue
		case s[i].Lo <= lo && s[i].Hi >= hi:
			t.index[p] = everything
			continue
		}
		var page [pageSize / 64]uint64
		for j := i; j < len(s) && s[j].Lo <= hi; j++ {
			for r := max(s[j].Lo, lo); r <= min(s[j].Hi, hi); r++ {
				page[(r-lo)>>6] |= 1 << (uint(r-lo) & 63)
			}
		}
		t.index[p] = keep(page)
	}
	for r := range t.ascii {
		t.ascii[r] = s.Contains(rune(r))
	}
	return t
}

// HasByte tells whether the ASCII character b is in the set. b is below 0x80.
func (t *Table) HasByte(b byte) bool { return t.ascii[b&0x7F] }

// Has tells whether r, a valid code point, is in the set.
func (t *Table) Has(r rune) bool {
	return t.pages[t.index[r/pageSize]][r%pageSize>>6]>>(uint(r)&63)&1 != 0
}

// SizeAt returns the length of the UTF-8 character at pos if it is in the set,
// 0 if it is not or the text ends there. The text is valid UTF-8.
func (t *Table) SizeAt(text []byte, pos int) int {
	if pos >= len(text) {
		return 0
	}
	if b := text[pos]; b < utf8.RuneSelf {
		if t.ascii[b] {
			return 1
		}
		return 0
	}
	r, size := utf8.DecodeRune(text[pos:])
	if t.Has(r) {
		return size
	}
	return 0
}
