// Package jsonbytes reads and writes pieces of JSON by hand, for the places where
// encoding/json would cost more than all else that is done there.
package jsonbytes

import "math/bits"

// Plain returns how many bytes at the start of text, which stands in a JSON string, stand
// for themselves: no quote, no backslash, no control character.
func Plain[T ~string | ~[]byte](text T) int { return plain(text, 0) }

// PlainASCII is Plain, up to the first byte that is not ASCII.
func PlainASCII[T ~string | ~[]byte](text T) int { return plain(text, tops) }

const ones, tops = 0x0101010101010101, 0x8080808080808080

// plain looks at eight bytes at a time, because texts are mostly such bytes: where a byte
// of x is below n, the top bit of (x - n) is set and that of x is not. Borrows can only
// set bits above the first byte found, which is the one that counts. Bytes that have a
// bit of foreign are not plain.
func plain[T ~string | ~[]byte](text T, foreign uint64) int {
	n := 0
	for ; len(text)-n >= 8; n += 8 {
		t := text[n : n+8]
		x := uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
			uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
		quote, backslash := x^ones*'"', x^ones*'\\'
		if found := (x&foreign | (x-ones*' ')&^x | (quote-ones)&^quote | (backslash-ones)&^backslash) & tops; found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(text) && text[n] >= ' ' && text[n] != '"' && text[n] != '\\' && text[n]&byte(foreign) == 0 {
		n++
	}
	return n
}

const hexDigits = "0123456789abcdef"

// AppendEscaped appends one byte of a text to a JSON string. A byte of a longer
// character is appended as it is.
func AppendEscaped(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	if c < ' ' {
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
	}
	return append(dst, c)
}
