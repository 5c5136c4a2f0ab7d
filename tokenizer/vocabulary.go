package tokenizer

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
)

const (
	none = ^uint32(0) // the id of no token
	gap  = none - 1   // a symbol that merges with nothing and is no token
)

// A vocabulary maps between tokens and ids. The tokens stand in one arena, in
// the form in which text meets them: those of a byte-level model as the bytes
// they stand for, not as the letters that spell them.
type vocabulary struct {
	arena     []byte
	spans     []span   // by id; an unused id has an empty span
	count     int      // tokens, that is spans that are used
	odd       []bool   // by id: a byte-level token that is not spelled in the byte alphabet; nil if there is none
	slots     []uint32 // hash table over the spans: id + 1
	mask      uint32
	byteLevel bool
	oddIDs    map[string]uint32 // the odd tokens by their spelling
	doubled   bool              // two ids have the same token
}

type span struct{ from, to uint32 }

// hashSeed keeps a hostile file from choosing tokens that collide.
var hashSeed = rand.Uint64() | 1

func hashBytes(b []byte) uint32 {
	h := uint64(len(b))*0x9E3779B97F4A7C15 ^ hashSeed
	for ; len(b) >= 8; b = b[8:] {
		v := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		hi, lo := bits.Mul64(h^v, 0x9FB21C651E98DF25)
		h = hi ^ lo
	}
	if len(b) > 0 {
		var v uint64
		for i, c := range b {
			v |= uint64(c) << (8 * i)
		}
		hi, lo := bits.Mul64(h^v, 0xD6E8FEB86659FD93)
		h = hi ^ lo
	}
	return uint32(h ^ h>>32)
}

// add puts a token under an id. It fails if the id is out of range or taken.
func (v *vocabulary) add(spelling []byte, id uint64) error {
	switch {
	case id >= MaxTokens:
		return fmt.Errorf("id %d of token %q is above the limit of %d", id, clip(spelling), MaxTokens-1)
	case len(spelling) > MaxTokenBytes:
		return fmt.Errorf("the token of id %d has %d bytes, above the limit of %d", id, len(spelling), MaxTokenBytes)
	case len(v.arena)+len(spelling) > 1<<31:
		return fmt.Errorf("the tokens are longer than %d bytes together", 1<<31)
	}
	for uint64(len(v.spans)) <= id {
		v.spans = append(v.spans, span{})
	}
	if s := v.spans[id]; s.from != s.to {
		return fmt.Errorf("id %d stands for two tokens", id)
	}
	from := uint32(len(v.arena))
	if v.byteLevel {
		var ok bool
		if v.arena, ok = appendSpelled(v.arena, spelling); !ok {
			if v.oddIDs == nil {
				v.oddIDs = map[string]uint32{}
			}
			v.oddIDs[string(spelling)] = uint32(id)
		}
	} else {
		v.arena = append(v.arena, spelling...)
	}
	v.spans[id] = span{from, uint32(len(v.arena))}
	v.count++
	return nil
}

// index builds the hash table, after the last add.
func (v *vocabulary) index() {
	if len(v.oddIDs) > 0 {
		v.odd = make([]bool, len(v.spans))
		for _, id := range v.oddIDs {
			v.odd[id] = true
		}
	}
	n := uint32(16)
	for n < uint32(len(v.spans))*2 {
		n <<= 1
	}
	v.slots, v.mask = make([]uint32, n), n-1
	for id := range v.spans {
		token := v.token(uint32(id))
		if len(token) == 0 || v.isOdd(uint32(id)) {
			continue
		}
		h := hashBytes(token) & v.mask
		for v.slots[h] != 0 && string(v.token(v.slots[h]-1)) != string(token) {
			h = (h + 1) & v.mask
		}
		v.doubled = v.doubled || v.slots[h] != 0
		v.slots[h] = uint32(id) + 1 // of two equal tokens the later one counts
	}
}

func (v *vocabulary) isOdd(id uint32) bool { return v.odd != nil && v.odd[id] }

// token returns the bytes of id, which is below len(spans); empty if it is unused.
func (v *vocabulary) token(id uint32) []byte {
	s := v.spans[id]
	return v.arena[s.from:s.to]
}

// id returns the id of a token given as bytes, or none.
func (v *vocabulary) id(token []byte) uint32 {
	for h := hashBytes(token) & v.mask; v.slots[h] != 0; h = (h + 1) & v.mask {
		if id := v.slots[h] - 1; string(v.token(id)) == string(token) {
			return id
		}
	}
	return none
}

// guess is what id most often returns, found without looking at any token.
func (v *vocabulary) guess(token []byte) uint32 { return v.slots[hashBytes(token)&v.mask] - 1 }

// confirm is id, of which guess is known.
func (v *vocabulary) confirm(token []byte, guess uint32) uint32 {
	if guess == none || string(v.token(guess)) == string(token) {
		return guess
	}
	return v.id(token)
}

// idNear is id, but looks only at near and the id behind it. Of two equal tokens
// it may miss the one that counts, so it is none where there can be such.
func (v *vocabulary) idNear(token []byte, near uint32) uint32 {
	if v.doubled || near == none {
		return none
	}
	for id := near; id < near+2 && id < uint32(len(v.spans)); id++ {
		if string(v.token(id)) == string(token) && !v.isOdd(id) {
			return id
		}
	}
	return none
}

// spelledID returns the id of a token as the file spells it, or none.
func (v *vocabulary) spelledID(spelling string) uint32 {
	if !v.byteLevel {
		return v.id([]byte(spelling))
	}
	b, ok := appendSpelled(nil, []byte(spelling))
	if ok {
		return v.id(b)
	}
	if id, ok := v.oddIDs[spelling]; ok {
		return id
	}
	return none
}

// spelling returns the token of id as the file spells it.
func (v *vocabulary) spelling(id uint32) string {
	token := v.token(id)
	if v.isOdd(id) {
		return string(token)
	}
	return v.spelled(token)
}

func (v *vocabulary) appendSpelling(dst []byte, id uint32) []byte {
	token := v.token(id)
	if !v.byteLevel || v.isOdd(id) {
		return append(dst, token...)
	}
	return appendSpelling(dst, token)
}

// spelled is how the file spells a token that is not odd.
func (v *vocabulary) spelled(token []byte) string {
	if !v.byteLevel {
		return string(token)
	}
	return spell(token)
}

func clip(s []byte) []byte {
	if len(s) > 100 {
		return s[:100]
	}
	return s
}
