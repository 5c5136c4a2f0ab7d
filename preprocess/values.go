package preprocess

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"strconv"

	"baton/openai"
)

// A value is one JSON value inside a scanned body. It knows where it stands, so
// that errors can name it; the name is only made when there is an error.
type value struct {
	data       []byte // the whole body
	start, end int    // the value in it

	parent *value // nil for a top-level field
	key    string // its name in the parent
	index  int    // its place in the parent, if that is an array
}

func (v *value) raw() []byte { return v.data[v.start:v.end] }

func (v *value) isNull() bool   { return v.data[v.start] == 'n' }
func (v *value) isText() bool   { return v.data[v.start] == '"' }
func (v *value) isArray() bool  { return v.data[v.start] == '[' }
func (v *value) isObject() bool { return v.data[v.start] == '{' }
func (v *value) isNumber() bool {
	c := v.data[v.start]
	return c == '-' || '0' <= c && c <= '9'
}

// param is the name of the value in errors, such as messages[2].content[0].
func (v *value) param() string {
	switch {
	case v.parent == nil:
		return printable(v.key)
	case v.parent.isArray():
		return fmt.Sprintf("%s[%d]", v.parent.param(), v.index)
	default:
		return v.parent.param() + "." + printable(v.key)
	}
}

// kind names the value's JSON type, with its article.
func (v *value) kind() string {
	switch v.data[v.start] {
	case '"':
		return "a string"
	case '[':
		return "an array"
	case '{':
		return "an object"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func (v *value) wrongType(want string) *openai.Error {
	return openai.InvalidType(v.param(), want, v.kind())
}

func (v *value) invalid(format string, args ...any) *openai.Error {
	return openai.InvalidRequest(v.param(), "Invalid value for '%s': "+format, append([]any{v.param()}, args...)...)
}

func (v *value) boolean() (bool, *openai.Error) {
	switch v.data[v.start] {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return false, v.wrongType("a boolean")
}

func (v *value) text() (string, *openai.Error) {
	if !v.isText() {
		return "", v.wrongType("a string")
	}
	return unquote(v.raw()), nil
}

// integer returns the value exactly. A number with a fraction of zero (5.0, 1e3)
// is an integer too, because some languages write integers so.
func (v *value) integer(low, high int64) (int64, *openai.Error) {
	if !v.isNumber() {
		return 0, v.wrongType("an integer")
	}
	raw := v.raw()
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil && bytes.ContainsAny(raw, ".eE") {
		const exact = 1 << 53 // beyond it neighbours are the same float
		f, floatErr := strconv.ParseFloat(string(raw), 64)
		if floatErr == nil && f != math.Trunc(f) {
			return 0, openai.InvalidType(v.param(), "an integer", "a number with a fraction")
		}
		if floatErr == nil && math.Abs(f) <= exact {
			n, err = int64(f), nil
		}
	}
	if err == nil && n < low && high == math.MaxInt64 {
		return 0, v.invalid("must be at least %d.", low)
	}
	if err != nil || n < low || n > high {
		return 0, v.outside(strconv.FormatInt(low, 10), strconv.FormatInt(high, 10), low == math.MinInt64, high == math.MaxInt64)
	}
	return n, nil
}

// number returns the value, which is in [low, high] and so never NaN or
// infinite.
func (v *value) number(low, high float64) (float64, *openai.Error) {
	if !v.isNumber() {
		return 0, v.wrongType("a number")
	}
	f, err := strconv.ParseFloat(string(v.raw()), 64) // an error is a number too large for a float
	if err != nil || !(f >= low && f <= high) {
		return 0, v.outside(formatFloat(low), formatFloat(high), math.IsInf(low, -1), high == math.MaxFloat64)
	}
	return f, nil
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func (v *value) outside(low, high string, noLow, noHigh bool) *openai.Error {
	switch {
	case noLow && noHigh:
		return v.invalid("the number is too large.")
	case noHigh:
		return v.invalid("must be at least %s, and no larger than what 64 bits hold.", low)
	default:
		return v.invalid("must be between %s and %s.", low, high)
	}
}

// elements yields the elements of an array. The value yielded is valid until the
// next iteration.
func (v *value) elements() iter.Seq2[int, *value] {
	return func(yield func(int, *value) bool) {
		e := value{data: v.data, parent: v}
		for pos := skipSpace(v.data, v.start+1); v.data[pos] != ']'; e.index++ {
			e.start, e.end = pos, skipValue(v.data, pos)
			if !yield(e.index, &e) {
				return
			}
			pos = skipComma(v.data, e.end)
		}
	}
}

// members yields the members of an object, duplicates included. The value
// yielded is valid until the next iteration.
func (v *value) members() iter.Seq2[string, *value] {
	return func(yield func(string, *value) bool) {
		m := value{data: v.data, parent: v}
		for pos := skipSpace(v.data, v.start+1); v.data[pos] != '}'; {
			keyEnd := skipValue(v.data, pos)
			m.key = unquote(v.data[pos:keyEnd])
			colon := skipSpace(v.data, keyEnd)
			m.start = skipSpace(v.data, colon+1)
			m.end = skipValue(v.data, m.start)
			if !yield(m.key, &m) {
				return
			}
			pos = skipComma(v.data, m.end)
		}
	}
}

// member returns the member of an object that has this name, of several the last
// one, as it is in Python and JavaScript; false if there is none.
func (v *value) member(name string) (found value, ok bool) {
	if !v.isObject() {
		return value{}, false
	}
	for key, m := range v.members() {
		if key == name {
			found, ok = *m, true
		}
	}
	return found, ok
}

// first is the byte with which the content of an array or object begins: that of
// its first element or key, or the closing one.
func (v *value) first() byte { return v.data[skipSpace(v.data, v.start+1)] }

// isEmpty tells whether an array or object has nothing in it.
func (v *value) isEmpty() bool { return v.first() == ']' || v.first() == '}' }

// The three below walk over JSON that was scanned, so they check nothing.

func skipSpace(data []byte, pos int) int {
	for data[pos] == ' ' || data[pos] == '\n' || data[pos] == '\t' || data[pos] == '\r' {
		pos++
	}
	return pos
}

// skipComma goes to the next element, or to the closing byte.
func skipComma(data []byte, pos int) int {
	pos = skipSpace(data, pos)
	if data[pos] == ',' {
		pos = skipSpace(data, pos+1)
	}
	return pos
}

func skipValue(data []byte, pos int) int {
	switch data[pos] {
	case '"':
		return skipText(data, pos)
	case '{', '[':
		depth := 0
		for {
			switch data[pos] {
			case '"':
				pos = skipText(data, pos)
				continue
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return pos + 1
				}
			}
			pos++
		}
	}
	for {
		switch data[pos] {
		case ',', ']', '}', ' ', '\n', '\t', '\r':
			return pos
		}
		pos++
	}
}

func skipText(data []byte, pos int) int {
	for i := pos + 1; ; i++ {
		i += bytes.IndexByte(data[i:], '"')
		escapes := 0
		for data[i-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

// maxPrintedNameBytes bounds how much of a field's name an error or a log record
// repeats. The names of real fields are shorter.
const maxPrintedNameBytes = 64

// printable makes a client's field name safe to repeat.
func printable(name string) string {
	if len(name) > maxPrintedNameBytes {
		name = name[:maxPrintedNameBytes] + "…"
	}
	if quoted := strconv.Quote(name); len(quoted) != len(name)+2 {
		return quoted[1 : len(quoted)-1]
	}
	return name
}
