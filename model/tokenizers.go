package model

import (
	"crypto/sha256"
	"sync"

	"baton/tokenizer"
)

// tokenizers are those that were read so far. The models of one family, and what is
// made of a model (quantizations, fine-tunes), mostly have the same tokenizer.json,
// byte for byte: it is read once, and takes its memory (16 MB for Llama 3) once. The
// zero value is ready.
type tokenizers struct {
	mu    sync.Mutex // guards bySum; held while a file is parsed, so that two at once are one
	bySum map[[sha256.Size]byte]*tokenizer.Tokenizer
}

// parse returns the tokenizer of a tokenizer.json.
func (t *tokenizers) parse(file []byte) (*tokenizer.Tokenizer, error) {
	sum := sha256.Sum256(file)
	t.mu.Lock()
	defer t.mu.Unlock()
	if tok, ok := t.bySum[sum]; ok {
		return tok, nil
	}
	tok, err := tokenizer.Parse(file)
	if err != nil {
		return nil, err
	}
	if t.bySum == nil {
		t.bySum = make(map[[sha256.Size]byte]*tokenizer.Tokenizer)
	}
	t.bySum[sum] = tok
	return tok, nil
}
