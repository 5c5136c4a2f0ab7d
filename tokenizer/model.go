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

var modelMembers = []string{"type", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "dropout", "fuse_unk", "byte_fallback", "ignore_merges"}

// parse reads the model part of a file.
func (b *bpe) parse(raw json.RawMessage, byteLevel bool) error {
	parts, err := members(raw, append([]string{"vocab", "merges"}, modelMembers...)...)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
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
	pairs, err := parseMerges(merges)
	if err != nil {
		return fmt.Errorf("model.merges: %w", err)
	}
	b.unknown = none
	if spec.UnkToken != nil {
		if b.unknown = b.vocabulary.spelledID(*spec.UnkToken); b.unknown == none {
			return fmt.Errorf("model: the unk_token %q is not in the vocabulary", clip([]byte(*spec.UnkToken)))
		}
	}
	b.prepare()
	return b.addMerges(pairs)
}

func (v *vocabulary) parse(raw json.RawMessage) error {
	if isNull(raw) {
		return errors.New("there is none")
	}
	s := scanner{data: raw}
	v.arena = make([]byte, 0, len(raw)/3)
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

// A mergePair is a merge as the file spells it.
type mergePair struct{ left, right []byte }

// parseMerges reads both notations: "a b" and ["a", "b"].
func parseMerges(raw json.RawMessage) ([]mergePair, error) {
	if isNull(raw) {
		return nil, nil
	}
	const shortest = 24 // bytes of most merges at least, to make room in one go
	pairs := make([]mergePair, 0, len(raw)/shortest)
	s := scanner{data: raw}
	token := func() ([]byte, error) {
		b, err := s.string()
		s.text = nil // keep b: give the next escaped string its own memory
		return b, err
	}
	err := s.list('[', ']', func() error {
		if len(pairs) >= MaxMerges {
			return fmt.Errorf("more than the limit of %d", MaxMerges)
		}
		if s.next() == '[' {
			var sides [2][]byte
			n := 0
			err := s.list('[', ']', func() (err error) {
				if n == 2 {
					return fmt.Errorf("merge %d has more than two parts", len(pairs))
				}
				sides[n], err = token()
				n++
				return err
			})
			if err == nil && n != 2 {
				err = fmt.Errorf("merge %d has %d parts, not two", len(pairs), n)
			}
			pairs = append(pairs, mergePair{sides[0], sides[1]})
			return err
		}
		line, err := token()
		if err != nil || bytes.HasPrefix(line, []byte("#version")) {
			return err
		}
		left, right, ok := bytes.Cut(line, []byte{' '})
		if !ok || bytes.IndexByte(right, ' ') >= 0 {
			return fmt.Errorf("merge %d, %q, does not have two parts", len(pairs), clip(line))
		}
		pairs = append(pairs, mergePair{left, right})
		return nil
	})
	return pairs, err
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

// addMerges enters the merges in the order of their rank.
func (b *bpe) addMerges(pairs []mergePair) error {
	v := &b.vocabulary
	b.merges = newMergeTable(len(pairs))
	var joined []byte
	for rank, p := range pairs {
		if v.byteLevel {
			var leftOK, rightOK bool
			joined, leftOK = appendSpelled(joined[:0], p.left)
			n := len(joined)
			joined, rightOK = appendSpelled(joined, p.right)
			if !leftOK || !rightOK { // no text has these symbols, but the file must still be sound
				for _, s := range []string{string(p.left), string(p.right), string(p.left) + string(p.right)} {
					if v.spelledID(s) == none {
						return outOfVocabulary(rank, p, s)
					}
				}
				continue
			}
			if err := b.addMerge(rank, p, joined, n); err != nil {
				return err
			}
			continue
		}
		joined = append(append(joined[:0], p.left...), p.right...)
		if err := b.addMerge(rank, p, joined, len(p.left)); err != nil {
			return err
		}
	}
	b.settleBlanks()
	return nil
}

// addMerge enters the merge of joined[:n] and joined[n:].
func (b *bpe) addMerge(rank int, p mergePair, joined []byte, n int) error {
	left, right, whole := b.vocabulary.id(joined[:n]), b.vocabulary.id(joined[n:]), b.vocabulary.id(joined)
	switch {
	case left == none:
		return outOfVocabulary(rank, p, string(p.left))
	case right == none:
		return outOfVocabulary(rank, p, string(p.right))
	case whole == none:
		return outOfVocabulary(rank, p, string(p.left)+string(p.right))
	}
	b.merges.put(left, right, uint32(rank), whole)
	b.noteBlank(p)
	return nil
}

func outOfVocabulary(rank int, p mergePair, token string) error {
	return fmt.Errorf("model.merges: merge %d of %q and %q needs the token %q, which is not in the vocabulary",
		rank, clip(p.left), clip(p.right), clip([]byte(token)))
}
