package tokenizer

import (
	"context"
	"sync"

	"baton/tokenizer/pattern"
)

// A Tokenizer encodes and decodes the text of one model. It is immutable, apart
// from a cache of words, and safe for concurrent use.
type Tokenizer struct {
	raw         addedSet // added tokens, looked for in the text as it comes
	normalizers []normalizer
	normalized  addedSet // added tokens, looked for in the normalized text
	pre         preTokenizer
	model       bpe
	instead     func(dst []int32, text []byte) []int32 // what encodes in place of model, which then has the vocabulary only
	post        processor
	decoding    decoding

	pieces      []piece          // by id
	firstPieces [][]byte         // by id: the text at the start, where it is another one; else nil
	addedIDs    map[string]int32 // added tokens, in the vocabulary or not
	addedTokens map[int32]string

	known         prefixes  // conversations
	encoders      sync.Pool // of *encoder
	testPartBytes int       // see long.go; 0 outside of tests
}

// Encode returns the ids of text. With addSpecial the post-processor of the
// model adds its ids around them (BOS, where the model has one); special tokens
// that stand in the text are recognised in either case. Bytes that are not
// UTF-8 count as U+FFFD. A long text is encoded on several processors.
func (t *Tokenizer) Encode(text string, addSpecial bool) []int32 {
	return t.AppendEncode(make([]int32, 0, len(text)/3+8), text, addSpecial)
}

// AppendEncode is like [Tokenizer.Encode] but appends the ids to dst.
func (t *Tokenizer) AppendEncode(dst []int32, text string, addSpecial bool) []int32 {
	return t.encoder(nil).all(dst, text, addSpecial)
}

// EncodeConversation is like [Tokenizer.Encode], but keeps the ids of a long text for
// a while, in bounded memory, to find them again when a text comes that begins like
// it. Texts with different salts are kept apart: how long the encoding of one takes
// tells nothing of the others. It ends early, with the error of ctx, when ctx does.
func (t *Tokenizer) EncodeConversation(ctx context.Context, text string, addSpecial bool, salt string) ([]int32, error) {
	e := t.encoder(ctx.Done())
	e.known, e.salt = &t.known, salt
	ids := e.all(make([]int32, 0, len(text)/3+8), text, addSpecial)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return ids, nil
}

// all appends the ids of text to dst and gives the encoder back. They are not whole
// if nobody wants them any more.
func (e *encoder) all(dst []int32, text string, addSpecial bool) []int32 {
	t := e.t
	e.ids = dst
	if addSpecial {
		e.ids = append(e.ids, t.post.before...)
	}
	e.text(toValidUTF8(text))
	if addSpecial {
		e.ids = append(e.ids, t.post.after...)
	}
	dst = e.ids
	e.release()
	return dst
}

// encoder returns an encoder without ids.
func (t *Tokenizer) encoder(done <-chan struct{}) *encoder {
	e, _ := t.encoders.Get().(*encoder)
	if e == nil {
		e = &encoder{t: t, matchers: make([]pattern.Matcher, len(t.pre.steps))}
	}
	e.done = done
	return e
}

func (e *encoder) release() {
	e.ids, e.done, e.helped, e.known, e.salt = nil, nil, false, nil, ""
	if e.size() <= maxKeptBytes {
		e.t.encoders.Put(e)
	}
}

// maxKeptBytes bounds the memory that an encoder keeps for the next text.
const maxKeptBytes = 1 << 20

// An encoder is the memory of one AppendEncode, kept for the next.
type encoder struct {
	t        *Tokenizer
	ids      []int32
	buffer   []byte            // the piece that is being cut into words
	matchers []pattern.Matcher // by step
	segments []segment         // a stack: each level of walk uses what lies above the lower ones
	merge    mergeScratch
	done     <-chan struct{} // closed when nobody wants the ids any more; may be nil
	helped   bool            // a long piece may be cut for several goroutines
	known    *prefixes       // where long texts are kept; nil: they are not
	salt     string          // of the text
}

// size is about how many bytes the encoder holds.
func (e *encoder) size() int {
	const perSegment, perSymbol = 24, 28
	return cap(e.buffer) + perSegment*cap(e.segments) + perSymbol*cap(e.merge.ids)
}

// text encodes a whole text, which must be valid UTF-8.
func (e *encoder) text(text string) {
	if e.t.isLong(len(text)) {
		e.longText(text)
		return
	}
	found := addedFinder{set: &e.t.raw, text: text}
	from := 0
	for {
		m := found.next()
		if !m.ok {
			e.plain(text[from:], from == 0)
			return
		}
		if from < m.start {
			e.plain(text[from:m.start], from == 0)
		}
		e.ids = append(e.ids, m.id)
		from = m.end
	}
}

// plain encodes a stretch without raw added tokens; first says that it begins the input.
func (e *encoder) plain(text string, first bool) {
	text = e.t.normalize(text)
	found := addedFinder{set: &e.t.normalized, text: text}
	from := 0
	for {
		m := found.next()
		end := len(text)
		if m.ok {
			end = m.start
		}
		if from < end {
			e.buffer = append(e.buffer[:0], text[from:end]...)
			e.walk(e.buffer, first && from == 0, 0)
		}
		if !m.ok {
			return
		}
		e.ids = append(e.ids, m.id)
		from = m.end
	}
}

