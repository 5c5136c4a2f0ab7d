package chattemplate

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The spellings of Python's numbers. A number that follows a dot is a subscript
// (x.0.1), so it is never a float.
var (
	floatLiteral = regexp.MustCompile(`^(?:[0-9]+_)*[0-9]+(?:(?:\.(?:[0-9]+_)*[0-9]+)?[eE][+-]?(?:[0-9]+_)*[0-9]+|\.(?:[0-9]+_)*[0-9]+)`)
	intLiteral   = regexp.MustCompile(`^(?:0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[0-9a-fA-F])+|[1-9](?:_?[0-9])*|0(?:_?0)*)`)
)

func (lx *lexer) number() {
	rest := lx.src[lx.pos:]
	if lx.src[lx.pos-1] != '.' {
		if text := floatLiteral.FindString(rest); text != "" {
			f, _ := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64) // too large is infinite, as in Python
			lx.emit(token{kind: tokenNumber, text: text, value: f})
			lx.pos += len(text)
			return
		}
	}
	text := intLiteral.FindString(rest)
	if len(text) > maxIntDigits {
		lx.fail("an integer of %d digits", len(text))
	}
	n, ok := new(big.Int).SetString(text, 0)
	if !ok {
		lx.fail("invalid integer %s", text)
	}
	lx.emit(token{kind: tokenNumber, text: text, value: smallest(n)})
	lx.pos += len(text)
}

func (lx *lexer) string(quote byte) {
	i := lx.pos + 1
	for i < len(lx.src) && lx.src[i] != quote {
		if lx.src[i] == '\\' {
			i++
		}
		i++
	}
	if i >= len(lx.src) {
		lx.fail("unexpected char %q", quote)
	}
	text, err := unescape(lx.src[lx.pos+1 : i])
	if err != nil {
		lx.fail("%v", err)
	}
	lx.emit(token{kind: tokenString, text: text})
	lx.pos = i + 1
}

var simpleEscapes = map[byte]string{
	'\n': "", 'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'f': "\f", 'a': "\a", 'v': "\v",
	'\\': "\\", '\'': "'", '"': `"`,
}

// unescape resolves the escapes of a string literal as Python's unicode-escape
// codec does, through which Jinja sends them: an unknown escape stays as it is.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 >= len(s) {
			out.WriteByte(s[i])
			continue
		}
		i++
		c := s[i]
		if plain, ok := simpleEscapes[c]; ok {
			out.WriteString(plain)
			continue
		}
		switch {
		case c == 'x' || c == 'u' || c == 'U':
			digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
			r, err := hexRune(s[i+1:], digits)
			if err != nil {
				return "", err
			}
			out.WriteRune(r) // half a surrogate pair becomes U+FFFD
			i += digits
		case c >= '0' && c <= '7':
			j := i
			for j < len(s) && j < i+3 && s[j] >= '0' && s[j] <= '7' {
				j++
			}
			n, _ := strconv.ParseUint(s[i:j], 8, 32)
			out.WriteRune(rune(n))
			i = j - 1
		case c == 'N':
			return "", fmt.Errorf(`the escape \N{...} is not supported`)
		case c >= utf8.RuneSelf:
			// Jinja writes the character as an escape first, whose backslash the
			// one before it then takes away.
			r, width := utf8.DecodeRuneInString(s[i:])
			out.WriteString(escapedRune(nil, r))
			i += width - 1
		default:
			out.WriteByte('\\')
			out.WriteByte(c)
		}
	}
	return out.String(), nil
}

func hexRune(s string, digits int) (rune, error) {
	if len(s) < digits {
		return 0, fmt.Errorf("truncated escape in a string")
	}
	n, err := strconv.ParseUint(s[:digits], 16, 32)
	if err != nil || n > utf8.MaxRune {
		return 0, fmt.Errorf("invalid escape %q in a string", s[:digits])
	}
	return rune(n), nil
}

// escapedRune is how Python spells a character it does not print: \xe9, é, ...
func escapedRune(b []byte, r rune) string {
	switch {
	case r <= 0xff:
		b = fmt.Appendf(b, `\x%02x`, r)
	case r <= 0xffff:
		b = fmt.Appendf(b, `\u%04x`, r)
	default:
		b = fmt.Appendf(b, `\U%08x`, r)
	}
	return string(b)
}
