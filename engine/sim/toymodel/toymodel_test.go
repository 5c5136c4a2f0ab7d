package toymodel

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestCommittedFolderIsCurrent(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "model", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale; run go generate ./engine/sim", name)
		}
	}
	entries, err := os.ReadDir(filepath.Join("..", "model"))
	if err != nil || len(entries) != len(files) {
		t.Errorf("the folder has %d files, want %d (%v)", len(entries), len(files), err)
	}
}

// tokenizerFile is what this test reads back of tokenizer.json.
type tokenizerFile struct {
	Model struct {
		Vocab  map[string]int32 `json:"vocab"`
		Merges []pair           `json:"merges"`
	} `json:"model"`
}

func readTokenizer(t *testing.T) (tokenizerFile, map[pair]int) {
	t.Helper()
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	var f tokenizerFile
	if err := json.Unmarshal(files["tokenizer.json"], &f); err != nil {
		t.Fatal(err)
	}
	ranks := map[pair]int{}
	for i, m := range f.Model.Merges {
		ranks[m] = i
	}
	return f, ranks
}

func TestEachWordIsOneToken(t *testing.T) {
	f, ranks := readTokenizer(t)
	for _, w := range Words() {
		symbols := encode(w, ranks)
		if len(symbols) != 1 || Bytes(symbols[0]) != w {
			t.Errorf("%q encodes to %q, want one token", w, symbols)
		}
		if _, ok := f.Model.Vocab[symbols[0]]; !ok {
			t.Errorf("%q has no id", w)
		}
	}
	if n := len(Words()); n < 1000 {
		t.Errorf("only %d words", n)
	}
}

func TestEmojiNeedSeveralTokens(t *testing.T) {
	_, ranks := readTokenizer(t)
	for _, c := range []string{"😂", "🎉", "🌍", "上", "时"} {
		symbols := encode(c, ranks)
		if len(symbols) < 2 {
			t.Errorf("%s is %d token", c, len(symbols))
		}
		var text string
		for _, s := range symbols {
			text += Bytes(s)
		}
		if text != c {
			t.Errorf("%s decodes to %q", c, text)
		}
	}
	for _, c := range []string{"🚀", "界", "é", "я"} {
		if symbols := encode(c, ranks); len(symbols) != 1 {
			t.Errorf("%s is %d tokens", c, len(symbols))
		}
	}
}

func TestBytesAreTheFirstIDs(t *testing.T) {
	f, _ := readTokenizer(t)
	for b, c := range byteAlphabet() {
		if f.Model.Vocab[c] != int32(b) {
			t.Errorf("byte %d has id %d", b, f.Model.Vocab[c])
		}
	}
}

// A word in two classes would be read as another part of speech than it was
// written as, and sentences would break off.
func TestPartsOfSpeechAreDisjoint(t *testing.T) {
	seen := map[string]int{}
	for i, class := range [][]string{slices.Concat(Determiners, Possessives), Adjectives, slices.Concat(Nouns, Plurals),
		Transitive, Intransitive, Adverbs, Prepositions, Conjunctions, Pronouns, Openers, Numerals} {
		for _, w := range class {
			if before, ok := seen[w]; ok {
				t.Errorf("%q is in classes %d and %d", w, before, i)
			}
			seen[w] = i
		}
	}
}
