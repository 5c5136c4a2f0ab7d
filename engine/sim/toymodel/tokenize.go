package toymodel

import (
	"slices"
	"strings"
	"unicode"
)

// A Tokenizer encodes as the model folder's tokenizer.json says. It exists for
// the simulated workers' own /tokenize, so that it is another implementation
// than the frontend's; it is written for brevity, not for speed.
type Tokenizer struct {
	ranks map[pair]int
	ids   map[string]int32 // by token, as the file writes it
}

// NewTokenizer returns a tokenizer of these merges and ids.
func NewTokenizer(merges [][2]string, ids map[string]int32) *Tokenizer {
	t := &Tokenizer{ranks: make(map[pair]int, len(merges)), ids: ids}
	for i, m := range merges {
		t.ranks[m] = i
	}
	return t
}

// Encode returns the ids of text. With special set, the text of a special token
// becomes that token, as that of a mark always does.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	var ids []int32
	for text != "" {
		at, token := len(text), ""
		added := Marks
		if special {
			added = slices.Concat(Specials, Marks)
		}
		for _, s := range added {
			if i := strings.Index(text, s); i >= 0 && i < at {
				at, token = i, s
			}
		}
		for _, word := range split(text[:at]) {
			for _, symbol := range encode(word, t.ranks) {
				ids = append(ids, t.ids[symbol])
			}
		}
		if token != "" {
			ids = append(ids, t.ids[token])
		}
		text = text[at+len(token):]
	}
	return ids
}

var contractions = []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}

// split cuts text where GPT-2's pattern does:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func split(text string) []string {
	var words []string
	runes := []rune(text)
	for i := 0; i < len(runes); {
		n := 0
		for _, c := range contractions {
			if strings.HasPrefix(string(runes[i:min(i+3, len(runes))]), c) {
				n = len(c)
				break
			}
		}
		if n == 0 {
			n = wordLength(runes[i:])
		}
		words = append(words, string(runes[i:i+n]))
		i += n
	}
	return words
}

// wordLength is the length of the pre-token at the start of runes.
func wordLength(runes []rune) int {
	start := 0
	if runes[0] == ' ' && len(runes) > 1 && !unicode.IsSpace(runes[1]) {
		start = 1 // the one space that belongs to the word after it
	}
	if unicode.IsSpace(runes[start]) {
		n := run(runes, unicode.IsSpace)
		if n > 1 && n < len(runes) {
			n-- // the last one is left to what follows
		}
		return n
	}
	for _, is := range []func(rune) bool{unicode.IsLetter, unicode.IsNumber} {
		if is(runes[start]) {
			return start + run(runes[start:], is)
		}
	}
	return start + run(runes[start:], func(r rune) bool {
		return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r)
	})
}

// run is how many runes at the start are of one sort.
func run(runes []rune, is func(rune) bool) int {
	n := 0
	for n < len(runes) && is(runes[n]) {
		n++
	}
	return n
}
