package tokenizer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// maxCharsmapBytes is how large a precompiled map of characters may be; those
// in use have 240 kB.
const maxCharsmapBytes = 16 << 20

// A charsmap is SentencePiece's precompiled_charsmap: which beginnings of a text
// are replaced by what, for instance a ligature by its letters. The beginnings
// stand in a double array of 32-bit units (Darts: base in bits 10-30, shifted by
// 8 where bit 9 is set; label in bits 0-7; bit 8 says that a value follows), the
// replacements behind it, each ended by a zero byte. The format is that of
// sentencepiece/src/normalizer.cc and darts.h.
type charsmap struct {
	units        []uint32
	replacements []byte
}

func newCharsmap(blob []byte) (*charsmap, error) {
	if len(blob) > maxCharsmapBytes {
		return nil, fmt.Errorf("the map of characters has %d bytes, above the limit of %d", len(blob), maxCharsmapBytes)
	}
	if len(blob) < 4 {
		return nil, errors.New("the map of characters has no size")
	}
	size := uint64(binary.LittleEndian.Uint32(blob))
	blob = blob[4:]
	if size >= uint64(len(blob)) || size%4 != 0 {
		return nil, fmt.Errorf("the map of characters has a table of %d bytes, which its %d bytes do not hold", size, len(blob))
	}
	m := &charsmap{units: make([]uint32, size/4), replacements: blob[size:]}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(blob[4*i:])
	}
	if m.replacements[len(m.replacements)-1] != 0 {
		return nil, errors.New("the last replacement in the map of characters has no end")
	}
	for r := range bytes.SplitSeq(m.replacements, []byte{0}) {
		if len(r) > maxReplacementBytes {
			return nil, fmt.Errorf("the map of characters puts in %d bytes at a time, above the limit of %d", len(r), maxReplacementBytes)
		}
	}
	return m, nil
}

// longest returns the replacement for the longest beginning of text that has
// one, and how long that beginning is: 0 if there is none. A table that points
// out of itself ends the search.
func (m *charsmap) longest(text []byte) (replacement []byte, size int) {
	if len(m.units) == 0 {
		return nil, 0
	}
	base := func(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
	at := base(m.units[0])
	for i, c := range text[:min(len(text), maxTrieTokenBytes)] {
		if at ^= uint32(c); c == 0 || at >= uint32(len(m.units)) {
			break
		}
		unit := m.units[at]
		if unit&(1<<31|0xFF) != uint32(c) {
			break
		}
		at ^= base(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if at >= uint32(len(m.units)) {
			break
		}
		from := m.units[at] &^ (1 << 31)
		if from >= uint32(len(m.replacements)) {
			break
		}
		replacement, size = m.replacements[from:], i+1
	}
	if size > 0 {
		replacement = replacement[:bytes.IndexByte(replacement, 0)]
	}
	return replacement, size
}
