package chattemplate

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"baton/jsonbytes"
)

// readJSON turns JSON into values. encoding/json would lose the order of keys
// and the difference between 1 and 1.0, which a template can print.
//
// Texts without escapes share the memory of the input.
func readJSON(name string, raw json.RawMessage) value {
	if len(raw) > maxJSONBytes {
		overLimit("bytes of JSON", maxJSONBytes)
	}
	j := &jsonReader{name: name, src: validUTF8(string(raw))}
	v := j.value(0)
	if j.space(); j.pos < len(j.src) {
		j.fail("more than one value")
	}
	return v
}

func validUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s { // one U+FFFD a byte
		b.WriteRune(r)
	}
	return b.String()
}

type jsonReader struct {
	name string
	src  string
	pos  int
}

func (j *jsonReader) fail(what string) {
	fail("JSONDecodeError", "%s: %s at byte %d", j.name, what, j.pos)
}

func (j *jsonReader) space() {
	for j.pos < len(j.src) {
		switch j.src[j.pos] {
		case ' ', '\t', '\n', '\r':
			j.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is no space, or 0 at the end.
func (j *jsonReader) peek() byte {
	j.space()
	if j.pos >= len(j.src) {
		return 0
	}
	return j.src[j.pos]
}

func (j *jsonReader) value(depth int) value {
	if depth > maxJSONDepth {
		overLimit("arrays and objects of JSON inside each other", maxJSONDepth)
	}
	switch c := j.peek(); {
	case c == '{':
		return j.object(depth)
	case c == '[':
		return j.array(depth)
	case c == '"':
		return j.string()
	case c == '-' || c >= '0' && c <= '9':
		return j.number()
	case strings.HasPrefix(j.src[j.pos:], "true"):
		j.pos += 4
		return true
	case strings.HasPrefix(j.src[j.pos:], "false"):
		j.pos += 5
		return false
	case strings.HasPrefix(j.src[j.pos:], "null"):
		j.pos += 4
		return nil
	}
	j.fail("expected a value")
	return nil
}

func (j *jsonReader) object(depth int) value {
	d := &dict{}
	for {
		j.pos++ // the brace, or the comma
		if len(d.keys) == 0 && j.peek() == '}' {
			break
		}
		if j.peek() != '"' {
			j.fail("expected a key")
		}
		if d.keys == nil { // most objects have few members
			d.keys, d.vals = make([]value, 0, 4), make([]value, 0, 4)
		}
		key := j.string()
		if j.peek() != ':' {
			j.fail("expected ':'")
		}
		j.pos++
		d.set(key, j.value(depth+1))
		if c := j.peek(); c == '}' {
			break
		} else if c != ',' {
			j.fail("expected ',' or '}'")
		}
	}
	j.pos++
	return d
}

func (j *jsonReader) array(depth int) value {
	l := &list{}
	for {
		j.pos++
		if len(l.items) == 0 && j.peek() == ']' {
			break
		}
		l.items = append(l.items, j.value(depth+1))
		if c := j.peek(); c == ']' {
			break
		} else if c != ',' {
			j.fail("expected ',' or ']'")
		}
	}
	j.pos++
	return l
}

func (j *jsonReader) number() value {
	start := j.pos
	digits := func() int {
		n := j.pos
		for j.pos < len(j.src) && j.src[j.pos] >= '0' && j.src[j.pos] <= '9' {
			j.pos++
		}
		return j.pos - n
	}
	if j.src[j.pos] == '-' {
		j.pos++
	}
	zero := j.pos < len(j.src) && j.src[j.pos] == '0'
	n := digits()
	if n == 0 || zero && n > 1 {
		j.fail("invalid number")
	}
	isFloat := false
	if j.pos < len(j.src) && j.src[j.pos] == '.' {
		j.pos++
		isFloat = true
		if digits() == 0 {
			j.fail("invalid number")
		}
	}
	if j.pos < len(j.src) && j.src[j.pos]|0x20 == 'e' {
		j.pos++
		isFloat = true
		if j.pos < len(j.src) && (j.src[j.pos] == '+' || j.src[j.pos] == '-') {
			j.pos++
		}
		if digits() == 0 {
			j.fail("invalid number")
		}
	}
	text := j.src[start:j.pos]
	if isFloat {
		f, _ := strconv.ParseFloat(text, 64) // out of range is infinite, as in Python
		return f
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	if n > maxIntDigits {
		fail("ValueError", "%s: an integer of %d digits, of at most %d", j.name, n, maxIntDigits)
	}
	i, _ := new(big.Int).SetString(text, 10)
	return i
}

func (j *jsonReader) string() string {
	j.pos++
	start := j.pos
	switch j.plain(); j.src[j.pos] {
	case '"':
		j.pos++
		return j.src[start : j.pos-1]
	default:
		return j.escapedString(start)
	}
}

// plain passes over what stands in a string as it is, up to a quote or a backslash.
func (j *jsonReader) plain() {
	j.pos += jsonbytes.Plain(j.src[j.pos:])
	switch {
	case j.pos == len(j.src):
		j.fail("unterminated string")
	case j.src[j.pos] < 0x20:
		j.fail("control character in a string")
	}
}

func (j *jsonReader) escapedString(start int) string {
	var b strings.Builder
	b.Grow(j.textEnd() - start)
	for {
		b.WriteString(j.src[start:j.pos])
		c := j.src[j.pos]
		j.pos++
		if c == '"' {
			return b.String()
		}
		j.escape(&b)
		start = j.pos
		j.plain()
	}
}

// textEnd is where the string ends in which pos is, or where the input does.
func (j *jsonReader) textEnd() int {
	for i := j.pos; ; i++ {
		k := strings.IndexByte(j.src[i:], '"')
		if k < 0 {
			return len(j.src)
		}
		i += k
		escapes := 0
		for i-escapes > j.pos && j.src[i-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

func (j *jsonReader) escape(b *strings.Builder) {
	if j.pos >= len(j.src) {
		j.fail("unterminated string")
	}
	c := j.src[j.pos]
	j.pos++
	switch c {
	case '"', '\\', '/':
		b.WriteByte(c)
	case 'n':
		b.WriteByte('\n')
	case 't':
		b.WriteByte('\t')
	case 'r':
		b.WriteByte('\r')
	case 'b':
		b.WriteByte('\b')
	case 'f':
		b.WriteByte('\f')
	case 'u':
		r := j.hex()
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if strings.HasPrefix(j.src[j.pos:], `\u`) {
				before := j.pos
				j.pos += 2
				low = j.hex()
				if utf16.DecodeRune(r, low) == utf8.RuneError {
					j.pos = before
				}
			}
			r = utf16.DecodeRune(r, low) // U+FFFD for half a pair
		}
		b.WriteRune(r)
	default:
		j.fail("invalid escape")
	}
}

func (j *jsonReader) hex() rune {
	if len(j.src)-j.pos < 4 {
		j.fail("invalid escape")
	}
	n, err := strconv.ParseUint(j.src[j.pos:j.pos+4], 16, 16)
	if err != nil {
		j.fail("invalid escape")
	}
	j.pos += 4
	return rune(n)
}
