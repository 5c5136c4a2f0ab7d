package preprocess

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"baton/jsonbytes"
	"baton/openai"
)

// maxDepth is how deep arrays and objects of a body may be nested. It leaves
// room for any tool schema and none for an attack on the stack.
const maxDepth = 200

// scan checks that body is one JSON object, strictly by RFC 8259, and returns
// its members in the order in which their names first appear. Of a name that
// appears twice the last value wins, as in Python and JavaScript.
//
// It is a scanner of our own because the one of encoding/json accepts bytes that
// are no UTF-8 and halves of surrogate pairs, and does not know in which
// parameter it failed.
func scan(body []byte) ([]value, *openai.Error) {
	s := scanner{data: body, index: -1}
	if err := s.body(); err != nil {
		return nil, err
	}
	return s.fields, nil
}

type scanner struct {
	data []byte
	pos  int

	fields []value
	byName map[string]int // in fields

	depth int
	field string // the top-level field that is being read, "" before the first
	index int    // in the field, if it is an array; else -1
}

func (s *scanner) body() *openai.Error {
	s.space()
	if s.pos == len(s.data) {
		return openai.InvalidJSON("", "The request body is empty; a JSON object is needed.")
	}
	if s.data[s.pos] != '{' {
		return openai.InvalidJSON("", "The request body must be a JSON object.")
	}
	s.byName = make(map[string]int)
	if err := s.object(); err != nil {
		return err
	}
	s.field, s.index = "", -1
	s.space()
	if s.pos < len(s.data) {
		return s.broken()
	}
	return nil
}

// object reads from an opening to the closing brace.
func (s *scanner) object() *openai.Error {
	return s.sequence('}', func(int) *openai.Error {
		key, err := s.key()
		if err != nil {
			return err
		}
		start := s.pos
		if err := s.value(); err != nil {
			return err
		}
		if s.depth == 1 {
			s.add(value{data: s.data, start: start, end: s.pos, key: key})
		}
		return nil
	})
}

func (s *scanner) array() *openai.Error {
	return s.sequence(']', func(i int) *openai.Error {
		if s.depth == 2 {
			s.index = i
		}
		return s.value()
	})
}

// sequence reads elements with commas between them, up to the closing byte.
func (s *scanner) sequence(closing byte, element func(i int) *openai.Error) *openai.Error {
	s.pos++ // the opening
	if s.depth++; s.depth > maxDepth {
		return openai.InvalidJSON(s.param(), "The request body is nested deeper than %d levels at byte %d.", maxDepth, s.pos)
	}
	for i := 0; ; i++ {
		s.space()
		if i == 0 && s.pos < len(s.data) && s.data[s.pos] == closing {
			break
		}
		if err := element(i); err != nil {
			return err
		}
		s.space()
		if s.pos < len(s.data) && s.data[s.pos] == closing {
			break
		}
		if s.pos == len(s.data) || s.data[s.pos] != ',' {
			return s.broken()
		}
		s.pos++
	}
	s.pos++
	if s.depth == 2 {
		s.index = -1
	}
	s.depth--
	return nil
}

// key reads the name of a member and the colon behind it.
func (s *scanner) key() (string, *openai.Error) {
	if s.depth == 1 {
		s.field = "" // what is wrong with a name is not wrong with the field before
	}
	start := s.pos
	if s.pos == len(s.data) || s.data[s.pos] != '"' {
		return "", s.broken()
	}
	if err := s.text(); err != nil {
		return "", err
	}
	var key string
	if s.depth == 1 {
		key = unquote(s.data[start:s.pos])
		s.field = key
	}
	s.space()
	if s.pos == len(s.data) || s.data[s.pos] != ':' {
		return "", s.broken()
	}
	s.pos++
	s.space()
	return key, nil
}

func (s *scanner) add(v value) {
	if i, again := s.byName[v.key]; again {
		s.fields[i] = v
		return
	}
	s.byName[v.key] = len(s.fields)
	s.fields = append(s.fields, v)
}

func (s *scanner) value() *openai.Error {
	if s.pos == len(s.data) {
		return s.broken()
	}
	switch c := s.data[s.pos]; {
	case c == '{':
		return s.object()
	case c == '[':
		return s.array()
	case c == '"':
		return s.text()
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case s.literal("true") || s.literal("false") || s.literal("null"):
		return nil
	case s.literal("NaN") || s.literal("Infinity"):
		return s.notFinite()
	}
	return s.broken()
}

