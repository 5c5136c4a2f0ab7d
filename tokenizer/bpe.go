package tokenizer

import (
	"bytes"
	"sync/atomic"
	"unicode/utf8"
)

// A bpe is the model: it turns one word into ids by merging neighbouring
// symbols, the pair of the lowest rank first, the leftmost of equal ones.
type bpe struct {
	vocabulary   vocabulary
	merges       *mergeTable
	byteID       [256]uint32 // the token of a single byte (byte level), none if missing
	fallbackID   [256]uint32 // the token <0xNN> (byte fallback), none if missing
	unknown      uint32      // the token for what has no other, none if there is none
	fuseUnknown  bool        // a run of unknown characters is one unknown token
	ignoreMerges bool        // a word that is a token is that token, whatever the merges say
	fallback     bool
	gaps         bool // what has no token keeps its neighbours apart (llama.cpp); else they meet (the reference)
	wholeLines   bool // like ignoreMerges, for words of nothing but line breaks
	blanks       blankCuts
	lone         []rune          // characters that are no tokens but parts of some: numbered from firstLone
	loneID       map[rune]uint32 // their numbers
	firstLone    uint32
	cache        []atomic.Pointer[cachedWord]
}

// A cachedWord holds a usual word and its ids within: of a text that comes now and
// then the cache of words is not in the processor's, and each further place to look
// at costs as much as all else about a word.
type cachedWord struct {
	size  uint8 // of the word in bytes
	short [shortBytes]byte
	few   [shortIDs]int32
	ids   []int32
	long  string // the word, if it is not short
}

const shortBytes, shortIDs = 15, 4

func newCachedWord(word []byte, ids []int32) *cachedWord {
	c := &cachedWord{size: uint8(len(word))}
	if copy(c.short[:], word) < len(word) {
		c.long = string(word)
	}
	c.ids = append(c.few[:0:shortIDs], ids...)
	return c
}

func (c *cachedWord) is(word []byte) bool {
	if len(word) > shortBytes {
		return c.long == string(word)
	}
	return int(c.size) == len(word) && string(c.short[:c.size]) == string(word)
}

const (
	// The cache is a direct-mapped table of words: at most 1<<cacheBits words
	// of at most maxCachedBytes.
	cacheBits      = 16
	maxCachedBytes = 128
	// maxWordBytes bounds the memory of one merge, some thirty bytes a byte of
	// the word: a longer word is cut. Nothing but an attack has one (it alone
	// would fill most contexts), and only tokens beside the cut differ.
	maxWordBytes = 4 << 20
	// maxScanned is up to how many symbols the best pair is searched by
	// looking at all; above, a heap keeps long words from costing n².
	maxScanned = 48
)

// mergeScratch is the memory of one merge, kept for the next.
type mergeScratch struct {
	ids        []uint32
	merged     []uint64 // what symbol i and its right neighbour merge into, or noMerge
	next, prev []int32
	heap       []uint64 // rank<<32 | position, a 4-ary min-heap
}

// appendWords appends the ids of some words. Where they are cached they are found in
// memory that the processor's own caches do not hold, in two places one behind the
// other; to know the places of all words first lets it fetch them together.
func (b *bpe) appendWords(dst []int32, words [][]byte, s *mergeScratch) []int32 {
	var found [wordBatch]*cachedWord
	for i, word := range words {
		if len(word) <= maxCachedBytes {
			found[i] = b.slot(word).Load()
		}
	}
	for i, word := range words {
		if c := found[i]; c != nil && c.is(word) {
			dst = append(dst, c.ids...)
		} else {
			dst = b.appendWord(dst, word, s)
		}
	}
	return dst
}

// slot is where the cache has a word, if it does.
func (b *bpe) slot(word []byte) *atomic.Pointer[cachedWord] {
	return &b.cache[hashBytes(word)>>(32-cacheBits)]
}

// appendWord appends the ids of one word.
func (b *bpe) appendWord(dst []int32, word []byte, s *mergeScratch) []int32 {
	if len(word) == 0 {
		return dst
	}
	if b.vocabulary.byteLevel && len(word) == 1 {
		if id := b.byteID[word[0]]; id != none {
			return append(dst, int32(id))
		}
	}
	for len(word) > maxWordBytes {
		cut := maxWordBytes
		for !b.vocabulary.byteLevel && !utf8.RuneStart(word[cut]) {
			cut--
		}
		dst = b.appendUncached(dst, word[:cut], s)
		word = word[cut:]
	}
	if len(word) > maxCachedBytes {
		return b.appendUncached(dst, word, s)
	}
	slot := b.slot(word)
	if c := slot.Load(); c != nil && c.is(word) {
		return append(dst, c.ids...)
	}
	start := len(dst)
	dst = b.appendUncached(dst, word, s)
	slot.Store(newCachedWord(word, dst[start:]))
	return dst
}

func (b *bpe) appendUncached(dst []int32, word []byte, s *mergeScratch) []int32 {
	if b.ignoreMerges || b.wholeLines && len(bytes.Trim(word, "\n")) == 0 {
		if id := b.vocabulary.id(word); id != none {
			return append(dst, int32(id))
		}
	}
	b.symbols(word, s)
	switch n := len(s.ids); {
	case n < 2:
	case n <= maxScanned:
		b.mergeByScan(s)
	default:
		b.mergeByHeap(s)
	}
	for _, id := range s.ids {
		if id < b.firstLone {
			dst = append(dst, int32(id))
		} else if id < gap {
			dst = b.appendLone(dst, id)
		}
	}
	return dst
}

