package tokenizer

import (
	"bytes"
	"math"
	"unicode/utf8"
)

// A unigram model (SentencePiece's other kind: T5, XLM-R) gives each token a
// score and takes, of all ways to put a text together, the one whose scores have
// the largest sum. It serves .gguf files and does what llama.cpp does, down to
// the order in which numbers are added: near ties depend on it.
type unigram struct {
	charsmap    *charsmap // nil: no character is replaced
	userDefined *trie     // beginnings that are left as they are
	prefix      bool      // a blank is put in front
	merge       bool      // runs of blanks count as one, those at the ends as none

	tokens       *trie
	scores       []float64 // by id
	unknown      int32
	unknownScore float64
	// Every token that holds a blank begins with it. Then whatever is best for a
	// text is best for each of its words, and memory is needed for one at a time.
	cuttable bool
}

// normalize replaces characters and spells blanks as the tokens do. Bytes that
// are no character any more, after a token's beginning was taken out, become
// U+FFFD.
func (u *unigram) normalize(text string) string {
	in := []byte(text)
	out := make([]byte, 0, len(in)+len(in)/4+len(blank))
	prepended, inWord := false, false
	put := func(part []byte) {
		for _, c := range part {
			if c == ' ' {
				inWord = false
				if !u.merge {
					out = append(out, blank...)
				}
				continue
			}
			if !inWord {
				inWord = true
				if u.prefix && !prepended || u.merge {
					out = append(out, blank...)
					prepended = true
				}
			}
			out = append(out, c)
		}
	}
	for len(in) > 0 {
		if n := u.userDefined.deepest(in); n > 0 {
			put(in[:n])
			in = in[n:]
			continue
		}
		if u.charsmap != nil {
			if replacement, n := u.charsmap.longest(in); n > 0 {
				put(replacement)
				in = in[n:]
				continue
			}
		}
		r, n := utf8.DecodeRune(in)
		if r == utf8.RuneError && n == 1 {
			put([]byte("\uFFFD"))
		} else {
			put(in[:n])
		}
		in = in[n:]
	}
	return string(out)
}

// A unigramStep is the best way to reach one place of a text.
type unigramStep struct {
	score float64
	from  int32 // where its last token begins
	token int32
}

// appendText appends the ids of a normalized text.
func (u *unigram) appendText(dst []int32, text []byte) []int32 {
	cuttable := u.cuttable && utf8.Valid(text)
	begin := len(dst)
	var steps []unigramStep
	score := 0.0 // of the text so far: the sums go on from word to word
	for len(text) > 0 {
		end := len(text)
		if cuttable {
			if next := bytes.Index(text[1:], blank); next >= 0 {
				end = next + 1
			}
		}
		end = min(end, maxWordBytes) // nothing but an attack has such a word
		steps = u.best(steps, text[:end], score)
		score = steps[end].score
		dst = u.appendPath(dst, begin, steps[:end+1])
		text = text[end:]
	}
	return dst
}

// best works out the steps to all places of text, from the score at its start.
func (u *unigram) best(steps []unigramStep, text []byte, score float64) []unigramStep {
	steps = steps[:0]
	for range len(text) + 1 {
		steps = append(steps, unigramStep{score: -math.MaxFloat64, token: u.unknown})
	}
	steps[0].score = score
	for at := 0; at < len(text); {
		size := min(characterSize(text[at]), len(text)-at)
		here, single := steps[at].score, false
		for n, i := uint32(0), at; i < len(text); {
			if n = u.tokens.child(n, text[i]); n == noNode {
				break
			}
			i++
			token := u.tokens.nodes[n].token
			if token < 0 {
				continue
			}
			single = single || i-at == size
			if s := here + u.scores[token]; s > steps[i].score {
				steps[i] = unigramStep{s, int32(at), token}
			}
		}
		if !single {
			if s := here + u.unknownScore; s > steps[at+size].score {
				steps[at+size] = unigramStep{s, int32(at), u.unknown}
			}
		}
		at += size
	}
	return steps
}

// appendPath appends the ids on the way to the last step. Unknown tokens in a
// row, from dst[begin] on, are one.
func (u *unigram) appendPath(dst []int32, begin int, steps []unigramStep) []int32 {
	from := len(dst)
	for at := len(steps) - 1; at > 0; at = int(steps[at].from) {
		token := steps[at].token
		if n := len(dst); token == u.unknown && n > from && dst[n-1] == u.unknown {
			continue
		}
		dst = append(dst, token)
	}
	for i, j := from, len(dst)-1; i < j; i, j = i+1, j-1 {
		dst[i], dst[j] = dst[j], dst[i]
	}
	if from > begin && from < len(dst) && dst[from] == u.unknown && dst[from-1] == u.unknown {
		dst = append(dst[:from], dst[from+1:]...)
	}
	return dst
}

// characterSize is how many bytes a character has by its first one.
func characterSize(first byte) int {
	switch {
	case first < 0xC0:
		return 1
	case first < 0xE0:
		return 2
	case first < 0xF0:
		return 3
	}
	return 4
}
