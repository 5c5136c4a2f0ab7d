package frame

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"baton/jsonbytes"
)

// ErrSyntax is the error of a frame that is not complete, valid JSON, or that
// holds another type than its reader asked for.
var ErrSyntax = errors.New("malformed frame")

// maxDepth bounds nested values; encoding/json has the same bound.
const maxDepth = 10000

// A Scanner walks over one JSON value. Its methods must be called in the order
// of the text; after the first error all of them do nothing, so that only End
// has to be asked. The zero Scanner reads an empty text.
type Scanner struct {
	data  []byte
	pos   int
	first bool // an object or array was entered, none of its elements was seen
	depth int
	err   error
	key   []byte // scratch for keys with escapes
}

// Reset makes the Scanner read data, which must not change meanwhile.
func (s *Scanner) Reset(data []byte) {
	*s = Scanner{data: data, key: s.key[:0]}
}

// End returns nil if exactly one valid value was read.
func (s *Scanner) End() error {
	if s.space(); s.err == nil && s.pos < len(s.data) {
		s.fail("bytes after the value")
	}
	return s.err
}

// Object enters an object. It reports false, and consumes the value, if there is
// null instead.
func (s *Scanner) Object() bool { return s.enter('{') }

// Array enters an array, as Object does an object.
func (s *Scanner) Array() bool { return s.enter('[') }

// Key moves to the next key of the entered object and returns it, valid until
// the next call. At the object's end it leaves it and reports false.
func (s *Scanner) Key() ([]byte, bool) {
	if !s.next('}') {
		return nil, false
	}
	if s.peek() != '"' {
		s.fail("want a key")
		return nil, false
	}
	raw, escaped := s.stringToken()
	if s.space(); s.err != nil || s.peek() != ':' {
		s.fail("want a colon")
		return nil, false
	}
	s.pos++
	if !escaped {
		return raw[1 : len(raw)-1], true
	}
	s.key = append(s.key[:0], unquote(raw)...)
	return s.key, true
}

// Element moves to the next element of the entered array. At the array's end it
// leaves it and reports false.
func (s *Scanner) Element() bool { return s.next(']') }

// Null consumes a null, if the value is one.
func (s *Scanner) Null() bool {
	if s.space(); s.err == nil && s.peek() == 'n' {
		s.literal("null")
		return true
	}
	return false
}

// Int reads a number without fraction or exponent that fits an int64.
func (s *Scanner) Int() int64 {
	token := s.numberToken()
	if s.err != nil {
		return 0
	}
	digits, negative := token, token[0] == '-'
	if negative {
		digits = digits[1:]
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' || n > (math.MaxInt64-9)/10 {
			s.fail("want an integer")
			return 0
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n
}

// Int32 reads an Int that fits 32 bits, the size of a token id.
func (s *Scanner) Int32() int32 {
	n := s.Int()
	if n < math.MinInt32 || n > math.MaxInt32 {
		s.fail("want a 32-bit integer")
		return 0
	}
	return int32(n)
}

// Float reads a number. Numbers beyond a float64 are infinite.
func (s *Scanner) Float() float64 {
	token := s.numberToken()
	if s.err != nil {
		return 0
	}
	f, err := strconv.ParseFloat(string(token), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		s.fail("want a number")
	}
	return f
}

// Bool reads true or false.
func (s *Scanner) Bool() bool {
	switch s.space(); s.peek() {
	case 't':
		s.literal("true")
		return s.err == nil
	case 'f':
		s.literal("false")
	default:
		s.fail("want true or false")
	}
	return false
}

// RawString reads a string and returns it as it stands in the text, quotes and
// escapes included. Unquote it when its value is needed.
func (s *Scanner) RawString() []byte {
	if s.space(); s.peek() != '"' {
		s.fail("want a string")
		return nil
	}
	raw, _ := s.stringToken()
	return raw
}

// Raw reads any value and returns its text.
func (s *Scanner) Raw() []byte {
	s.space()
	start := s.pos
	s.Skip()
	if s.err != nil {
		return nil
	}
	return s.data[start:s.pos]
}

// Skip reads any value and checks its grammar.
func (s *Scanner) Skip() {
	switch s.space(); s.peek() {
	case '{':
		for ok := s.Object(); ok; {
			if _, ok = s.Key(); ok {
				s.Skip()
			}
		}
	case '[':
		for ok := s.Array(); ok; {
			if ok = s.Element(); ok {
				s.Skip()
			}
		}
	case '"':
		s.stringToken()
	case 't', 'f':
		s.Bool()
	case 'n':
		s.literal("null")
	default:
		s.numberToken()
	}
}

// Fail makes End return an error: the frame is valid JSON, but cannot be.
func (s *Scanner) Fail(format string, args ...any) { s.fail(fmt.Sprintf(format, args...)) }

// Unquote returns the value of a RawString. Broken UTF-8 and lone surrogates
// become U+FFFD.
func Unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw) && len(raw) >= 2 {
		return raw[1 : len(raw)-1]
	}
	return unquote(raw)
}