// appendLone spells a character that was merged with nothing by byte tokens.
func (b *bpe) appendLone(dst []int32, id uint32) []int32 {
	var char [utf8.UTFMax]byte
	for _, c := range char[:utf8.EncodeRune(char[:], b.lone[id-b.firstLone])] {
		if b.fallbackID[c] != none {
			dst = append(dst, int32(b.fallbackID[c]))
		}
	}
	return dst
}

// symbols sets s.ids to the word's first symbols: its characters or, in a
// byte-level model, its bytes.
func (b *bpe) symbols(word []byte, s *mergeScratch) {
	s.ids = s.ids[:0]
	unknownHeld := false // the reference holds one back, to fuse it with the next
	for i := 0; i < len(word); {
		id, size := none, 1
		if b.vocabulary.byteLevel {
			id = b.byteID[word[i]]
		} else {
			if word[i] >= utf8.RuneSelf {
				_, size = utf8.DecodeRune(word[i:])
			}
			id = b.vocabulary.id(word[i : i+size])
			if id == none && b.lone != nil {
				id = b.loneSymbol(word[i : i+size])
			}
		}
		char := word[i : i+size]
		i += size
		switch {
		case id != none:
			if unknownHeld {
				s.ids = append(s.ids, b.unknown)
				unknownHeld = false
			}
			s.ids = append(s.ids, id)
		case b.fallback && b.appendFallback(s, char):
			// The held one stays held behind these, as in the reference.
		case b.gaps:
			s.ids = append(s.ids, gap)
		case b.unknown != none:
			if unknownHeld && !b.fuseUnknown {
				s.ids = append(s.ids, b.unknown)
			}
			unknownHeld = true
		}
	}
	if unknownHeld {
		s.ids = append(s.ids, b.unknown)
	}
}

func (b *bpe) loneSymbol(char []byte) uint32 {
	r, _ := utf8.DecodeRune(char)
	if id, ok := b.loneID[r]; ok {
		return id
	}
	return none
}

// appendFallback spells a character by byte tokens, if there is one for each of its bytes.
func (b *bpe) appendFallback(s *mergeScratch, char []byte) bool {
	spelling := char
	if b.vocabulary.byteLevel { // the reference sees the letter that spells the byte
		spelling = utf8.AppendRune(nil, byteLetter[char[0]])
	}
	for _, c := range spelling {
		if b.fallbackID[c] == none {
			return false
		}
	}
	for _, c := range spelling {
		s.ids = append(s.ids, b.fallbackID[c])
	}
	return true
}

// pairs sets s.merged for every pair of neighbours.
func (b *bpe) pairs(s *mergeScratch) {
	s.merged = s.merged[:0]
	for i := 1; i < len(s.ids); i++ {
		s.merged = append(s.merged, b.merges.get(s.ids[i-1], s.ids[i]))
	}
}

func (b *bpe) mergeByScan(s *mergeScratch) {
	b.pairs(s)
	ids, merged := s.ids, s.merged
	for {
		best, at := noMerge, -1
		for i, m := range merged {
			if m>>32 < best>>32 {
				best, at = m, i
			}
		}
		if at < 0 {
			break
		}
		ids[at] = uint32(best)
		ids = append(ids[:at+1], ids[at+2:]...)
		merged = append(merged[:at], merged[at+1:]...)
		if at < len(merged) {
			merged[at] = b.merges.get(ids[at], ids[at+1])
		}
		if at > 0 {
			merged[at-1] = b.merges.get(ids[at-1], ids[at])
		}
	}
	s.ids = ids
}

// mergeByHeap leaves none in s.ids where a symbol was merged into its left neighbour.
func (b *bpe) mergeByHeap(s *mergeScratch) {
	b.pairs(s)
	n := len(s.ids)
	s.merged = append(s.merged, noMerge)
	s.next, s.prev, s.heap = s.next[:0], s.prev[:0], s.heap[:0]
	for i, m := range s.merged {
		s.next, s.prev = append(s.next, int32(i+1)), append(s.prev, int32(i-1))
		if m != noMerge {
			s.heap = append(s.heap, entry(m, i))
		}
	}
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.down(i)
	}
	for len(s.heap) > 0 {
		top := s.pop()
		at := int32(uint32(top))
		if s.ids[at] == none || s.merged[at]>>32 != top>>32 {
			continue // that pair is no more
		}
		right := s.next[at]
		s.ids[at], s.ids[right] = uint32(s.merged[at]), none
		after := s.next[right]
		s.next[at] = after
		s.merged[at] = noMerge
		if int(after) < n {
			s.prev[after] = at
			s.pair(b, at, after)
		}
		if before := s.prev[at]; before >= 0 {
			s.pair(b, before, at)
		}
	}
}

func entry(merged uint64, at int) uint64 { return merged&^0xFFFFFFFF | uint64(at) }

// pair works out what two new neighbours merge into.
func (s *mergeScratch) pair(b *bpe, left, right int32) {
	m := b.merges.get(s.ids[left], s.ids[right])
	s.merged[left] = m
	if m != noMerge {
		s.push(entry(m, int(left)))
	}
}

func (s *mergeScratch) pop() uint64 {
	top := s.heap[0]
	last := len(s.heap) - 1
	s.heap[0] = s.heap[last]
	s.heap = s.heap[:last]
	s.down(0)
	return top
}

func (s *mergeScratch) down(i int) {
	h := s.heap
	for {
		child := 4*i + 1
		if child >= len(h) {
			return
		}
		least := child
		for k := child + 1; k < min(child+4, len(h)); k++ {
			if h[k] < h[least] {
				least = k
			}
		}
		if h[i] <= h[least] {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

func (s *mergeScratch) push(e uint64) {
	s.heap = append(s.heap, e)
	h := s.heap
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 4
		if h[parent] <= h[i] {
			return
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
}
