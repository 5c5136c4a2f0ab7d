package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"unicode/utf8"
)

// ErrUnsupported is wrapped by every error that says: this file is sound, but
// asks for something that this package does not do.
var ErrUnsupported = errors.New("not supported")

func unsupported(part, kind string) error {
	if kind == "" {
		return fmt.Errorf("%s: it has no type", part)
	}
	return fmt.Errorf("%s %q is %w", part, clip([]byte(kind)), ErrUnsupported)
}

// Load reads a tokenizer from path: a tokenizer.json file, or a folder that
// holds one.
func Load(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if info.IsDir() {
		path = filepath.Join(path, "tokenizer.json")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if info.Size() > MaxFileBytes {
		return nil, fmt.Errorf("tokenizer %s: %d bytes are above the limit of %d", path, info.Size(), MaxFileBytes)
	}
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(file, MaxFileBytes+1)); err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", path, err)
	}
	t, err := Parse(data.Bytes())
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", path, err)
	}
	return t, nil
}

// Parse reads a tokenizer from the content of a tokenizer.json file. What the
// file asks for and this package cannot do is an error that wraps
// [ErrUnsupported] and names the component.
//
// The file's "truncation" and "padding" are ignored: they are for training.
func Parse(data []byte) (*Tokenizer, error) {
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("%d bytes are above the limit of %d", len(data), MaxFileBytes)
	}
	root, err := members(data, "model", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder")
	if err != nil {
		return nil, err
	}
	for name, raw := range root {
		if name != "model" && name != "added_tokens" && len(raw) > maxComponentBytes {
			return nil, fmt.Errorf("%s: %d bytes are above the limit of %d", name, len(raw), maxComponentBytes)
		}
	}
	t := &Tokenizer{}
	if t.normalizers, err = appendNormalizers(nil, root["normalizer"], 0); err != nil {
		return nil, err
	}
	if err := t.pre.add(root["pre_tokenizer"], 0); err != nil {
		return nil, err
	}
	if t.decoding, err = newDecoding(root["decoder"]); err != nil {
		return nil, err
	}
	if err := t.post.add(root["post_processor"], 0); err != nil {
		return nil, err
	}
	if isNull(root["model"]) {
		return nil, errors.New("no model in it: this is not a tokenizer.json")
	}
	if err := t.model.parse(root["model"], t.pre.byteLevel); err != nil {
		return nil, err
	}
	added, err := parseAddedTokens(root["added_tokens"])
	if err != nil {
		return nil, err
	}
	return t, t.finish(t.placeAdded(added))
}

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
	var pairs []mergePair
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

func parseAddedTokens(raw json.RawMessage) ([]addedToken, error) {
	if isNull(raw) {
		return nil, nil
	}
	var tokens []addedToken
	s := scanner{data: raw}
	err := s.list('[', ']', func() error {
		one, err := s.skip()
		if err != nil {
			return err
		}
		if len(tokens) >= MaxAddedTokens {
			return fmt.Errorf("more than the limit of %d", MaxAddedTokens)
		}
		var a addedToken
		if err := json.Unmarshal(one, &a); err != nil {
			return err
		}
		if a.ID < 0 || a.ID >= MaxTokens {
			return fmt.Errorf("id %d of token %q is out of range", a.ID, clip([]byte(a.Content)))
		}
		if len(a.Content) > MaxTokenBytes {
			return fmt.Errorf("the token of id %d has %d bytes, above the limit of %d", a.ID, len(a.Content), MaxTokenBytes)
		}
		tokens = append(tokens, a)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("added_tokens: %w", err)
	}
	return tokens, nil
}

// placeAdded gives each added token the id that it has in the reference, which
// is not always the file's: that of the same token in the vocabulary or, if
// there is none, the next one behind the vocabulary and the added tokens so
// far. In a sound file the two agree. A token that comes again replaces its
// earlier self. The special ones come out first.
func (t *Tokenizer) placeAdded(tokens []addedToken) []addedToken {
	v := &t.model.vocabulary
	var order []string
	placed := map[string]addedToken{}
	next := int64(v.count)
	for _, a := range tokens {
		if a.Content == "" {
			continue
		}
		if before, again := placed[a.Content]; again {
			a.ID, a.Special = before.ID, a.Special || before.Special
		} else {
			order = append(order, a.Content)
			if a.ID = int64(v.spelledID(a.Content)); a.ID == int64(none) {
				a.ID = next
			}
			next = max(next, a.ID+1)
		}
		placed[a.Content] = a
	}
	slices.SortStableFunc(order, func(a, b string) int {
		switch {
		case placed[a].Special == placed[b].Special:
			return 0
		case placed[a].Special:
			return -1
		}
		return 1
	})
	out := make([]addedToken, len(order))
	for i, content := range order {
		out[i] = placed[content]
	}
	return out
}

// finish builds what follows from all the parts together.
func (t *Tokenizer) finish(added []addedToken) error {
	size := len(t.model.vocabulary.spans)
	special := map[string]bool{}
	for _, a := range added {
		size = max(size, int(a.ID)+1)
		special[a.Content] = a.Special
	}
	for _, ids := range [][]int32{t.post.before, t.post.after} {
		for _, id := range ids {
			if int(id) >= size {
				return fmt.Errorf("post_processor: id %d is outside the vocabulary of %d", id, size)
			}
		}
	}
	t.pieces = make([]piece, size)
	pool := byteArena{}
	for id := range t.model.vocabulary.spans {
		t.setPiece(uint32(id), &pool)
	}
	t.addedIDs = map[string]int32{}
	t.addedTokens = map[int32]string{}
	for _, a := range added {
		// The reference turns the token itself into its normalized form. One that
		// changes by that is not found among the special ones any more.
		form := a.Content
		if a.normalized() {
			form = t.normalize(form)
			t.normalized.add(form, a)
		} else {
			t.raw.add(form, a)
		}
		t.addedIDs[a.Content] = int32(a.ID)
		t.addedTokens[int32(a.ID)] = form
		t.setSpelledPiece(uint32(a.ID), form, &pool)
		t.pieces[a.ID].special = special[form]
	}
	return nil
}

// setPiece sets the piece of a vocabulary token. Where the vocabulary already
// holds the decoded bytes they are shared.
func (t *Tokenizer) setPiece(id uint32, pool *byteArena) {
	v := &t.model.vocabulary
	token := v.token(id)
	if len(token) == 0 {
		return
	}
	if v.byteLevel && t.decoding.kind == byBytes {
		t.pieces[id] = piece{text: token[:len(token):len(token)], whole: utf8.Valid(token)}
		return
	}
	t.setSpelledPiece(id, v.spelling(id), pool)
}

func (t *Tokenizer) setSpelledPiece(id uint32, spelling string, pool *byteArena) {
	p := t.decoding.pieceOf(spelling)
	p.text = pool.keep(p.text)
	t.pieces[id] = p
	if t.decoding.firstIsOther {
		if t.firstPieces == nil {
			t.firstPieces = make([][]byte, len(t.pieces))
		}
		t.firstPieces[id] = pool.keep([]byte(t.decoding.perTokenText(spelling, true)))
	}
}

// A byteArena keeps many small byte slices in few allocations.
type byteArena struct{ free []byte }

func (a *byteArena) keep(b []byte) []byte {
	const chunk = 64 << 10
	if a.free == nil || len(b) > cap(a.free)-len(a.free) {
		a.free = make([]byte, 0, max(chunk, len(b)))
	}
	n := len(a.free)
	a.free = append(a.free, b...)
	return a.free[n:len(a.free):len(a.free)]
}