func unquote(raw []byte) []byte {
	var text string
	_ = json.Unmarshal(raw, &text) // the grammar was checked
	return []byte(text)
}

func (s *Scanner) fail(what string) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: byte %d: %s", ErrSyntax, s.pos, what)
	}
}

// peek returns the next byte, or 0 at the end and after an error.
func (s *Scanner) peek() byte {
	if s.err == nil && s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *Scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *Scanner) enter(open byte) bool {
	if s.Null() {
		return false
	}
	if s.peek() != open {
		s.fail("want " + string(rune(open)))
		return false
	}
	if s.depth++; s.depth > maxDepth {
		s.fail("nested too deeply")
		return false
	}
	s.pos++
	s.first = true
	return true
}

// next moves to the next element of an object or array, or leaves it.
func (s *Scanner) next(end byte) bool {
	s.space()
	c := s.peek()
	first := s.first
	s.first = false
	switch {
	case c == end:
		s.pos++
		s.depth--
		return false
	case first && c != 0:
		return true
	case c == ',':
		s.pos++
		s.space()
		return s.err == nil
	}
	s.fail("want , or " + string(rune(end)))
	return false
}

func (s *Scanner) literal(word string) {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		s.fail("want " + word)
		return
	}
	s.pos += len(word)
}

// stringToken reads a string whose opening quote is at pos.
func (s *Scanner) stringToken() (raw []byte, escaped bool) {
	start := s.pos
	for i := s.pos + 1; ; i++ {
		i += jsonbytes.Plain(s.data[i:])
		if i == len(s.data) {
			s.fail("a string without end")
			return nil, false
		}
		switch c := s.data[i]; {
		case c == '"':
			s.pos = i + 1
			return s.data[start:s.pos], escaped
		case c < ' ':
			s.fail("a control character in a string")
			return nil, false
		case c == '\\':
			escaped = true
			n := escapeLength(s.data[i+1:])
			if n == 0 {
				s.fail("an invalid escape")
				return nil, false
			}
			i += n
		}
	}
}

// escapeLength returns how many bytes of rest belong to the escape that a
// backslash before it began; 0 = it is none.
func escapeLength(rest []byte) int {
	if len(rest) == 0 {
		return 0
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if len(rest) < 5 {
			return 0
		}
		for _, c := range rest[1:5] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return 0
			}
		}
		return 5
	}
	return 0
}

// numberToken reads a number: JSON's grammar, and NaN, Infinity and -Infinity.
func (s *Scanner) numberToken() []byte {
	s.space()
	start := s.pos
	if s.err != nil {
		return nil
	}
	switch s.peek() {
	case 'N':
		s.literal("NaN")
		return s.data[start:s.pos]
	case 'I':
		s.literal("Infinity")
		return s.data[start:s.pos]
	case '-':
		if s.pos++; s.peek() == 'I' {
			s.literal("Infinity")
			return s.data[start:s.pos]
		}
	}
	if s.peek() == '0' {
		s.pos++
	} else {
		s.digits()
	}
	if s.peek() == '.' {
		s.pos++
		s.digits()
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		if s.pos++; s.peek() == '+' || s.peek() == '-' {
			s.pos++
		}
		s.digits()
	}
	return s.data[start:s.pos]
}

func (s *Scanner) digits() {
	start := s.pos
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.pos++
	}
	if s.pos == start {
		s.fail("want a value")
	}
}
