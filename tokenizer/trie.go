package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// maxTrieNodes bounds the trie of a file: 12 bytes each. The largest vocabulary
// in use (XLM-R, 250,000 tokens) needs 700,000.
const maxTrieNodes = 8 << 20

// A trie finds all tokens that begin at one place of a text. The children of a
// node stand side by side, ordered by their byte; node 0 is the root.
type trie struct {
	nodes []trieNode
}

type trieNode struct {
	firstChild uint32
	token      int32 // the token that ends here, -1 if none does
	children   uint16
	b          byte
}

// noNode is the child that a node has not.
const noNode = 0

// newTrie builds the trie of the tokens; of two equal ones the later counts.
// Empty tokens are left out.
func newTrie(tokens []trieToken) (*trie, error) {
	for _, token := range tokens {
		if len(token.text) > maxTrieTokenBytes {
			return nil, fmt.Errorf("token %d has %d bytes, above the limit of %d", token.id, len(token.text), maxTrieTokenBytes)
		}
	}
	slices.SortStableFunc(tokens, func(a, b trieToken) int { return strings.Compare(a.text, b.text) })
	t := &trie{nodes: []trieNode{{token: -1}}}
	// Breadth first: each node owns the run of sorted tokens that begin like it.
	type run struct {
		node     uint32
		from, to int
	}
	level, next := []run{{0, 0, len(tokens)}}, []run(nil)
	for depth := 0; len(level) > 0; depth++ {
		next = next[:0]
		for _, r := range level {
			for r.from < r.to && len(tokens[r.from].text) == depth {
				if depth > 0 {
					t.nodes[r.node].token = tokens[r.from].id
				}
				r.from++
			}
			t.nodes[r.node].firstChild = uint32(len(t.nodes))
			for from := r.from; from < r.to; {
				b, to := tokens[from].text[depth], from+1
				for to < r.to && tokens[to].text[depth] == b {
					to++
				}
				next = append(next, run{uint32(len(t.nodes)), from, to})
				t.nodes = append(t.nodes, trieNode{token: -1, b: b})
				t.nodes[r.node].children++
				from = to
			}
			if len(t.nodes) > maxTrieNodes {
				return nil, fmt.Errorf("its tokens have more than %d beginnings together", maxTrieNodes)
			}
		}
		level, next = next, level
	}
	return t, nil
}

type trieToken struct {
	text string
	id   int32
}

// child returns the node behind n for the byte b, noNode if there is none.
func (t *trie) child(n uint32, b byte) uint32 {
	node := &t.nodes[n]
	lo, hi := node.firstChild, node.firstChild+uint32(node.children)
	for lo < hi {
		mid := (lo + hi) / 2
		switch c := t.nodes[mid].b; {
		case c == b:
			return mid
		case c < b:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return noNode
}

// longest returns the longest token that text begins with, and its size; -1, 0
// if there is none.
func (t *trie) longest(text []byte) (token int32, size int) {
	token = -1
	n := uint32(0)
	for i, b := range text {
		if n = t.child(n, b); n == noNode {
			break
		}
		if t.nodes[n].token >= 0 {
			token, size = t.nodes[n].token, i+1
		}
	}
	return token, size
}

// deepest returns how many bytes of text lead anywhere: the length of the
// longest common beginning with any token.
func (t *trie) deepest(text []byte) int {
	n := uint32(0)
	for i, b := range text {
		if n = t.child(n, b); n == noNode {
			return i
		}
	}
	return len(text)
}
