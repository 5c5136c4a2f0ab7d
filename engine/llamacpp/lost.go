package llamacpp

import (
	"bytes"
	"slices"
	"sync"
	"unicode/utf8"

	"baton/engine"
)

// maxLost bounds how many ids in a row are reconstructed. A character has four
// bytes, so more than a handful in one event is another fault.
const maxLost = 32

// lostIDs reconstructs the ids that the engine sent no event for. Such a token
// leaves the text inside a character, so its piece is no valid UTF-8: only the
// few hundred pieces of that kind come into question.
type lostIDs struct {
	piece func(engine.TokenID) []byte
	size  int

	once    sync.Once // guards the making of what follows
	partial map[string]engine.TokenID
	longest int // bytes of the longest key
}

// fillers are bytes that a U+FFFD in the engine's text may have been: beginnings
// of characters that never came to their end, and stray middles.
var fillers = []string{"\xf0\x9f", "\xe2", "\xe2\x80", "\xf0", "\xf0\x9f\x98", "\xc3", "\x80", "\x80\x80"}

// reconstruct appends to dst lost ids which, together with own, have the text
// that the event gave. Another split than the engine's is possible where several
// fit; its text is the same, and a continuation of it is as valid. Text with
// U+FFFD, whose bytes are gone, is filled with any bytes that give U+FFFD again. The
// text never begins inside a character: a prompt that ends in one is a seam.
func (l *lostIDs) reconstruct(dst []engine.TokenID, text []byte, lost int, own []engine.TokenID) ([]engine.TokenID, bool) {
	if l.piece == nil || lost > maxLost {
		return dst, false
	}
	l.once.Do(l.index)
	head := l.cutOwn(text, own)
	if ids, ok := l.split(dst, head, lost); ok {
		return ids, true
	}
	if bytes.ContainsRune(head, utf8.RuneError) {
		for _, filler := range fillers {
			if ids, ok := l.split(dst, bytes.ReplaceAll(head, []byte("\ufffd"), []byte(filler)), lost); ok {
				return ids, true
			}
		}
	}
	return dst, false
}

// pieces returns n ids whose pieces join to text, which begins inside a character.
func (l *lostIDs) pieces(text []byte, n int) ([]engine.TokenID, bool) {
	l.once.Do(l.index)
	return l.split(nil, text, n)
}

// cutOwn cuts the text of the event's own ids off. Control tokens have a piece
// but no text.
func (l *lostIDs) cutOwn(text []byte, own []engine.TokenID) []byte {
	for _, id := range slices.Backward(own) {
		piece := l.piece(id)
		head, ok := bytes.CutSuffix(text, piece)
		if !ok {
			head = bytes.TrimSuffix(text, bytes.ToValidUTF8(piece, []byte("\ufffd")))
		}
		text = head
	}
	return text
}

// split appends to dst exactly n ids whose pieces join to text. Of several splits
// it takes the one with the longest first pieces, which is what byte-pair
// merges tend to.
func (l *lostIDs) split(dst []engine.TokenID, text []byte, n int) ([]engine.TokenID, bool) {
	var dead map[[2]int]bool // bytes left and pieces left that lead nowhere
	var try func(dst []engine.TokenID, text []byte, n int) ([]engine.TokenID, bool)
	try = func(dst []engine.TokenID, text []byte, n int) ([]engine.TokenID, bool) {
		if n == 0 {
			return dst, len(text) == 0
		}
		state := [2]int{len(text), n}
		if len(text) < n || len(text) > n*l.longest || dead[state] {
			return dst, false
		}
		for size := min(l.longest, len(text)); size > 0; size-- {
			id, ok := l.partial[string(text[:size])]
			if !ok {
				continue
			}
			if ids, ok := try(append(dst, id), text[size:], n-1); ok {
				return ids, true
			}
		}
		if dead == nil {
			dead = make(map[[2]int]bool)
		}
		dead[state] = true
		return dst, false
	}
	return try(dst, text, n)
}

// index collects the pieces that end or begin inside a character. Of ids with the
// same piece the lowest is taken.
func (l *lostIDs) index() {
	l.partial = make(map[string]engine.TokenID)
	for id := engine.TokenID(0); int(id) < l.size; id++ {
		piece := l.piece(id)
		if utf8.Valid(piece) {
			continue
		}
		if _, taken := l.partial[string(piece)]; !taken {
			l.partial[string(piece)] = id
			l.longest = max(l.longest, len(piece))
		}
	}
}
