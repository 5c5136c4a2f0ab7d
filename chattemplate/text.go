package chattemplate

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// str is Python's str(): what {{ x }} prints.
func (r *render) str(v value) string {
	switch x := v.(type) {
	case string:
		return x
	case markup:
		return string(x)
	case int64:
		return strconv.FormatInt(x, 10)
	case *undefined:
		return ""
	}
	return r.reprText(v)
}

func (r *render) reprText(v value) string {
	b := r.repr(nil, v, 0)
	r.text(len(b))
	return string(b)
}

// repr appends Python's repr(): how values look inside of printed lists.
func (r *render) repr(b []byte, v value, depth int) []byte {
	r.step(1)
	if len(b) > maxTextBytes {
		overLimit("bytes in one text", maxTextBytes)
	}
	switch x := v.(type) {
	case nil:
		return append(b, "None"...)
	case bool:
		if x {
			return append(b, "True"...)
		}
		return append(b, "False"...)
	case int64:
		return strconv.AppendInt(b, x, 10)
	case *big.Int:
		return r.bigText(b, x)
	case float64:
		return append(b, floatText(x)...)
	case string:
		r.step(len(x) / 16)
		return reprString(b, x)
	case markup:
		return append(reprString(append(b, "Markup("...), string(x)), ')')
	case *list:
		return r.reprList(b, x, deeper(depth))
	case *dict:
		return r.reprDict(b, x, deeper(depth))
	case *span:
		b = append(b, "range("...)
		b = append(strconv.AppendInt(b, x.start, 10), ", "...)
		b = strconv.AppendInt(b, x.stop, 10)
		if x.step != 1 {
			b = strconv.AppendInt(append(b, ", "...), x.step, 10)
		}
		return append(b, ')')
	case *view:
		b = append(append(b, x.kind...), '(')
		return append(r.reprList(b, &list{items: x.items}, deeper(depth)), ')')
	case *undefined:
		return append(b, "Undefined"...)
	case *namespace:
		return append(r.reprDict(append(b, "<Namespace "...), &x.attrs, deeper(depth)), '>')
	case *loop:
		b = strconv.AppendInt(append(b, "<LoopContext "...), int64(x.index+1), 10)
		return append(strconv.AppendInt(append(b, '/'), int64(x.length(r)), 10), '>')
	case *callable:
		if x.macro != nil {
			return append(reprString(append(b, "<Macro "...), x.name), '>')
		}
		return append(append(append(b, "<function "...), x.name...), '>')
	}
	return append(append(append(b, '<'), typeName(v)...), " object>"...)
}

func (r *render) reprList(b []byte, l *list, depth int) []byte {
	open, end := byte('['), byte(']')
	if l.tuple {
		open, end = '(', ')'
	}
	b = append(b, open)
	for i, e := range l.items {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = r.repr(b, e, depth)
	}
	if l.tuple && len(l.items) == 1 {
		b = append(b, ',')
	}
	return append(b, end)
}

func (r *render) reprDict(b []byte, d *dict, depth int) []byte {
	b = append(b, '{')
	for i, k := range d.keys {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(r.repr(b, k, depth), ": "...)
		b = r.repr(b, d.vals[i], depth)
	}
	return append(b, '}')
}

// reprString prefers single quotes, and escapes what is not printable.
func reprString(b []byte, s string) []byte {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	b = append(b, quote)
	for _, c := range s {
		switch {
		case c == rune(quote) || c == '\\':
			b = append(b, '\\', byte(c))
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case unicode.IsPrint(c):
			b = utf8.AppendRune(b, c)
		default:
			b = append(b, escapedRune(nil, c)...)
		}
	}
	return append(b, quote)
}

// floatText is the shortest text that reads back as f, in Python's spelling.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if strings.IndexByte(s, '.') < 0 {
		s += ".0"
	}
	return s
}

func (r *render) bigText(b []byte, n *big.Int) []byte {
	r.step(n.BitLen() / 16)
	text := n.Append(nil, 10)
	if len(text) > maxIntDigits+1 {
		fail("ValueError", "Exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	return append(b, text...)
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

func escapeHTML(s string) string { return htmlEscapes.Replace(s) }

// escaped is markupsafe.escape().
func (r *render) escaped(v value) markup {
	if m, ok := v.(markup); ok {
		return m
	}
	s := r.str(v)
	r.made(6 * len(s))
	s = escapeHTML(s)
	r.text(len(s))
	return markup(s)
}
