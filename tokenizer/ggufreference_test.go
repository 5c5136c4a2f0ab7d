package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/gguf"
	"baton/gguf/gguftest"
)

// These tests compare with what llama.cpp's own tokenizer made of the corpus, as
// recorded by test/models/record-gguf.sh, for the vocabularies that
// test/models/fetch-gguf.sh fetches.

// ggufVariants says which files are compared, with which metadata changed.
type ggufVariants struct {
	Files    []string `json:"files"`
	Sweep    []string `json:"sweep"`
	Variants map[string]struct {
		Base string         `json:"base"`
		Set  map[string]any `json:"set"`
	} `json:"variants"`
	Pre struct {
		Base  string   `json:"base"`
		Names []string `json:"names"`
	} `json:"pre"`
}

func ggufSpec(tb testing.TB) ggufVariants {
	tb.Helper()
	data, err := os.ReadFile("testdata/gguf-variants.json")
	if err != nil {
		tb.Fatal(err)
	}
	var v ggufVariants
	if err := json.Unmarshal(data, &v); err != nil {
		tb.Fatal(err)
	}
	return v
}

// ggufVocabulary opens a real vocabulary, or skips the test.
func ggufVocabulary(tb testing.TB, name string) *gguf.File {
	tb.Helper()
	path := filepath.Join(modelsFolder(), "gguf", "ggml-vocab-"+name+".gguf")
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("BATON_REQUIRE_MODELS") == "1" {
			tb.Fatalf("%v (run test/models/fetch-gguf.sh)", err)
		}
		tb.Skipf("the vocabulary %s is not there; test/models/fetch-gguf.sh fetches it", name)
	}
	f, err := gguf.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

// changed returns the file with other values under some keys. Of the rest it
// keeps what a tokenizer is made of.
func changed(tb testing.TB, f *gguf.File, set map[string]any) *gguf.File {
	tb.Helper()
	if len(set) == 0 {
		return f
	}
	var entries []gguftest.Entry
	add := func(key string, value any) {
		if other, ok := set[key]; ok {
			value = other
		}
		entries = append(entries, gguftest.Entry{Key: key, Value: value})
	}
	for _, key := range f.Keys() {
		if text, ok := f.String(key); ok {
			add(key, text)
		} else if flag, ok := f.Bool(key); ok {
			add(key, flag)
		} else if n, ok := f.Uint(key); ok {
			add(key, n)
		} else if texts, ok := f.Strings(key); ok {
			add(key, texts)
		} else if bytes, ok := f.Bytes(key); ok {
			add(key, bytes)
		} else if ints, ok := f.Ints(key); ok {
			short := make([]int32, len(ints))
			for i, n := range ints {
				short[i] = int32(n)
			}
			add(key, short)
		} else if floats, ok := f.Floats(key); ok {
			short := make([]float32, len(floats))
			for i, n := range floats {
				short[i] = float32(n)
			}
			add(key, short)
		}
	}
	for key, value := range set {
		if !slices.Contains(f.Keys(), key) {
			entries = append(entries, gguftest.Entry{Key: key, Value: value})
		}
	}
	out, err := gguf.Read(strings.NewReader(string(gguftest.Header(entries...))))
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// ggufTexts are the texts of record-gguf.py, in its order.
func ggufTexts(tb testing.TB, tokens []string, sweep bool) []string {
	c := testCorpus(tb)
	texts := slices.Concat(c.Texts, c.Fuzz, tokenTexts(tokens))
	if !sweep {
		return texts
	}
	var points []rune
	for r := rune(1); r < 0x30000; r++ {
		if utf8.ValidRune(r) {
			points = append(points, r)
		}
	}
	for some := range slices.Chunk(points, 64) {
		var b strings.Builder
		for i, r := range some {
			if i > 0 {
				b.WriteByte('a')
			}
			b.WriteRune(r)
		}
		texts = append(texts, b.String())
	}
	return texts
}

// tokenTexts are texts out of a file's own tokens.
func tokenTexts(tokens []string) []string {
	var odd []string
	for _, t := range tokens {
		if utf8.RuneCountInString(t) > 2 && strings.ContainsRune("<[", rune(t[0])) && strings.ContainsRune(">]", rune(t[len(t)-1])) {
			odd = append(odd, t)
		}
	}
	if len(odd) == 0 {
		odd = tokens
	}
	seed := uint32(54321)
	random := func(n int) int {
		seed = (seed*1103515245 + 12345) & 0x7fffffff
		return int(float64(seed) / 0x80000000 * float64(n))
	}
	spell := strings.NewReplacer("▁", " ", "Ġ", " ", "Ċ", "\n")
	var texts []string
	for range 400 {
		var b strings.Builder
		for range 1 + random(12) {
			if random(2) != 0 {
				b.WriteString(odd[random(len(odd))])
			} else {
				b.WriteString(tokens[random(len(tokens))])
			}
			b.WriteString([]string{"", "", " ", "\n", "  "}[random(5)])
		}
		texts = append(texts, spell.Replace(b.String()))
	}
	return texts
}

func compareWithLlamaCPP(t *testing.T, name string, f *gguf.File, sweep, pieces bool, group int) {
	t.Helper()
	tok, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	ref := openRecording(t, filepath.Join("testdata", "gguf", name+".bin"))
	tokens, _ := f.Strings("tokenizer.ggml.tokens")
	if size := int(ref.next()); tok.Size() != size {
		t.Errorf("%d tokens, llama.cpp has %d", tok.Size(), size)
	}
	for some := range slices.Chunk(ggufTexts(t, tokens, sweep), group) {
		results := make([]string, len(some))
		for i, text := range some {
			results[i] = join(tok.Encode(text, false)) + ";" + join(tok.Encode(text, true))
		}
		ref.same(strings.Join(results, "|"), "encoding", strings.Join(some, "|"))
	}
	for first := 0; pieces && first < tok.Size(); first += 256 {
		var all []string
		for id := first; id < min(first+256, tok.Size()); id++ {
			all = append(all, string(tok.Bytes(int32(id))))
		}
		ref.same(strings.Join(all, "\xff"), "the texts of the tokens", fmt.Sprintf("%d and the next", first))
	}
	if len(ref.numbers) > 0 {
		t.Errorf("the recording has %d numbers more", len(ref.numbers))
	}
	if ref.wrong > 5 {
		t.Errorf("%d results differ", ref.wrong)
	}
}

func TestAgainstLlamaCPPRecording(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute of computing")
	}
	spec := ggufSpec(t)
	for _, name := range spec.Files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareWithLlamaCPP(t, name, ggufVocabulary(t, name), slices.Contains(spec.Sweep, name), true, 1)
		})
	}
	for name, v := range spec.Variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareWithLlamaCPP(t, name, changed(t, ggufVocabulary(t, v.Base), v.Set), slices.Contains(spec.Sweep, name), false, 1)
		})
	}
	for _, pre := range spec.Pre.Names {
		t.Run("pre-"+pre, func(t *testing.T) {
			t.Parallel()
			f := changed(t, ggufVocabulary(t, spec.Pre.Base), map[string]any{"tokenizer.ggml.pre": pre})
			compareWithLlamaCPP(t, "pre-"+pre, f, false, false, 8)
		})
	}
}
