package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

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
		if t.setPiece(uint32(id), &pool); pool.total > maxDecodedBytes {
			return fmt.Errorf("decoder: the tokens become more than %d bytes together", maxDecodedBytes)
		}
	}
	return t.finishAdded(added, special, &pool)
}

// finishAdded makes the added tokens known.
func (t *Tokenizer) finishAdded(added []addedToken, special map[string]bool, pool *byteArena) error {
	// The reference turns the token itself into its normalized form. One that
	// changes by that is not found among the special ones any more.
	forms, size := make([]string, len(added)), 0
	for i, a := range added {
		forms[i] = a.Content
		if a.normalized() {
			forms[i] = t.normalize(a.Content)
		}
		if size += len(forms[i]); size > maxAddedBytes {
			return fmt.Errorf("added_tokens: they are longer than %d bytes together", maxAddedBytes)
		}
	}
	t.addedIDs = map[string]int32{}
	t.addedTokens = map[int32]string{}
	for i, a := range added {
		form := forms[i]
		if a.normalized() {
			t.normalized.add(form, a)
		} else {
			t.raw.add(form, a)
		}
		t.addedIDs[a.Content] = int32(a.ID)
		t.addedTokens[int32(a.ID)] = form
		if _, known := t.ID(form); !known {
			t.addedIDs[form] = int32(a.ID)
		}
		t.setSpelledPiece(uint32(a.ID), form, pool)
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
	p, text := t.decoding.pieceOf(spelling)
	p.text = pool.keep(text)
	t.pieces[id] = p
	if t.decoding.firstIsOther {
		if t.firstPieces == nil {
			t.firstPieces = make([][]byte, len(t.pieces))
		}
		t.firstPieces[id] = pool.keep(t.decoding.perTokenText(spelling, true))
	}
}

// A byteArena keeps many small texts in few allocations.
type byteArena struct {
	free  []byte
	total int // what was kept so far
}

// keep returns the bytes of text; they are never nil.
func (a *byteArena) keep(text string) []byte {
	const chunk = 64 << 10
	a.total += len(text)
	if a.free == nil || len(text) > cap(a.free)-len(a.free) {
		a.free = make([]byte, 0, max(chunk, len(text)))
	}
	n := len(a.free)
	a.free = append(a.free, text...)
	return a.free[n:len(a.free):len(a.free)]
}
