package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
)

type modelSpec struct {
	Type         string   `json:"type"`
	UnkToken     *string  `json:"unk_token"`
	Prefix       *string  `json:"continuing_subword_prefix"`
	Suffix       *string  `json:"end_of_word_suffix"`
	Dropout      *float64 `json:"dropout"`
	FuseUnk      bool     `json:"fuse_unk"`
	ByteFallback bool     `json:"byte_fallback"`
	IgnoreMerges bool     `json:"ignore_merges"`
}

var modelMembers = []string{"vocab", "merges", "type", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "dropout", "fuse_unk", "byte_fallback", "ignore_merges"}

// parse reads the model part of a file, of which these are the members. The list
// of merges can be cut at cuts.
func (b *bpe) parse(parts map[string]json.RawMessage, cuts []int, byteLevel bool) error {
	vocab, merges := parts["vocab"], parts["merges"]
	delete(parts, "vocab")
	delete(parts, "merges")
	small, err := json.Marshal(parts)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	var spec modelSpec
	if err := unmarshal(small, &spec, "model"); err != nil {
		return err
	}
	switch {
	case spec.Type != "BPE" && (spec.Type != "" || merges == nil): // old files name no type
		return unsupported("model", spec.Type)
	case spec.Prefix != nil && *spec.Prefix != "":
		return fmt.Errorf("model: a continuing_subword_prefix is %w", ErrUnsupported)
	case spec.Suffix != nil && *spec.Suffix != "":
		return fmt.Errorf("model: an end_of_word_suffix is %w", ErrUnsupported)
	case spec.Dropout != nil && *spec.Dropout != 0:
		return fmt.Errorf("model: dropout is %w", ErrUnsupported)
	}
	b.fuseUnknown, b.ignoreMerges, b.fallback = spec.FuseUnk, spec.IgnoreMerges, spec.ByteFallback
	b.vocabulary.byteLevel = byteLevel
	if err := b.vocabulary.parse(vocab); err != nil {
		return fmt.Errorf("model.vocab: %w", err)
	}
	b.unknown = none
	if spec.UnkToken != nil {
		if b.unknown = b.vocabulary.spelledID(*spec.UnkToken); b.unknown == none {
			return fmt.Errorf("model: the unk_token %q is not in the vocabulary", clip([]byte(*spec.UnkToken)))
		}
	}
	b.prepare()
	return b.parseMerges(merges, cuts)
}

func (v *vocabulary) parse(raw json.RawMessage) error {
	if isNull(raw) {
		return errors.New("there is none")
	}
	s := scanner{data: raw}
	v.arena = make([]byte, 0, len(raw)/3)
	v.spans = make([]span, 0, min(bytes.Count(raw, []byte{':'}), MaxTokens))
	err := s.object(func(key []byte) error {
		id, err := s.number()
		if err != nil {
			return err
		}
		return v.add(key, id)
	})
	v.index()
	return err
}

// prepare fills the tables that follow from the vocabulary.
func (b *bpe) prepare() {
	for c := range b.byteID {
		b.byteID[c], b.fallbackID[c] = none, none
		if b.vocabulary.byteLevel {
			b.byteID[c] = b.vocabulary.id([]byte{byte(c)})
		}
		if b.fallback {
			b.fallbackID[c] = b.vocabulary.spelledID(fmt.Sprintf("<0x%02X>", c))
		}
	}
	b.firstLone = gap
	b.cache = make([]atomic.Pointer[cachedWord], 1<<cacheBits)
}
