package sim

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"baton/engine"
	"baton/engine/sim/toymodel"
)

//go:generate go run ./toymodel/generate model

//go:embed model/*.json
var modelFiles embed.FS

// WriteModel writes the model folder of the simulated worker (tokenizer.json,
// tokenizer_config.json, config.json, generation_config.json) into dir, which
// is made if it is missing.
func WriteModel(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("sim: write model: %w", err)
	}
	return fs.WalkDir(modelFiles, "model", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := modelFiles.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, d.Name()), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("sim: write model: %w", err)
		}
		return nil
	})
}

// ModelContextLength is the context length of the embedded model, in tokens.
const ModelContextLength = toymodel.ContextLength

// ModelVocabSize returns the number of ids of the embedded model.
func ModelVocabSize() int { return len(embedded().pieces) }

// ModelEOS returns the end ids of the embedded model.
func ModelEOS() []engine.TokenID {
	v := embedded()
	return []engine.TokenID{v.ids["<|im_end|>"], v.ids["<|endoftext|>"]}
}

// A vocabulary says which bytes an id stands for.
type vocabulary struct {
	pieces  []string // by id; the content of a special token
	special []bool   // by id
	ids     map[string]engine.TokenID

	// continuations holds, by the bytes of a character begun, the ids that go on
	// spelling a character of the emoji and ideographs below.
	continuations map[string][]engine.TokenID
	beginnings    []engine.TokenID // ids that end inside such a character
	words         *lexicon
	tokenizer     *toymodel.Tokenizer
}

// split characters are spelled by several tokens of the embedded model each.
const splitCharacters = "😂🎉🌍😀🌈😎🍀上下丽时春"

// embedded is the vocabulary of the embedded model, read once.
var embedded = sync.OnceValue(func() *vocabulary {
	data, err := modelFiles.ReadFile("model/tokenizer.json")
	if err != nil {
		panic("sim: the embedded model has no tokenizer: " + err.Error())
	}
	v, err := parseVocabulary(data)
	if err != nil {
		panic("sim: the embedded model's tokenizer: " + err.Error())
	}
	return v
})

// parseVocabulary reads the pieces of a byte-level tokenizer.json.
func parseVocabulary(data []byte) (*vocabulary, error) {
	var file struct {
		Added []struct {
			ID      engine.TokenID `json:"id"`
			Content string         `json:"content"`
			Special bool           `json:"special"`
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]engine.TokenID `json:"vocab"`
			Merges [][2]string               `json:"merges"`
		} `json:"model"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	size := len(file.Model.Vocab) + len(file.Added)
	v := &vocabulary{pieces: make([]string, size), special: make([]bool, size), ids: make(map[string]engine.TokenID, size)}
	put := func(id engine.TokenID, piece string) error {
		if id < 0 || int(id) >= size || v.pieces[id] != "" {
			return fmt.Errorf("id %d of %q is taken or beyond the %d tokens", id, piece, size)
		}
		v.pieces[id], v.ids[piece] = piece, id
		return nil
	}
	for token, id := range file.Model.Vocab {
		if err := put(id, toymodel.Bytes(token)); err != nil {
			return nil, err
		}
	}
	for _, a := range file.Added {
		if err := put(a.ID, a.Content); err != nil {
			return nil, err
		}
		v.special[a.ID] = a.Special
		file.Model.Vocab[a.Content] = a.ID
	}
	v.tokenizer = toymodel.NewTokenizer(file.Model.Merges, file.Model.Vocab)
	v.findSplits()
	v.words = newLexicon(v)
	return v, nil
}

// findSplits fills continuations and beginnings.
func (v *vocabulary) findSplits() {
	v.continuations = map[string][]engine.TokenID{}
	for _, r := range splitCharacters {
		c := string(r)
		for cut := 1; cut < len(c); cut++ {
			begun, rest := c[:cut], c[cut:]
			for end := 1; end <= len(rest); end++ {
				if id, ok := v.ids[rest[:end]]; ok {
					v.continuations[begun] = append(v.continuations[begun], id)
				}
			}
			for _, space := range []string{"", " "} {
				if id, ok := v.ids[space+begun]; ok {
					v.beginnings = append(v.beginnings, id)
				}
			}
		}
	}
}

// text appends the text of id to dst; special tokens have none.
func (v *vocabulary) text(dst []byte, id engine.TokenID) []byte {
	if id < 0 || int(id) >= len(v.pieces) || v.special[id] {
		return dst
	}
	return append(dst, v.pieces[id]...)
}

// all returns the text of ids, that of special tokens included.
func (v *vocabulary) all(ids []engine.TokenID) string {
	var b strings.Builder
	for _, id := range ids {
		if id >= 0 && int(id) < len(v.pieces) {
			b.WriteString(v.pieces[id])
		}
	}
	return b.String()
}

// Tokenize encodes text with the embedded model's tokenizer, special tokens
// included, as the workers' /tokenize does.
func Tokenize(text string) []engine.TokenID { return embedded().tokenizer.Encode(text, true) }

// Detokenize returns the text of ids, special tokens included. Bytes that are
// no UTF-8 come as they are.
func Detokenize(ids []engine.TokenID) string { return embedded().all(ids) }
