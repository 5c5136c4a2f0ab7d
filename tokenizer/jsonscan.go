package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// A tokenizer.json is up to 35 MB, nearly all of it vocabulary and merges.
// encoding/json would take seconds and hundreds of megabytes for these, so
// they are read by the scanner here; the small rest is read by encoding/json.

// A scanner reads JSON from data, from pos on.
type scanner struct {
	data []byte
	pos  int
	text []byte // the last string, unescaped
	cuts []int  // some commas between the elements of what was skipped last, from its start
}

// cutBytes is how far apart the places are at least that skip notes.
const cutBytes = 128 << 10

var errJSON = errors.New("not valid JSON")

func (s *scanner) fail() error { return fmt.Errorf("%w at byte %d", errJSON, s.pos) }

// next skips white space and returns the byte there, 0 at the end.
func (s *scanner) next() byte {
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; c {
		case ' ', '\n', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) expect(c byte) error {
	if s.next() != c {
		return s.fail()
	}
	s.pos++
	return nil
}

// list calls item before each element of a list or member of an object whose
// opening bracket comes next.
func (s *scanner) list(open, end byte, item func() error) error {
	if err := s.expect(open); err != nil {
		return err
	}
	if s.next() == end {
		s.pos++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		switch s.next() {
		case ',':
			s.pos++
		case end:
			s.pos++
			return nil
		default:
			return s.fail()
		}
	}
}

// object calls member with each key of an object; key is valid until the next
// string is read. member must read the value.
func (s *scanner) object(member func(key []byte) error) error {
	return s.list('{', '}', func() error {
		key, err := s.string()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		return member(key)
	})
}

// string reads a string. The result is valid until the next call.
func (s *scanner) string() ([]byte, error) {
	if err := s.expect('"'); err != nil {
		return nil, err
	}
	start := s.pos
	plain, seen := true, byte(0)
	for ; s.pos < len(s.data); s.pos++ {
		c := s.data[s.pos]
		seen |= c
		switch {
		case c == '"':
			raw := s.data[start:s.pos]
			s.pos++
			if seen >= utf8.RuneSelf && !utf8.Valid(raw) {
				return nil, fmt.Errorf("%w: the string before byte %d is not UTF-8", errJSON, s.pos)
			}
			if plain {
				return raw, nil
			}
			var err error
			s.text, err = unescape(s.text[:0], raw)
			return s.text, err
		case c == '\\':
			plain = false
			if s.pos++; s.pos < len(s.data) {
				seen |= s.data[s.pos]
			}
		case c < ' ':
			return nil, s.fail()
		}
	}
	return nil, s.fail()
}

// unescape appends raw, the inside of a JSON string, without its escapes.
func unescape(dst, raw []byte) ([]byte, error) {
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...), nil
		}
		dst = append(dst, raw[:i]...)
		raw = raw[i+1:]
		if len(raw) == 0 {
			return nil, errJSON
		}
		c := raw[0]
		raw = raw[1:]
		switch c {
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, ok := hex4(raw)
			if !ok {
				return nil, fmt.Errorf(`%w: \u without four digits`, errJSON)
			}
			raw = raw[4:]
			if utf16.IsSurrogate(r) {
				low, ok := rune(0), false
				if bytes.HasPrefix(raw, []byte(`\u`)) {
					low, ok = hex4(raw[2:])
				}
				if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
					return nil, fmt.Errorf("%w: half a surrogate pair", errJSON)
				}
				raw = raw[6:]
			}
			dst = utf8.AppendRune(dst, r)
		default:
			return nil, fmt.Errorf("%w: unknown escape", errJSON)
		}
	}
	return dst, nil
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// number reads a whole number from 0 to 2⁵³.
func (s *scanner) number() (uint64, error) {
	c := s.next()
	start, n := s.pos, uint64(0)
	for ; c >= '0' && c <= '9'; c = s.byteAt() {
		if n = n*10 + uint64(c-'0'); n > 1<<53 {
			return 0, fmt.Errorf("the number at byte %d is too large", start)
		}
		s.pos++
	}
	if s.pos == start || c == '.' || c == 'e' || c == 'E' {
		return 0, fmt.Errorf("a whole number that is not negative is expected at byte %d", start)
	}
	return n, nil
}

func (s *scanner) byteAt() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

// skip passes over one value and returns it. What it returns may still be
// invalid inside: only brackets and strings are looked at.
func (s *scanner) skip() (json.RawMessage, error) {
	s.next()
	data, start, depth := s.data, s.pos, 0
	s.cuts = s.cuts[:0]
	cut := start + cutBytes
	for i := start; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
			if i >= len(data) {
				return nil, s.fail()
			}
			if depth == 0 {
				s.pos = i + 1
				return data[start:s.pos], nil
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.pos = i + 1
				return data[start:s.pos], nil
			}
			if depth < 0 { // of what the value stands in
				return s.upTo(start, i)
			}
		case ',':
			if depth == 0 {
				return s.upTo(start, i)
			}
			if depth == 1 && i >= cut {
				s.cuts = append(s.cuts, i-start)
				cut = i + cutBytes
			}
		}
	}
	if depth > 0 {
		return nil, s.fail()
	}
	return s.upTo(start, len(data))
}

// upTo is the value between start and end, which is neither text nor in brackets.
func (s *scanner) upTo(start, end int) (json.RawMessage, error) {
	if s.pos = end; start == end {
		return nil, s.fail()
	}
	return s.data[start:end], nil
}

// keep passes over the value of key, and puts it into found if it is one of names.
func (s *scanner) keep(found map[string]json.RawMessage, key []byte, names []string) error {
	name := string(key) // its memory may be used again
	value, err := s.skip()
	if slices.Contains(names, name) {
		found[name] = value
	}
	return err
}

func (s *scanner) end() error {
	if s.next() != 0 {
		return fmt.Errorf("%w: more after the end at byte %d", errJSON, s.pos)
	}
	return nil
}

func isNull(raw json.RawMessage) bool {
	return len(raw) == 0 || string(bytes.TrimSpace(raw)) == "null"
}

// unmarshal reads a small part of the file, named in the error.
func unmarshal(raw json.RawMessage, into any, part string) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return nil
}
