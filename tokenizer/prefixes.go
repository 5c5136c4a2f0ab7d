package tokenizer

import (
	"container/list"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
	"time"
)

// An agent sends the same conversation again and again, each time a little longer.
// So the ids of long texts are kept for a while, and a text that begins like an
// earlier one is encoded only from where it goes on.
//
// That is exact. A text is cut at its raw added tokens before anything else, and what
// stands before the end of one becomes the same ids whatever stands behind, provided
// that the token ends there in both texts: of all tokens that begin at one place the
// longest counts, and none that was taken reaches over that end, so none that is
// longer was there to take. Not so where a token takes the white space behind it
// along, or a later but longer one may win (partition.go); nothing is kept there.
//
// Of a text itself nothing is kept but a hash with a key that this process made up,
// as a way to find the ids. Without a collision in 128 bits of SHA-256 two texts with
// one hash are one text.
const (
	// maxPrefixBytes bounds the memory of one tokenizer's ids: 40 conversations of
	// 100,000 tokens.
	maxPrefixBytes = 16 << 20
	// maxPrefixAge is after which time without use ids are forgotten: they are
	// somebody's words, too.
	maxPrefixAge = 10 * time.Minute
	// minMarkBytes is how far apart marks are at least, the places up to which a
	// beginning can be used again.
	minMarkBytes = 512
	// firstMarks and lastMarks are how many marks of a text are kept: those at its
	// beginning, which other conversations may share (instructions, tools), and those
	// at its end, the last of which templates often write in another way when the
	// conversation goes on.
	firstMarks, lastMarks = 4, 12
)

// prefixes are the texts of one tokenizer that are kept. The zero value is ready.
type prefixes struct {
	makeKey sync.Once
	key     [sha256.Size]byte

	mu    sync.Mutex // guards the rest
	marks map[prefixHash]place
	texts list.List // of *keptText, the one used last in front
	bytes int       // of them all
	timer *time.Timer
}

type prefixHash [16]byte

// A place is one mark of a text.
type place struct {
	text *list.Element
	ids  int // before it
}

// A keptText does not change, apart from used.
type keptText struct {
	ids   []int32
	marks []mark
	used  time.Time
}

// A mark is a place in a text up to which its ids are known to depend on nothing
// behind it.
type mark struct {
	hash    prefixHash
	stretch int // the one that ends there
	ids     int // before it
}

func (k *keptText) size() int {
	const perText, perMark = 200, 100
	return perText + perMark*len(k.marks) + 4*len(k.ids)
}

// marksOf returns the marks of a text, still without their numbers of ids. Texts with
// different salts have no hash in common.
func (p *prefixes) marksOf(text string, stretches []stretch, salt string, scratch []byte) []mark {
	p.makeKey.Do(func() { _, _ = rand.Read(p.key[:]) }) // it never fails
	h := sha256.New()
	h.Write(p.key[:])
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(salt))))
	h.Write([]byte(salt))
	var marks []mark
	hashed := 0
	for i, s := range stretches {
		if !s.fixed || s.end-hashed < minMarkBytes {
			continue
		}
		scratch = writeString(h, text[hashed:s.end], scratch)
		hashed = s.end
		m := mark{stretch: i}
		var sum [sha256.Size]byte
		copy(m.hash[:], h.Sum(sum[:0]))
		marks = append(marks, m)
	}
	return marks
}

// writeString writes s to h by way of scratch, without a copy of all of s.
func writeString(h hash.Hash, s string, scratch []byte) []byte {
	const portion = 8 << 10
	for len(s) > 0 {
		n := min(len(s), portion)
		scratch = append(scratch[:0], s[:n]...)
		h.Write(scratch)
		s = s[n:]
	}
	return scratch
}

// find returns the ids up to the last of the marks that is known, and sets the
// numbers of ids of the marks up to there, as far as they are known. The number of
// those marks is 0 if none is known. The ids must not be changed.
func (p *prefixes) find(marks []mark) (ids []int32, known int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forgetOld()
	for i := len(marks) - 1; i >= 0; i-- {
		found, ok := p.marks[marks[i].hash]
		if !ok {
			continue
		}
		kept := found.text.Value.(*keptText)
		kept.used = time.Now()
		p.texts.MoveToFront(found.text)
		for k := range marks[:i+1] {
			marks[k].ids = p.marks[marks[k].hash].ids // the same in every text
		}
		return kept.ids[:found.ids:found.ids], i + 1
	}
	return nil, 0
}

// keep keeps the ids of a text with these marks, of which the first known were found.
func (p *prefixes) keep(ids []int32, marks []mark, known int) {
	if known == len(marks) {
		return
	}
	last := marks[len(marks)-1].ids
	kept := &keptText{ids: append([]int32(nil), ids[:last]...), used: time.Now()}
	for i, m := range marks {
		isKnown := m.ids > 0 // in the text that was found not all marks are
		if isKnown && (i < firstMarks || i >= len(marks)-lastMarks) {
			kept.marks = append(kept.marks, m)
		}
	}
	size := kept.size()
	if size > maxPrefixBytes/4 {
		return // one that would drive out many
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known > 0 {
		p.supersede(marks[known-1].hash)
	}
	if p.marks == nil {
		p.marks = make(map[prefixHash]place)
	}
	at := p.texts.PushFront(kept)
	for _, m := range kept.marks {
		p.marks[m.hash] = place{at, m.ids}
	}
	for p.bytes += size; p.bytes > maxPrefixBytes; {
		p.forget(p.texts.Back())
	}
	if p.timer == nil {
		p.timer = time.AfterFunc(maxPrefixAge, p.tidy)
	}
}

// supersede forgets the text that has this mark if nearly all of it stands before the
// mark: then it is in the one that is to be kept. Conversations that have only their
// instructions in common are both kept.
func (p *prefixes) supersede(hash prefixHash) {
	if begun, ok := p.marks[hash]; ok && begun.ids > len(begun.text.Value.(*keptText).ids)/8*7 {
		p.forget(begun.text)
	}
}

// tidy forgets what was not used for long, also if no text comes any more.
func (p *prefixes) tidy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = nil
	if p.forgetOld(); p.texts.Len() > 0 {
		p.timer = time.AfterFunc(maxPrefixAge, p.tidy)
	}
}

func (p *prefixes) forgetOld() {
	for at := p.texts.Back(); at != nil && time.Since(at.Value.(*keptText).used) >= maxPrefixAge; at = p.texts.Back() {
		p.forget(at)
	}
}

func (p *prefixes) forget(at *list.Element) {
	kept := p.texts.Remove(at).(*keptText)
	p.bytes -= kept.size()
	for _, m := range kept.marks {
		if p.marks[m.hash].text == at { // else a newer text has it
			delete(p.marks, m.hash)
		}
	}
}
