package tokenizer

import (
	"bytes"
	"unicode/utf8"

	"baton/tokenizer/pattern"
	"baton/tokenizer/ucd"
)

// A segment is a part of a piece; separator says that it is one.
type segment struct {
	start, end int
	separator  bool
}

// segments appends the parts of piece, in order and without gaps.
func (s *step) segments(dst []segment, piece []byte, m *pattern.Matcher) []segment {
	prev := 0
	match := func(start, end int) {
		if start > prev {
			dst = append(dst, segment{prev, start, s.invert})
		}
		dst = append(dst, segment{start, end, !s.invert})
		prev = end
	}
	switch f := &s.find; {
	case f.pattern != nil:
		m.Reset(f.pattern, piece)
		for {
			start, end, ok := m.Next()
			if !ok {
				break
			}
			match(start, end)
		}
	case f.words:
		matchWords(piece, match)
	case f.char != nil:
		for i := 0; i < len(piece); {
			_, size := utf8.DecodeRune(piece[i:])
			if f.char.SizeAt(piece, i) > 0 {
				match(i, i+size)
			}
			i += size
		}
	default:
		for i := bytes.Index(piece, f.literal); i >= 0; {
			match(i, i+len(f.literal))
			next := bytes.Index(piece[prev:], f.literal)
			if next < 0 {
				break
			}
			i = prev + next
		}
	}
	if prev < len(piece) {
		dst = append(dst, segment{prev, len(piece), s.invert})
	}
	return dst
}

var (
	wordTable  = ucd.MustNamed(ucd.Word).Table()
	spaceTable = ucd.MustNamed(ucd.Whitespace).Table()
)

// matchWords calls match for each run of word characters and each run of
// characters that are neither those nor white space.
func matchWords(piece []byte, match func(start, end int)) {
	kind := func(i int) int {
		switch {
		case wordTable.SizeAt(piece, i) > 0:
			return 1
		case spaceTable.SizeAt(piece, i) > 0:
			return 0
		}
		return 2
	}
	for start := 0; start < len(piece); {
		of, end := kind(start), start
		for end < len(piece) && kind(end) == of {
			_, size := utf8.DecodeRune(piece[end:])
			end += size
		}
		if of != 0 {
			match(start, end)
		}
		start = end
	}
}

// arrange joins or drops segments as the behavior says, in place.
func (b behavior) arrange(all []segment) []segment {
	out := all[:0]
	switch b {
	case isolated:
		return all
	case removed:
		for _, s := range all {
			if !s.separator {
				out = append(out, s)
			}
		}
	case contiguous:
		for _, s := range all {
			if n := len(out); n > 0 && out[n-1].separator == s.separator {
				out[n-1].end = s.end
			} else {
				out = append(out, s)
			}
		}
	case mergedWithPrevious:
		after := false // the segment before was a separator
		for _, s := range all {
			if n := len(out); s.separator && !after && n > 0 {
				out[n-1].end = s.end
			} else {
				out = append(out, s)
			}
			after = s.separator
		}
	case mergedWithNext:
		// From the end: a separator goes to what follows it, unless that is one, too.
		kept := len(all)
		before := false
		for i := len(all) - 1; i >= 0; i-- {
			s := all[i]
			if s.separator && !before && kept < len(all) {
				all[kept].start = s.start
			} else {
				kept--
				all[kept] = s
			}
			before = s.separator
		}
		return all[kept:]
	}
	return out
}
