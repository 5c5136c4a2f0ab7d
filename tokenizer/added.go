package tokenizer

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"baton/tokenizer/ucd"
)

// An addedToken is recognised in the text itself, before it is cut into words.
type addedToken struct {
	Content    string `json:"content"`
	ID         int64  `json:"id"`          // see placeAdded
	SingleWord bool   `json:"single_word"` // not beside a word character
	LStrip     bool   `json:"lstrip"`      // takes the white space before it along
	RStrip     bool   `json:"rstrip"`      // and after it
	Normalized *bool  `json:"normalized"`  // looked for in the normalized text; absent: unless it is special
	Special    bool   `json:"special"`
}

func (a *addedToken) normalized() bool {
	if a.Normalized == nil {
		return !a.Special
	}
	return *a.Normalized
}

// An addedSet finds added tokens, the leftmost first, the longest of those that
// begin at one place. It is a trie over bytes.
type addedSet struct {
	tokens []addedToken
	nodes  []addedNode
	root   [256]int32 // the node after a first byte, 0 if no token begins so
	firsts []byte     // those first bytes

	longestFirst bool // see partition.go
	asciiSpace   bool // only ASCII white space is taken along
}

type addedNode struct {
	token int32 // index into tokens + 1 of the token that ends here, 0 if none does
	edges []addedEdge
}

type addedEdge struct {
	b  byte
	to int32
}

// add makes set find token wherever text contains the bytes of form. Of two
// tokens of one form the first counts.
func (s *addedSet) add(form string, token addedToken) {
	if form == "" {
		return
	}
	if s.nodes == nil {
		s.nodes = make([]addedNode, 1) // index 0 means "none"
	}
	at := &s.root[form[0]]
	if *at == 0 {
		*at = s.newNode()
		s.firsts = append(s.firsts, form[0])
	}
	n := *at
	for i := 1; i < len(form); i++ {
		k, found := slices.BinarySearchFunc(s.nodes[n].edges, form[i], func(e addedEdge, b byte) int { return cmp.Compare(e.b, b) })
		if !found {
			to := s.newNode()
			s.nodes[n].edges = slices.Insert(s.nodes[n].edges, k, addedEdge{form[i], to})
		}
		n = s.nodes[n].edges[k].to
	}
	if s.nodes[n].token == 0 {
		s.tokens = append(s.tokens, token)
		s.nodes[n].token = int32(len(s.tokens))
	}
}

func (s *addedSet) newNode() int32 {
	s.nodes = append(s.nodes, addedNode{})
	return int32(len(s.nodes) - 1)
}

// An addedMatch is a stretch of text that an added token takes.
type addedMatch struct {
	start, end int
	id         int32
	ok         bool
}

// An addedFinder walks over the added tokens in a text.
type addedFinder struct {
	set  *addedSet
	text string
	at   int // where the search goes on
	end  int // where the last match ended, stripped white space included

	ahead []addedMatch // of a cluster whose tokens overlap
}

// next returns the next match; not ok if there is none.
func (f *addedFinder) next() addedMatch {
	for {
		token, start, end := f.find()
		if token == nil {
			return addedMatch{}
		}
		f.at = end
		if token.SingleWord && !standsAlone(f.text, start, end) {
			continue
		}
		if token.LStrip {
			start = max(len(strings.TrimRightFunc(f.text[:start], f.set.isSpace)), min(f.end, start))
		}
		if token.RStrip {
			end = len(f.text) - len(strings.TrimLeftFunc(f.text[end:], f.set.isSpace))
		}
		f.end = end
		return addedMatch{start, end, int32(token.ID), true}
	}
}

// find returns the next token and where it stands, nil if there is none.
func (f *addedFinder) find() (token *addedToken, start, end int) {
	for len(f.ahead) == 0 {
		f.at = f.set.nextFirst(f.text, f.at)
		if f.at == len(f.text) {
			return nil, 0, 0
		}
		token, size := f.set.longestAt(f.text[f.at:])
		switch {
		case token == nil:
			f.at++
		case f.set.longestFirst && f.set.straddled(f.text, f.at, f.at+size):
			f.ahead = f.set.cluster(f.text, f.at)
		default:
			return token, f.at, f.at + size
		}
	}
	next := f.ahead[0]
	f.ahead = f.ahead[1:]
	token, _ = f.set.longestAt(f.text[next.start:next.end])
	return token, next.start, next.end
}

// nextFirst returns where, from at on, a byte stands that a token begins with,
// len(text) if there is none.
func (s *addedSet) nextFirst(text string, at int) int {
	switch len(s.firsts) {
	case 0:
		return len(text)
	case 1:
		if i := strings.IndexByte(text[at:], s.firsts[0]); i >= 0 {
			return at + i
		}
		return len(text)
	}
	root := &s.root
	for at < len(text) && root[text[at]] == 0 {
		at++
	}
	return at
}

func (s *addedSet) longestAt(text string) (longest *addedToken, size int) {
	n := s.root[text[0]]
	for i := 1; ; i++ {
		node := &s.nodes[n]
		if node.token != 0 {
			longest, size = &s.tokens[node.token-1], i
		}
		if i == len(text) {
			return longest, size
		}
		k, found := node.edge(text[i])
		if !found {
			return longest, size
		}
		n = node.edges[k].to
	}
}

func (n *addedNode) edge(b byte) (int, bool) {
	if len(n.edges) <= 4 {
		for i := range n.edges {
			if n.edges[i].b == b {
				return i, true
			}
		}
		return 0, false
	}
	return slices.BinarySearchFunc(n.edges, b, func(e addedEdge, b byte) int { return cmp.Compare(e.b, b) })
}

var singleWord = ucd.MustNamed(ucd.SingleWord)

func standsAlone(text string, start, end int) bool {
	before, n := utf8.DecodeLastRuneInString(text[:start])
	after, m := utf8.DecodeRuneInString(text[end:])
	return !(n > 0 && singleWord.Contains(before)) && !(m > 0 && singleWord.Contains(after))
}

var whitespace = ucd.MustNamed(ucd.Whitespace)

func (s *addedSet) isSpace(r rune) bool {
	return isSpace(r) && (r < utf8.RuneSelf || !s.asciiSpace)
}

func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || r >= '\t' && r <= '\r'
	}
	return whitespace.Contains(r)
}
