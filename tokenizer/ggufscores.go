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
// A character that is a token only together with others is a symbol, too, until
// it turns out to be alone: then its bytes are the tokens.
func (g *ggufReader) sentencePiece() error {
	m := &g.t.model
	m.fallback, m.unknown = true, none
	if err := g.vocabulary(); err != nil {
		return err
	}
	m.prepare()
	for c, id := range m.fallbackID {
		asItself := c < utf8.RuneSelf && m.vocabulary.id([]byte{byte(c)}) != none
		if id == none && !asItself { // llama.cpp fails when it meets it
			return fmt.Errorf("it has no token for the byte %d, and files like that are %w", c, ErrUnsupported)
		}
	}
	if err := g.addScoredMerges(); err != nil {
		return err
	}
	m.settleBlanks()

	g.ends = ggufEnds{bos: 1, eos: 2, unknown: 0, separator: none, addBOS: true}
	prefix := g.flag("add_space_prefix", true)
	g.t.normalizers = []normalizer{func(text string) string { return escapeBlanks(text, prefix) }}
	g.setPieces(prefix)
	return nil
}

// scores returns the score of each token, which is 0 without a list of them.
func (g *ggufReader) scores() ([]float64, error) {
	scores, ok := g.f.Floats("tokenizer.ggml.scores")
	if !ok {
		return make([]float64, len(g.tokens)), nil
	}
	if len(scores) < len(g.tokens) {
		return nil, fmt.Errorf("it has %d tokens but %d scores", len(g.tokens), len(scores))
	}
	return scores, nil
}

// addLone notes the characters of token that are no tokens.
func (g *ggufReader) addLone(token string) {
	m := &g.t.model
	for i, r := range token {
		if m.vocabulary.id([]byte(token[i:i+utf8.RuneLen(r)])) != none {
			continue
		}
		if _, known := m.loneID[r]; known {
			continue
		}
		if m.lone == nil {
			m.loneID, m.firstLone = map[rune]uint32{}, uint32(len(g.tokens))
		}
		m.loneID[r] = m.firstLone + uint32(len(m.lone))
		m.lone = append(m.lone, r)
	}
}

// addScoredMerges works the merges out.
func (g *ggufReader) addScoredMerges() error {
	scores, err := g.scores()
	if err != nil {
		return err
	}
	v := &g.t.model.vocabulary
	var order []int // the tokens that can come out of a merge, the best score first
	for id, token := range g.tokens {
		if g.recognised(id) {
			continue // found in raw text before any merge
		}
		if math.IsNaN(scores[id]) {
			return fmt.Errorf("the score of token %d is not a number", id)
		}
		if !utf8.ValidString(token) || len(token) > maxScoredTokenBytes {
			return fmt.Errorf("token %d is no text of at most %d bytes", id, maxScoredTokenBytes)
		}
		if utf8.RuneCountInString(token) > 1 {
			order = append(order, id)
			g.addLone(token)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	type scoredMerge struct {
		left, right, whole uint32
		rank               uint32
		pair               mergePair
	}
	symbol := func(token []byte) uint32 {
		id := v.id(token)
		if r, size := utf8.DecodeRune(token); id == none && size == len(token) {
			if lone, ok := g.t.model.loneID[r]; ok {
				return lone
			}
		}
		return id
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
			left, right := symbol(token[:i]), symbol(token[i:])
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
		g.t.model.blanks.note(&g.t.model, m.pair)
	}
	return nil
}
