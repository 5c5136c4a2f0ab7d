package tokenizer

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/gguf/gguftest"
)

// naivePartition cuts text as llama.cpp does: token by token, the longest first,
// out of every stretch that is left.
func naivePartition(tokens []string, text string) []string {
	tokens = slices.Clone(tokens)
	slices.SortStableFunc(tokens, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	type part struct {
		text  string
		token bool
	}
	parts := []part{{text, false}}
	for _, token := range tokens {
		var next []part
		for _, p := range parts {
			for !p.token {
				before, after, found := strings.Cut(p.text, token)
				if !found {
					break
				}
				next = append(next, part{before, false}, part{token, true})
				p.text = after
			}
			next = append(next, p)
		}
		parts = next
	}
	var out []string
	for _, p := range parts {
		if p.token {
			out = append(out, "<"+p.text+">")
		} else if p.text != "" {
			out = append(out, p.text)
		}
	}
	return out
}

// Overlapping tokens are cut out in llama.cpp's order. No two tokens of one
// length overlap here: of those llama.cpp's order is its sort's.
func TestPartition(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, tokens := range [][]string{
		{"ab", "bca", "cabb", "aabbc", "bbccaa"},
		{"a", "aa", "aaaa", "aaab"},
		{"abc", "bc", "c", "bcab"},
		{"aba", "b", "cabac", "acabacab"},
	} {
		set := addedSet{longestFirst: true}
		for id, token := range tokens {
			set.add(token, addedToken{Content: token, ID: int64(id)})
		}
		for range 3000 {
			var b strings.Builder
			for range 1 + random.IntN(24) {
				b.WriteByte("abc"[random.IntN(3)])
			}
			text := b.String()
			var got []string
			finder, from := addedFinder{set: &set, text: text}, 0
			for {
				m := finder.next()
				if !m.ok {
					break
				}
				if from < m.start {
					got = append(got, text[from:m.start])
				}
				got = append(got, "<"+text[m.start:m.end]+">")
				from = m.end
			}
			if from < len(text) {
				got = append(got, text[from:])
			}
			if want := naivePartition(tokens, text); !slices.Equal(got, want) {
				t.Fatalf("%v in %q: %v, want %v", tokens, text, got, want)
			}
		}
	}
}

// A file whose tokens are made to be tried in vain, and a text for it: each byte
// of the text costs at most as many steps as a token may have bytes.
func TestHostileTokensTakeBoundedTime(t *testing.T) {
	long := strings.Repeat("a", maxTrieTokenBytes-1) + "b"
	unit := []byte("\x61\x01\x00\x00") // of a map of characters: "a" leads back to itself, and has a replacement
	loop := append([]byte("\x00\x04\x00\x00"), strings.Repeat(string(unit), 256)+"b\x00"...)
	text := strings.Repeat("a", 100<<10)
	for _, c := range []struct {
		name    string
		entries []gguftest.Entry
	}{
		{"unigram", []gguftest.Entry{{Key: "tokenizer.ggml.model", Value: "t5"}, {Key: "tokenizer.ggml.precompiled_charsmap", Value: loop}}},
		{"WordPiece", []gguftest.Entry{{Key: "tokenizer.ggml.model", Value: "bert"}, {Key: "tokenizer.ggml.unknown_token_id", Value: uint32(0)},
			{Key: "tokenizer.ggml.bos_token_id", Value: uint32(0)}, {Key: "tokenizer.ggml.seperator_token_id", Value: uint32(0)}}},
		{"special", []gguftest.Entry{{Key: "tokenizer.ggml.model", Value: "gpt2"}, {Key: "tokenizer.ggml.pre", Value: "gpt-2"},
			{Key: "tokenizer.ggml.merges", Value: []string{}}, {Key: "tokenizer.ggml.token_type", Value: []int32{1, 3, 3, 3, 1}}}},
	} {
		tok, err := fromHeader(t, gguftest.Header(append(c.entries,
			gguftest.Entry{Key: "tokenizer.ggml.tokens", Value: []string{"<unk>", "a", "aa", long, "▁a"}})...))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		began := time.Now()
		ids := tok.Encode(text, false)
		if took := time.Since(began); len(ids) == 0 || took > 20*time.Second {
			t.Errorf("%s: %d ids after %v", c.name, len(ids), took)
		}
	}
}
