package llamacpp

import (
	"bytes"
	"slices"
	"testing"
	"unicode/utf8"

	"baton/engine"
)

// FuzzReconstruct sends every text through the server's rule (an event only
// where the text is whole) and checks that what comes back has the same bytes
// and the same number of ids.
func FuzzReconstruct(f *testing.F) {
	f.Add("🚀 日本語", uint64(1))
	f.Add("a🎉b👩‍👩‍👧é", uint64(0xdeadbeef))
	// A vocabulary of all bytes and of all pairs from 0x80 up.
	const pairs = 256
	piece := func(id engine.TokenID) []byte {
		if id < pairs {
			return []byte{byte(id)}
		}
		id -= pairs
		return []byte{0x80 + byte(id>>7), 0x80 + byte(id&0x7f)}
	}
	f.Fuzz(func(t *testing.T, text string, cuts uint64) {
		if !utf8.ValidString(text) || len(text) > 100 {
			return
		}
		lost := lostIDs{piece: piece, size: pairs + 1<<14}
		var hidden []engine.TokenID // generated since the last event
		var shown int
		for i := 0; i < len(text); {
			id := engine.TokenID(text[i])
			size := 1
			if cuts&1 == 1 && i+1 < len(text) && text[i] >= 0x80 && text[i+1] >= 0x80 {
				id, size = pairs+engine.TokenID(text[i]-0x80)<<7+engine.TokenID(text[i+1]-0x80), 2
			}
			cuts = cuts>>1 | cuts<<63
			i += size
			if !utf8.ValidString(text[shown:i]) {
				hidden = append(hidden, id)
				continue
			}
			got, ok := lost.reconstruct(nil, []byte(text[shown:i]), len(hidden), []engine.TokenID{id})
			if !ok || len(got) != len(hidden) || !bytes.Equal(join(piece, got), join(piece, hidden)) {
				t.Fatalf("%q: %v, %v; want the bytes of %v", text[shown:i], got, ok, hidden)
			}
			shown, hidden = i, hidden[:0]
		}
	})
}

func join(piece func(engine.TokenID) []byte, ids []engine.TokenID) []byte {
	var b []byte
	for _, id := range ids {
		b = append(b, piece(id)...)
	}
	return b
}

func TestReconstruct(t *testing.T) {
	id := func(ids ...engine.TokenID) []engine.TokenID { return ids }
	pieces := map[engine.TokenID][]byte{1: []byte("\xf0"), 2: []byte("\x9f"), 3: []byte("\x9a"), 4: []byte("\x80"), 5: []byte("\xf0\x9f"), 6: []byte("\x80!"), 7: []byte("b"), 8: []byte("<end>"), 9: []byte("a\xf0\x9f")}
	tests := []struct {
		name string
		text string
		lost int
		own  []engine.TokenID
		want []engine.TokenID // nil = impossible
	}{
		{"two of three", "🚀", 2, id(4), id(5, 3)},
		{"three of four", "🚀", 3, id(4), id(1, 2, 3)},
		{"own id goes beyond the character", "🚀!", 2, id(6), id(5, 3)},
		{"text before the character", "a🚀", 2, id(4), id(9, 3)},
		{"own control token has no text", "🚀", 4, id(8), id(1, 2, 3, 4)},
		{"no own ids", "🚀", 3, nil, id(5, 3, 4)},
		{"one too few", "🚀", 1, id(4), nil},
		{"one too many", "🚀", 4, id(4), nil},
		{"unknown bytes", "é", 1, id(4), nil},
		{"a character that never came", "\ufffdb", 1, id(7), id(5)},
		{"more than is sane", "🚀", maxLost + 1, id(4), nil},
	}
	for _, test := range tests {
		lost := lostIDs{piece: func(id engine.TokenID) []byte { return pieces[id] }, size: 10}
		got, ok := lost.reconstruct(nil, []byte(test.text), test.lost, test.own)
		if ok != (test.want != nil) || ok && !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, %v; want %v", test.name, got, ok, test.want)
		}
	}
	if _, ok := (&lostIDs{}).reconstruct(nil, []byte("🚀"), 2, id(4)); ok {
		t.Error("ids were found without a vocabulary")
	}
}

// The search must not explode where very many splits nearly fit.
func TestReconstructIsBounded(t *testing.T) {
	lost := lostIDs{piece: func(id engine.TokenID) []byte { return bytes.Repeat([]byte{0x80}, int(id)) }, size: 21}
	if _, ok := lost.reconstruct(nil, append(bytes.Repeat([]byte{0x80}, 300), 'x'), maxLost, nil); ok {
		t.Error("an x was found among bytes 0x80")
	}
}
