package tokenizer

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// cutsOf returns places where skip may cut a list, each with the chance p.
func cutsOf(raw string, p float64, random *rand.Rand) []int {
	var cuts []int
	depth, inText := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',' && depth == 1 && random.Float64() < p:
			cuts = append(cuts, i)
		}
	}
	return cuts
}

// mergesOf enters a list of merges over a vocabulary of all texts of one to five
// of the letters a, b and the blank.
func mergesOf(byteLevel bool, raw string, cuts []int) (bpe, error) {
	b := bpe{unknown: none}
	b.vocabulary.byteLevel = byteLevel
	letters := []string{"a", "b", "▁"}
	if byteLevel {
		letters[2] = "Ġ"
	}
	level := []string{""}
	for range 5 {
		var next []string
		for _, s := range level {
			for _, l := range letters {
				next = append(next, s+l)
				if err := b.vocabulary.add([]byte(s+l), uint64(b.vocabulary.count)); err != nil {
					panic(err) // the tokens are all different
				}
			}
		}
		level = next
	}
	b.vocabulary.index()
	b.prepare()
	err := b.parseMerges(json.RawMessage(raw), cuts)
	return b, err
}

// In however many portions a list is read, the same comes out, and the same is
// wrong with it.
func TestMergesInPortions(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	long := func(form string, n int, blank string) string {
		var all []string
		letters := []string{"a", "b", blank}
		for range n {
			part := func() string {
				var s string
				for range 1 + random.IntN(2) {
					s += letters[random.IntN(3)]
				}
				return s
			}
			all = append(all, fmt.Sprintf(form, part(), part()))
		}
		return "[" + strings.Join(all, " ,\n ") + "]"
	}
	lists := []string{
		long(`"%s %s"`, 500, "Ġ"), long(`["%s", "%s"]`, 500, "Ġ"), long(`"%s %s"`, 500, "▁"), long(`["%s","%s"]`, 500, "▁"),
		`[]`, `[ ]`, `null`, ` ["a b"] `, `["a b","#version: 0.2","b a"]`,
		`["a b",]`, `["a b" "b a"]`, `["a b",,"b a"]`, `[,"a b"]`, `["a b"`, `["a b"}`, `{"a b"]`, `["a b","a","b a"]`,
		`["a b",["a"],"b a"]`, `["a b",["a","b","a"],"a"]`, `["a b",["a",],"a"]`, `["a b","a c","b a"]`, `["a b",["c","a"],"b"]`,
		`["a b","a \u0061","\u0062 a",["\u0061","\u0062"]]`, `["a b","a \"","b a"]`, `["a b","a \ud800"]`, `["a b",7]`, `["a b",["a",7]]`,
		`["aaa aaa","a b"]`, `["a b","ж a"]`, `["a b","a ж"]`, `["a b", "a b", "a b"]`,
	}
	for _, byteLevel := range []bool{true, false} {
		for _, raw := range lists {
			want, wantErr := mergesOf(byteLevel, raw, nil)
			for _, p := range []float64{1, 0.5, 0.1} {
				cuts := cutsOf(raw, p, random)
				got, err := mergesOf(byteLevel, raw, cuts)
				if fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("%.100s in %d portions: %v, whole: %v", raw, len(cuts)+1, err, wantErr)
				}
				if err == nil && !(reflect.DeepEqual(got.merges, want.merges) && reflect.DeepEqual(got.blanks, want.blanks)) {
					t.Errorf("%.100s: %d portions make another table", raw, len(cuts)+1)
				}
			}
		}
	}
}

// The places that skip notes are where a list can be cut.
func TestSkipNotesCuts(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var list strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&list, `["a,\"%d","[,]\\"], "x\\\",", `, i)
	}
	raw := "[" + list.String() + "{\"k\": [1, 2]}]"
	s := scanner{data: []byte(" " + raw + ", 1")}
	if _, err := s.skip(); err != nil {
		t.Fatal(err)
	}
	all := cutsOf(raw, 1, random)
	if len(s.cuts) < len(raw)/cutBytes/2 {
		t.Errorf("%d cuts in %d bytes", len(s.cuts), len(raw))
	}
	allowed := map[int]bool{}
	for _, at := range all {
		allowed[at] = true
	}
	for i, at := range s.cuts {
		if !allowed[at] || i > 0 && at < s.cuts[i-1]+cutBytes {
			t.Errorf("cut %d is at %d", i, at)
		}
	}
}
