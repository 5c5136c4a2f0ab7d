package preprocess

import (
	"strings"
	"testing"
)

// Every byte, at every place among eight and beside every kind of other: what is passed
// over is plain, and what stops it is not.
func TestPlainASCII(t *testing.T) {
	isPlain := func(b byte) bool { return b >= 0x20 && b < 0x80 && b != '"' && b != '\\' }
	for b := range 256 {
		for _, other := range []string{"a", " ", "!", "#", "[", "]", "\x7f", "\x1f", "\"", "\\", "\x80", "\xff", "\x00"} {
			for at := range 20 {
				text := []byte(strings.Repeat("x", at) + string([]byte{byte(b)}) + strings.Repeat(other, 20-at))
				n := plainASCII(text)
				for i := range n {
					if !isPlain(text[i]) {
						t.Fatalf("%q: byte %d is passed over", text, i)
					}
				}
				if len(text)-n >= 8 && isPlain(text[n]) {
					t.Fatalf("%q: byte %d is not passed over", text, n)
				}
			}
		}
	}
}
