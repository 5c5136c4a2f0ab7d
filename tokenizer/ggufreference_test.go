package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"baton/gguf"
	"baton/gguf/gguftest"
	"baton/tokenizer/ucd"
)

// These tests compare with what llama.cpp's own tokenizer made of the corpus, as
// recorded by test/models/record-gguf.sh, for the vocabularies that
// test/models/fetch-gguf.sh fetches.

// ggufVariants says which files are compared, with which metadata changed.
type ggufVariants struct {
	Files    []string `json:"files"`
	Sweep    []string `json:"sweep"`
	Odd      []string `json:"oddPieces"`
	Variants map[string]struct {
		Base string         `json:"base"`
		Set  map[string]any `json:"set"`
	} `json:"variants"`
	Pre struct {
		Base  string   `json:"base"`
		Names []string `json:"names"`
		// How many results differ where llama.cpp only approximates the split that
		// the model was made with, which is what is done here.
		Approximated map[string]int `json:"approximated"`
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
	random := randomNumbers(54321)
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

// letterTexts are texts out of the characters of a file's tokens.
func letterTexts(tokens []string) []string {
	letters := []rune(strings.Join(tokens, "") + " é")
	slices.Sort(letters)
	letters = slices.Compact(letters)
	random := randomNumbers(777)
	var texts []string
	for range 1600 {
		var b strings.Builder
		for range 1 + random(14) {
			b.WriteRune(letters[random(len(letters))])
		}
		texts = append(texts, strings.ReplaceAll(b.String(), "▁", " "))
	}
	return texts
}

func randomNumbers(seed uint32) func(below int) int {
	return func(below int) int {
		seed = (seed*1103515245 + 12345) & 0x7fffffff
		return int(float64(seed) / 0x80000000 * float64(below))
	}
}

func compareWithLlamaCPP(t *testing.T, name string, f *gguf.File, sweep, pieces bool, group, approximated int) {
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
	wrong := 0
	texts := ggufTexts(t, tokens, sweep)
	if strings.HasPrefix(name, "small-") {
		texts = slices.Concat(tokenTexts(tokens), letterTexts(tokens))
	}
	for some := range slices.Chunk(texts, group) {
		results := make([]string, len(some))
		for i, text := range some {
			results[i] = join(tok.Encode(text, false)) + ";" + join(tok.Encode(text, true))
		}
		if ref.next() == hash32(strings.Join(results, "|")) || !sweep && slices.ContainsFunc(some, hasNewLetter) {
			continue
		}
		if wrong++; wrong <= 5 && approximated == 0 {
			t.Errorf("%q is %.200q, not what llama.cpp gives", clip([]byte(strings.Join(some, "|"))), results)
		}
	}
	if wrong != approximated {
		t.Errorf("%d results differ, not %d", wrong, approximated)
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
}

// sameRecording checks that llama.cpp does the same for both names, too.
func sameRecording(t *testing.T, a, b string) {
	t.Helper()
	var recorded [2][]byte
	for i, name := range []string{a, b} {
		var err error
		if recorded[i], err = os.ReadFile(filepath.Join("testdata", "gguf", name+".bin")); err != nil {
			t.Fatal(err)
		}
	}
	if string(recorded[0]) != string(recorded[1]) {
		t.Errorf("%s and %s are one split here, two to llama.cpp", a, b)
	}
}

// hasNewLetter tells whether text has a character that llama.cpp's tables, of
// Unicode 15, have in another category than the reference's, of Unicode 16.
func hasNewLetter(text string) bool {
	for _, category := range newLetters() {
		for _, r := range text {
			if r >= utf8.RuneSelf && category.now.Has(r) != unicode.Is(category.then, r) {
				return true
			}
		}
	}
	return false
}

type categoryChange struct {
	now  *ucd.Table
	then *unicode.RangeTable
}

var newLetters = sync.OnceValue(func() []categoryChange {
	var all []categoryChange
	for _, name := range []string{"L", "M", "N", "P", "S"} {
		all = append(all, categoryChange{ucd.MustNamed(name).Table(), unicode.Categories[name]})
	}
	return all
})

func TestAgainstLlamaCPPRecording(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute of computing")
	}
	spec := ggufSpec(t)
	for _, name := range []string{"small-lone", "small-rwkv", "small-t5", "small-t5-words"} {
		t.Run(name, func(t *testing.T) {
			f, err := gguf.Open(filepath.Join("testdata", "gguf", name+".gguf"))
			if err != nil {
				t.Fatal(err)
			}
			compareWithLlamaCPP(t, name, f, false, true, 1, 0)
		})
	}
	for _, name := range spec.Files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareWithLlamaCPP(t, name, ggufVocabulary(t, name), slices.Contains(spec.Sweep, name), !slices.Contains(spec.Odd, name), 1, 0)
		})
	}
	for name, v := range spec.Variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compareWithLlamaCPP(t, name, changed(t, ggufVocabulary(t, v.Base), v.Set), slices.Contains(spec.Sweep, name), false, 1, 0)
		})
	}
	first := map[string]string{} // the first name of each split
	for _, pre := range spec.Pre.Names {
		t.Run("pre-"+pre, func(t *testing.T) {
			split := fmt.Sprint(ggufSplits[pre])
			if same, known := first[split]; known {
				sameRecording(t, "pre-"+pre, "pre-"+same)
				return
			}
			first[split] = pre
			t.Parallel()
			f := changed(t, ggufVocabulary(t, spec.Pre.Base), map[string]any{"tokenizer.ggml.pre": pre})
			compareWithLlamaCPP(t, "pre-"+pre, f, false, false, 8, spec.Pre.Approximated[pre])
		})
	}
}