func (s *scanner) literal(word string) bool {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(word)) {
		return false
	}
	s.pos += len(word)
	return true
}

func (s *scanner) number() *openai.Error {
	if s.data[s.pos] == '-' {
		s.pos++
		if s.literal("Infinity") || s.literal("NaN") {
			return s.notFinite()
		}
	}
	if s.pos < len(s.data) && s.data[s.pos] == '0' {
		s.pos++
	} else if !s.digits() {
		return s.broken()
	}
	if s.pos < len(s.data) && s.data[s.pos] == '.' {
		s.pos++
		if !s.digits() {
			return s.broken()
		}
	}
	if s.pos < len(s.data) && s.data[s.pos]|0x20 == 'e' {
		s.pos++
		if s.pos < len(s.data) && (s.data[s.pos] == '+' || s.data[s.pos] == '-') {
			s.pos++
		}
		if !s.digits() {
			return s.broken()
		}
	}
	return nil
}

// digits reads at least one digit.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

func (s *scanner) text() *openai.Error {
	s.pos++ // the opening quote
	for s.pos < len(s.data) {
		s.pos += jsonbytes.PlainASCII(s.data[s.pos:])
		if s.pos == len(s.data) {
			break
		}
		switch c := s.data[s.pos]; {
		case c == '"':
			s.pos++
			return nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return err
			}
		case c < 0x20:
			return s.broken()
		default: // not ASCII
			r, size := utf8.DecodeRune(s.data[s.pos:])
			if r == utf8.RuneError && size == 1 {
				return openai.InvalidJSON(s.param(), "The request body is not valid UTF-8 at byte %d%s.", s.pos, s.within())
			}
			s.pos += size
		}
	}
	return s.broken()
}

func (s *scanner) escape() *openai.Error {
	if s.pos+1 >= len(s.data) {
		s.pos = len(s.data)
		return s.broken()
	}
	c := s.data[s.pos+1]
	if c != 'u' {
		if bytes.IndexByte([]byte(`"\/bfnrt`), c) < 0 {
			return s.broken()
		}
		s.pos += 2
		return nil
	}
	at := s.pos
	unit, ok := s.unit()
	if !ok {
		return s.broken()
	}
	const highest, lowest, end = 0xD800, 0xDC00, 0xE000 // first high, first low, first behind
	if unit < highest || unit >= end {
		return nil
	}
	if unit < lowest {
		if next, ok := s.unit(); ok && lowest <= next && next < end {
			return nil
		}
	}
	return openai.InvalidJSON(s.param(), "The escape at byte %d%s is half of a surrogate pair, which is no character.", at, s.within())
}

// unit reads \uXXXX, if that is what stands here.
func (s *scanner) unit() (rune, bool) {
	if len(s.data)-s.pos < 6 || s.data[s.pos] != '\\' || s.data[s.pos+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range s.data[s.pos+2 : s.pos+6] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = (c | 0x20) - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	s.pos += 6
	return r, true
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

// param names where the scanner is, as far as clients think in parameters.
func (s *scanner) param() string {
	name := printable(s.field)
	if s.index >= 0 && name != "" {
		return fmt.Sprintf("%s[%d]", name, s.index)
	}
	return name
}

func (s *scanner) within() string {
	if param := s.param(); param != "" {
		return fmt.Sprintf(" (in '%s')", param)
	}
	return ""
}

func (s *scanner) broken() *openai.Error {
	if s.pos >= len(s.data) {
		return openai.InvalidJSON(s.param(), "The request body is not valid JSON: it ends too early, after %d bytes%s.", len(s.data), s.within())
	}
	return openai.InvalidJSON(s.param(), "The request body is not valid JSON: unexpected byte at %d%s.", s.pos, s.within())
}

func (s *scanner) notFinite() *openai.Error {
	return openai.InvalidJSON(s.param(), "NaN and Infinity are no numbers of JSON, and no parameter allows them%s.", s.within())
}

// unquote returns the text of a JSON string that was scanned.
func unquote(raw []byte) string {
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		panic("preprocess: a scanned string does not decode: " + err.Error())
	}
	return s
}
