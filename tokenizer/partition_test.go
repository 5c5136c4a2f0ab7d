package tokenizer

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
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