func (t *Tokenizer) normalize(text string) string {
	for _, f := range t.normalizers {
		text = f(text)
	}
	return text
}

// walk sends piece through the steps of the pre-tokenizer from number k on.
func (e *encoder) walk(piece []byte, first bool, k int) {
	if len(piece) == 0 {
		return
	}
	if k == len(e.t.pre.steps) {
		e.words(piece)
		return
	}
	s := &e.t.pre.steps[k]
	switch {
	case s.rewrite != nil:
		e.walk(s.rewrite(piece, first), first, k+1)
	case s.find.pattern != nil && s.behavior == isolated:
		if e.helped && e.t.isLong(len(piece)) && e.longPiece(piece, first, k) {
			return
		}
		// The usual step, without building a list: here all time is spent.
		m := &e.matchers[k]
		m.Reset(s.find.pattern, piece)
		if k+1 == len(e.t.pre.steps) && e.t.wholeWords() {
			e.cutWords(piece, m)
			return
		}
		from := 0
		for {
			start, end, ok := m.Next()
			if !ok {
				break
			}
			e.walk(piece[from:start], first && from == 0, k+1)
			e.walk(piece[start:end], first && start == 0, k+1)
			from = end
		}
		e.walk(piece[from:], first && from == 0, k+1)
	default:
		base := len(e.segments)
		e.segments = s.segments(e.segments, piece, &e.matchers[k])
		arranged := s.behavior.arrange(e.segments[base:])
		for _, seg := range arranged {
			e.walk(piece[seg.start:seg.end], first && seg.start == 0, k+1)
		}
		e.segments = e.segments[:base]
	}
}

// wholeWords reports whether all that words has to do with a word is to look it up or
// to merge it.
func (t *Tokenizer) wholeWords() bool {
	return !t.pre.respelled && t.instead == nil && t.model.blanks.never
}

// wordBatch is how many words are looked up together.
const wordBatch = 16

// cutWords is the last step, where m cuts piece.
func (e *encoder) cutWords(piece []byte, m *pattern.Matcher) {
	var batch [wordBatch][]byte
	n, from := 0, 0
	for ok := true; ok; {
		var start, end int
		if start, end, ok = m.Next(); !ok {
			start, end = len(piece), len(piece)
		}
		for _, word := range [...][]byte{piece[from:start], piece[start:end]} {
			if len(word) == 0 {
				continue
			}
			long := e.helped && e.t.isLong(len(word))
			if n == len(batch) || long {
				e.ids = e.t.model.appendWords(e.ids, batch[:n], &e.merge)
				n = 0
			}
			if long {
				e.words(word)
				continue
			}
			batch[n] = word
			n++
		}
		from = end
	}
	e.ids = e.t.model.appendWords(e.ids, batch[:n], &e.merge)
}

// words encodes what came out of the last step: one word or, in a model
// without a word splitter, a text that can be cut into words.
func (e *encoder) words(piece []byte) {
	if e.t.pre.respelled {
		piece, _ = appendSpelled(nil, piece)
	}
	if e.t.instead != nil {
		e.ids = e.t.instead(e.ids, piece)
		return
	}
	if e.helped && e.t.isLong(len(piece)) && e.longWords(piece) {
		return
	}
	e.ids = e.t.model.appendText(e.ids, piece, &e.merge)
}

// Token returns the token of id as the vocabulary spells it (a byte-level
// vocabulary spells a blank as Ġ).
func (t *Tokenizer) Token(id int32) (string, bool) {
	token, ok := t.AppendToken(nil, id)
	return string(token), ok
}

// AppendToken is like [Tokenizer.Token] but appends the token to dst.
func (t *Tokenizer) AppendToken(dst []byte, id int32) (token []byte, ok bool) {
	if id < 0 || int(id) >= len(t.pieces) || t.pieces[id].text == nil {
		return dst, false
	}
	if token, ok := t.addedTokens[id]; ok {
		return append(dst, token...), true
	}
	return t.model.vocabulary.appendSpelling(dst, uint32(id)), true
}

// ID returns the id of the token that the vocabulary spells so.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.addedIDs[token]; ok {
		return id, true
	}
	id := t.model.vocabulary.spelledID(token)
	return int32(id), id != none
}

// Bytes returns the bytes that id stands for in the middle of a text, nil for
// an unknown id. They need not be whole characters. The slice belongs to the
// tokenizer.
func (t *Tokenizer) Bytes(id int32) []byte {
	if id < 0 || int(id) >= len(t.pieces) {
		return nil
	}
	return t.pieces[id].text
}

// IsSpecial tells whether id is a special token, one that skipSpecial leaves out.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return id >= 0 && int(id) < len(t.pieces) && t.pieces[id].special
}

// Size returns the largest id + 1. Some ids below may be unused.
func (t *Tokenizer) Size() int { return len(t.pieces) }
