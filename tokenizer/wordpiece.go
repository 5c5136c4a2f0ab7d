package tokenizer

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A wordPiece model (BERT) cuts a text at white space and around punctuation and
// takes the longest token at each place of a word; a word that this does not
// cover is one unknown token. It serves .gguf files and does what llama.cpp
// does, which spells the beginning of a word, not its middle, with a mark.
//
// llama.cpp's tables are those of Unicode 15, as Go's are; the sweep over all
// code points in the tests would show another version.
type wordPiece struct {
	tokens       *trie
	unknown      int32
	lowercase    bool
	stripAccents bool
}

// appendText appends the ids of text.
func (w *wordPiece) appendText(dst []int32, text []byte) []int32 {
	word := append([]byte(nil), blank...)
	flush := func() {
		if len(word) > len(blank) {
			dst = w.appendWord(dst, word)
		}
		word = word[:len(blank)]
	}
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if w.stripAccents {
			r = baseOf(r)
		}
		switch {
		case unicode.IsSpace(r):
			flush()
			continue
		case r == 0 || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs), w.stripAccents && unicode.Is(unicode.M, r):
			continue
		}
		alone := unicode.Is(unicode.P, r) || r < 0x7F && unicode.Is(unicode.S, r) || isIdeograph(r)
		if w.lowercase {
			r = unicode.ToLower(r)
		}
		if alone {
			flush()
		}
		word = utf8.AppendRune(word, r)
		if alone {
			flush()
		}
	}
	flush()
	return dst
}

func (w *wordPiece) appendWord(dst []int32, word []byte) []int32 {
	before := len(dst)
	for len(word) > 0 {
		token, size := w.tokens.longest(word)
		if size == 0 {
			return append(dst[:before], w.unknown)
		}
		dst = append(dst, token)
		word = word[size:]
	}
	return dst
}

// baseOf returns the first character that r decomposes into.
func baseOf(r rune) rune {
	if r < 0xC0 {
		return r
	}
	if r >= hangulFirst && r <= hangulLast { // decomposed by a rule
		return 0x1100 + (r-hangulFirst)/588
	}
	var buffer [utf8.UTFMax]byte
	if d := norm.NFD.Properties(buffer[:utf8.EncodeRune(buffer[:], r)]).Decomposition(); d != nil {
		r, _ = utf8.DecodeRune(d)
	}
	return r
}

// isIdeograph tells whether r is a word of its own. The ranges are BERT's, with
// the slip of 0x2B920 that its libraries share.
func isIdeograph(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2A6DF ||
		r >= 0x2A700 && r <= 0x2B73F || r >= 0x2B740 && r <= 0x2B81F || r >= 0x2B920 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}
