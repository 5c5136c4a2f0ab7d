package tokenizer

import "unicode/utf8"

// Byte-level vocabularies, since GPT-2, spell each byte as one printable
// letter: printable Latin-1 bytes as themselves, the others as U+0100 and up.
var (
	byteLetter [256]rune  // the letter of a byte
	letterByte [512]int16 // the byte of a letter, -1 if it stands for none
)

func init() {
	for i := range letterByte {
		letterByte[i] = -1
	}
	next := rune(0x100)
	for b := range byteLetter {
		letter := rune(b)
		if printable := b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE; !printable {
			letter = next
			next++
		}
		byteLetter[b], letterByte[letter] = letter, int16(b)
	}
}

// appendSpelled appends the bytes that a spelling stands for. If a letter is
// outside the byte alphabet the whole spelling stands for itself, and ok is false.
func appendSpelled(dst, spelling []byte) (out []byte, ok bool) {
	start := len(dst)
	for i := 0; i < len(spelling); {
		r, size := rune(spelling[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(spelling[i:])
		}
		if int(r) >= len(letterByte) || letterByte[r] < 0 {
			return append(dst[:start], spelling...), false
		}
		dst = append(dst, byte(letterByte[r]))
		i += size
	}
	return dst, true
}

// spell returns the spelling of bytes.
func spell(b []byte) string {
	return string(appendSpelling(make([]byte, 0, len(b)+len(b)/2), b))
}

// appendSpelling appends the spelling of bytes.
func appendSpelling(dst, b []byte) []byte {
	for _, c := range b {
		dst = utf8.AppendRune(dst, byteLetter[c])
	}
	return dst
}
