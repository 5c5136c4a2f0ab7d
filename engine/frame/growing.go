package frame

import "hash/maphash"

// A Growing is an array that an engine sends again with each event, from its
// beginning on and longer each time. Reading all of it each time makes the cost
// of an answer grow with the square of its length; a Growing remembers how the
// array began, in a few bytes, so that the Scanner reads only what is new. The
// zero Growing knows nothing.
type Growing struct {
	size int    // bytes of the elements that are known, as they stood in the text
	sum  uint64 // of these bytes

	start, summed int          // the current array: where its elements begin, and how far hash has come
	hash          maphash.Hash // of the elements of the current array
}

// Resume jumps over the known elements of the array that was just entered, if it
// begins with the same bytes as last time; their grammar was checked then. It
// reports false, and jumps over nothing, if it does not.
func (s *Scanner) Resume(g *Growing) bool {
	s.space()
	g.start, g.summed = s.pos, s.pos
	g.hash.Reset() // keeps its seed
	if g.size == 0 {
		return true
	}
	end := s.pos + g.size
	if s.err != nil || end >= len(s.data) {
		return false
	}
	g.hash.Write(s.data[s.pos:end])
	g.summed = end
	if g.hash.Sum64() != g.sum {
		return false
	}
	switch s.data[end] { // else the last known number is longer now
	case ',', ']', ' ', '\t', '\n', '\r':
	default:
		return false
	}
	s.pos, s.first = end, false
	return true
}

// Remember notes the elements of the array that was just left, for the next
// Resume.
func (s *Scanner) Remember(g *Growing) {
	if s.err != nil {
		return
	}
	end := s.pos - 1 // before the bracket
	for end > g.start && isSpace(s.data[end-1]) {
		end--
	}
	if end < g.summed { // the array is shorter than it was
		g.hash.Reset()
		g.summed = g.start
	}
	g.hash.Write(s.data[g.summed:end])
	g.size, g.sum = end-g.start, g.hash.Sum64()
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
