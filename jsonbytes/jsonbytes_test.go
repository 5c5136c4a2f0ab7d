package jsonbytes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func isPlain(c byte) bool { return c >= ' ' && c != '"' && c != '\\' }

// Eight bytes at a time finds what one at a time does, wherever it stands and
// whatever stands beside it.
func TestPlain(t *testing.T) {
	for _, filler := range []byte{' ', 'a', 0x7f, 0x80, 0xff} {
		for length := range 26 {
			b := bytes.Repeat([]byte{filler}, length)
			if n := Plain(b); n != length {
				t.Errorf("%d of %d bytes %#x", n, length, filler)
			}
			for at := range length {
				for c := range 256 {
					b[at] = byte(c)
					want := length
					if !isPlain(byte(c)) {
						want = at
					}
					if n := Plain(b); n != want {
						t.Fatalf("%d plain bytes in %q, want %d", n, b, want)
					}
					if at+1 < length { // a byte whose borrow reaches the next one
						b[at+1] = '!'
						if n := Plain(b); n != want {
							t.Fatalf("%d plain bytes in %q, want %d", n, b, want)
						}
						b[at+1] = filler
					}
				}
				b[at] = filler
			}
		}
	}
}

// Every byte, at every place among eight and beside every kind of other: what is passed
// over is plain, and what stops it is not; of a text as of bytes.
func TestPlainBesideOthers(t *testing.T) {
	isASCII := func(b byte) bool { return isPlain(b) && b < 0x80 }
	for b := range 256 {
		for _, other := range []string{"a", " ", "!", "#", "[", "]", "\x7f", "\x1f", "\"", "\\", "\x80", "\xff", "\x00"} {
			for at := range 20 {
				text := []byte(strings.Repeat("x", at) + string([]byte{byte(b)}) + strings.Repeat(other, 20-at))
				for _, tt := range []struct {
					n, ofString int
					isPlain     func(byte) bool
				}{
					{Plain(text), Plain(string(text)), isPlain},
					{PlainASCII(text), PlainASCII(string(text)), isASCII},
				} {
					for i := range tt.n {
						if !tt.isPlain(text[i]) {
							t.Fatalf("%q: byte %d is passed over", text, i)
						}
					}
					if tt.n < len(text) && tt.isPlain(text[tt.n]) || tt.n != tt.ofString {
						t.Fatalf("%q: byte %d is not passed over, or only in a string: %d", text, tt.n, tt.ofString)
					}
				}
			}
		}
	}
}

// Each byte is what encoding/json reads back.
func TestAppendEscaped(t *testing.T) {
	for c := range 256 {
		text := string(rune(c))
		var escaped []byte
		for i := range len(text) {
			escaped = AppendEscaped(escaped, text[i])
		}
		var got string
		if err := json.Unmarshal(fmt.Appendf(nil, `"%s"`, escaped), &got); err != nil || got != text {
			t.Errorf("%q is written %s: %q, %v", text, escaped, got, err)
		}
		if isPlain(byte(c)) != (string(escaped) == text) {
			t.Errorf("%q is written %s", text, escaped)
		}
	}
}

func BenchmarkPlain(b *testing.B) {
	text := strings.Repeat("A text, and nothing else in it. ", 128)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Plain(text)
	}
}
