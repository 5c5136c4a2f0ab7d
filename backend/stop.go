package backend

// A matcher finds stop strings in a text that comes in pieces. It is the
// automaton of Aho and Corasick: its state is the longest suffix of the text
// that is a prefix of a stop string, so each byte costs constant time on
// average, however many strings there are.
type matcher struct {
	stops []string
	nodes []node
	state int32
}

// A node is a prefix of a stop string; nodes[0] is the empty one.
type node struct {
	child   int32 // the first of its children, 0 = none
	sibling int32 // the next child of its parent, 0 = none
	fail    int32 // the longest proper suffix that is a node
	depth   int32 // its length
	held    int32 // the length of the longest suffix that is a proper prefix of a stop string
	longest int32 // the longest stop string that is a suffix, as an index + 1; 0 = none
	b       byte  // its last byte
}

// A match is a stop string in a piece.
type match struct {
	stop int // which one
	end  int // where it ends, as an offset into the piece; it may begin before the piece
}

// newMatcher returns a matcher for stops. Empty ones match nothing.
func newMatcher(stops []string) *matcher {
	m := &matcher{stops: stops, nodes: make([]node, 1)}
	for i, stop := range stops {
		if stop != "" {
			m.insert(stop, int32(i+1))
		}
	}
	m.link()
	return m
}

// insert adds a stop string to the tree of prefixes.
func (m *matcher) insert(stop string, index int32) {
	at := int32(0)
	for i := range len(stop) {
		next := m.childOf(at, stop[i])
		if next == 0 {
			next = int32(len(m.nodes))
			m.nodes = append(m.nodes, node{b: stop[i], depth: int32(i + 1), sibling: m.nodes[at].child})
			m.nodes[at].child = next
		}
		at = next
	}
	if m.nodes[at].longest == 0 {
		m.nodes[at].longest = index // of two equal ones the first
	}
}

// link fills in what depends on suffixes, which are shorter: breadth first.
func (m *matcher) link() {
	queue := make([]int32, 1, len(m.nodes))
	for i := 0; i < len(queue); i++ {
		parent := queue[i]
		for at := m.nodes[parent].child; at != 0; at = m.nodes[at].sibling {
			queue = append(queue, at)
			n := &m.nodes[at]
			if parent != 0 {
				n.fail = m.next(m.nodes[parent].fail, n.b)
			}
			if n.longest == 0 {
				n.longest = m.nodes[n.fail].longest
			}
			n.held = n.depth
			if n.child == 0 {
				n.held = m.nodes[n.fail].held
			}
		}
	}
}

// childOf returns the child of at by byte b, 0 if there is none.
func (m *matcher) childOf(at int32, b byte) int32 {
	for c := m.nodes[at].child; c != 0; c = m.nodes[c].sibling {
		if m.nodes[c].b == b {
			return c
		}
	}
	return 0
}

// next returns the state after byte b in state at.
func (m *matcher) next(at int32, b byte) int32 {
	for {
		if c := m.childOf(at, b); c != 0 {
			return c
		}
		if at == 0 {
			return 0
		}
		at = m.nodes[at].fail
	}
}

// feed goes on with a piece of text. Of the stop strings that end in it, the
// one that begins first is returned, of those that begin together the shortest.
func (m *matcher) feed(piece []byte) (best match, ok bool) {
	bestStart := 0
	for i, b := range piece {
		m.state = m.next(m.state, b)
		longest := int(m.nodes[m.state].longest) - 1 // of those that end here it begins first
		if longest < 0 {
			continue
		}
		if start := i + 1 - len(m.stops[longest]); !ok || start < bestStart {
			best, bestStart, ok = match{stop: longest, end: i + 1}, start, true
		}
	}
	return best, ok
}

// held returns how many of the last bytes may be the beginning of a stop string.
func (m *matcher) held() int { return int(m.nodes[m.state].held) }
