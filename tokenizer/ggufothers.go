package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// unigram sets up a model of T5's kind.
func (g *ggufReader) unigram() error {
	if err := g.vocabulary(); err != nil {
		return err
	}
	u := &unigram{prefix: g.flag("add_space_prefix", false), merge: g.flag("remove_extra_whitespaces", false)}
	if blob, ok := g.f.Bytes("tokenizer.ggml.precompiled_charsmap"); ok {
		var err error
		if u.charsmap, err = newCharsmap(blob); err != nil {
			return err
		}
	}
	g.ends = ggufEnds{bos: none, eos: 1, unknown: 2, separator: none, addEOS: true}
	if err := g.unknownToken(&u.unknown); err != nil {
		return err
	}
	if err := g.unigramTokens(u); err != nil {
		return err
	}
	g.t.normalizers = []normalizer{u.normalize}
	g.t.instead = u.appendText
	g.setPieces(u.prefix)
	return nil
}

// unigramTokens enters the tokens that a text can consist of, and their scores.
// Tokens that are looked for in the raw text count for nothing, so that they win.
func (g *ggufReader) unigramTokens(u *unigram) error {
	scores, err := g.scores()
	if err != nil {
		return err
	}
	u.scores = scores[:len(g.tokens)]
	least := float32(math.MaxFloat32)
	var tokens, userDefined []trieToken
	u.cuttable = true
	for id, token := range g.tokens {
		t := trieToken{token, int32(id)}
		switch g.typeOf(id) {
		case ggufNormal:
			least = min(least, float32(scores[id]))
		case ggufUserDefined:
			userDefined = append(userDefined, t)
			u.scores[id] = 0
		case ggufUnused:
		default:
			continue
		}
		if math.IsNaN(scores[id]) {
			return fmt.Errorf("the score of token %d is not a number", id)
		}
		tokens = append(tokens, t)
		u.cuttable = u.cuttable && utf8.ValidString(token) && strings.LastIndex(token, string(blank)) <= 0
	}
	const penalty = 10 // SentencePiece's
	u.unknownScore = float64(least - penalty)
	if u.userDefined, err = newTrie(userDefined); err != nil {
		return err
	}
	u.tokens, err = newTrie(tokens)
	return err
}

// wordPiece sets up a model of BERT's kind.
func (g *ggufReader) wordPiece() error {
	if err := g.vocabulary(); err != nil {
		return err
	}
	w := &wordPiece{lowercase: g.flag("normalizer.lowercase", true)}
	w.stripAccents = g.flag("normalizer.strip_accents", w.lowercase)
	g.ends = ggufEnds{bos: 101, eos: none, unknown: 100, separator: 102, always: true}
	if err := g.unknownToken(&w.unknown); err != nil {
		return err
	}
	var err error
	if w.tokens, err = newTrie(g.trieTokens()); err != nil {
		return err
	}
	g.t.instead = w.appendText
	g.setPieces(false)
	return nil
}

// longestFirst sets up a model of RWKV's kind, which takes the longest token at
// each place. Its tokens are bytes; the file spells some by escapes.
func (g *ggufReader) longestFirst() error {
	if err := g.vocabulary(); err != nil {
		return err
	}
	tokens := g.trieTokens()
	for i := range tokens {
		tokens[i].text = unescapeRWKV(tokens[i].text)
	}
	t, err := newTrie(slices.Clone(tokens))
	if err != nil {
		return err
	}
	for c := range 256 {
		if t.child(0, byte(c)) == noNode || t.nodes[t.child(0, byte(c))].token < 0 {
			return fmt.Errorf("it has no token for the byte %d, and files like that are %w", c, ErrUnsupported)
		}
	}
	g.t.instead = func(dst []int32, text []byte) []int32 {
		for len(text) > 0 {
			token, size := t.longest(text)
			dst = append(dst, token)
			text = text[size:]
		}
		return dst
	}
	g.t.decoding = decoding{kind: byBytes}
	g.ends = ggufEnds{never: true}
	g.pieces = tokens
	return nil
}

func (g *ggufReader) trieTokens() []trieToken {
	tokens := make([]trieToken, len(g.tokens))
	for id, token := range g.tokens {
		tokens[id] = trieToken{token, int32(id)}
	}
	return tokens
}

func (g *ggufReader) unknownToken(to *int32) error {
	id := g.tokenID("unknown_token_id", g.ends.unknown)
	if id == none {
		return errors.New("tokenizer.ggml.unknown_token_id names no token")
	}
	*to = int32(id)
	return nil
}

// unescapeRWKV reads \t, \n, \r, \xNN; any other character behind a backslash
// stands for itself.
func unescapeRWKV(token string) string {
	if !strings.Contains(token, `\`) {
		return token
	}
	digit := func(c byte) byte {
		if c >= 'a' {
			return c - 'a' + 10
		}
		return c - '0'
	}
	var out []byte
	for i := 0; i < len(token); i++ {
		c := token[i]
		if c != '\\' || i+1 == len(token) {
			out = append(out, c)
			continue
		}
		i++
		switch c = token[i]; c {
		case 't':
			c = '\t'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 'x':
			if i+2 < len(token) {
				c = digit(token[i+1])<<4 + digit(token[i+2])
				i += 2
			}
		}
		out = append(out, c)
	}
	return string(out)
}
