package tokenizer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// maxScoredTokenBytes bounds the tokens of a model that is merged by score: each is
// looked at in all the ways it can be put together.
const maxScoredTokenBytes = 256

// sentencePiece sets up a model whose file has scores instead of merges: of all
// neighbours that are a token together, the pair with the best score is joined
// first. That is a merge table: each token, by falling score, out of every two
// tokens that it consists of.
//
// It is the same as long as every character of a token is a token itself, which
// is checked: then nothing but tokens ever stands beside each other.
func (g *ggufReader) sentencePiece() error {
	m := &g.t.model
	m.fallback, m.unknown = true, none
	if err := g.vocabulary(); err != nil {
		return err
	}
	m.prepare()
	for c, id := range m.fallbackID {
		asItself := c < utf8.RuneSelf && m.vocabulary.id([]byte{byte(c)}) != none
		if id == none && !asItself {
			return fmt.Errorf("it has no token for the byte %d, and files like that are %w", c, ErrUnsupported)
		}
	}
	if m.vocabulary.id(blank) == none {
		return fmt.Errorf("it has no token for the blank, and files like that are %w", ErrUnsupported)
	}
	if err := g.addScoredMerges(); err != nil {
		return err
	}
	m.settleBlanks()

	g.addBOS = true
	prefix, said := g.f.Bool("tokenizer.ggml.add_space_prefix")
	prefix = prefix || !said
	g.t.normalizers = []normalizer{func(text string) string { return escapeBlanks(text, prefix) }}
	g.t.decoding = decoding{kind: byPieces, fallback: true, perToken: []func(string, bool) string{
		func(token string, _ bool) string { return unescapeBlanks(token) },
	}}
	if prefix {
		g.t.decoding.strip, g.t.decoding.stripMost = ' ', 1
	}
	return nil
}

// addScoredMerges works the merges out.
func (g *ggufReader) addScoredMerges() error {
	scores, ok := g.f.Floats("tokenizer.ggml.scores")
	if !ok || len(scores) < len(g.tokens) {
		return fmt.Errorf("it has %d tokens but %d scores", len(g.tokens), len(scores))
	}
	v := &g.t.model.vocabulary
	var order []int // the tokens that can come out of a merge, the best score first
	for id, token := range g.tokens {
		if t := g.typeOf(id); t != ggufNormal && t != ggufUnused {
			continue // found in raw text before any merge, or a byte
		}
		if math.IsNaN(scores[id]) {
			return fmt.Errorf("the score of token %d is not a number", id)
		}
		if !utf8.ValidString(token) || len(token) > maxScoredTokenBytes {
			return fmt.Errorf("token %d is no text of at most %d bytes", id, maxScoredTokenBytes)
		}
		for i, r := range token {
			if v.id([]byte(token[i:i+utf8.RuneLen(r)])) == none {
				return fmt.Errorf("token %d holds a character that is no token, and files like that are %w", id, ErrUnsupported)
			}
		}
		if utf8.RuneCountInString(token) > 1 {
			order = append(order, id)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	type scoredMerge struct {
		left, right, whole uint32
		rank               uint32
		pair               mergePair
	}
	var merges []scoredMerge
	rank := uint32(0)
	for n, id := range order {
		if n > 0 && scores[id] != scores[order[n-1]] { // equal scores: the leftmost pair first
			rank++
		}
		token := v.token(uint32(id))
		for i := range string(token) {
			if i == 0 {
				continue
			}
			left, right := v.id(token[:i]), v.id(token[i:])
			if left == none || right == none {
				continue
			}
			if len(merges) >= MaxMerges {
				return fmt.Errorf("its scores make more than %d merges", MaxMerges)
			}
			merges = append(merges, scoredMerge{left, right, uint32(id), rank, mergePair{token[:i], token[i:]}})
		}
	}
	g.t.model.merges = newMergeTable(len(merges))
	for _, m := range merges {
		g.t.model.merges.put(m.left, m.right, m.rank, m.whole)
		g.t.model.noteBlank(m.pair)
	}
	return nil
}
