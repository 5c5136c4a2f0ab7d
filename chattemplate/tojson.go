package chattemplate

import (
	"fmt"
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonStyle holds the options of tojson, which transformers defines as a plain
// json.dumps: no HTML escaping, keys in their order, non-ASCII text as it is.
type jsonStyle struct {
	ascii    bool
	sorted   bool
	multi    bool   // an indent was given, if only an empty one
	indent   string // of one level
	item     string // between two elements
	keyValue string // between key and value
}

func (r *render) toJSON(v value, style *jsonStyle) string {
	b := r.appendJSON(r.scratch[:0], v, style, "", 0)
	r.scratch = b
	r.text(len(b))
	return string(b)
}

func (r *render) appendJSON(b []byte, v value, style *jsonStyle, indent string, depth int) []byte {
	r.step(1)
	if len(b) > maxTextBytes {
		overLimit("bytes in one text", maxTextBytes)
	}
	switch x := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, x)
	case int64:
		return strconv.AppendInt(b, x, 10)
	case *big.Int:
		return r.bigText(b, x)
	case float64:
		return append(b, jsonFloat(x)...)
	case string:
		r.step(len(x) / 64)
		return appendJSONString(b, x, style.ascii)
	case markup:
		return appendJSONString(b, string(x), style.ascii)
	case *list:
		if len(x.items) == 0 {
			return append(b, "[]"...)
		}
		inner := indent + style.indent
		b = append(b, '[')
		for i, e := range x.items {
			b = r.appendJSON(style.begin(b, i, inner), e, style, inner, deeper(depth))
		}
		return append(style.end(b, indent), ']')
	case *dict:
		if len(x.keys) == 0 {
			return append(b, "{}"...)
		}
		inner := indent + style.indent
		b = append(b, '{')
		order := r.jsonOrder(x, style)
		for n := range x.keys {
			i := n
			if order != nil {
				i = order[n]
			}
			b = r.jsonKey(style.begin(b, n, inner), x.keys[i], style)
			b = append(b, style.keyValue...)
			b = r.appendJSON(b, x.vals[i], style, inner, deeper(depth))
		}
		return append(style.end(b, indent), '}')
	}
	typeError("Object of type %s is not JSON serializable", typeName(v))
	return nil
}

func (style *jsonStyle) begin(b []byte, i int, indent string) []byte {
	if i > 0 {
		b = append(b, style.item...)
	}
	return style.end(b, indent)
}

func (style *jsonStyle) end(b []byte, indent string) []byte {
	if style.multi {
		b = append(append(b, '\n'), indent...)
	}
	return b
}

// jsonOrder sorts the keys, if they are to be sorted.
func (r *render) jsonOrder(d *dict, style *jsonStyle) []int {
	if !style.sorted {
		return nil
	}
	order := make([]int, len(d.keys))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return r.less(d.keys[order[i]], d.keys[order[j]], 0) })
	return order
}

func (r *render) jsonKey(b []byte, key value, style *jsonStyle) []byte {
	switch k := key.(type) {
	case string:
		return appendJSONString(b, k, style.ascii)
	case markup:
		return appendJSONString(b, string(k), style.ascii)
	case nil, bool, int64, float64, *big.Int:
		return append(r.appendJSON(append(b, '"'), k, style, "", 0), '"')
	}
	typeError("keys must be str, int, float, bool or None, not %s", typeName(key))
	return nil
}

func jsonFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case math.IsNaN(f):
		return "NaN"
	}
	return floatText(f)
}

func appendJSONString(b []byte, s string, ascii bool) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && (c < 0x7f || !ascii) {
			i++
			continue
		}
		b = append(b, s[start:i]...)
		width := 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		default:
			var char rune
			char, width = utf8.DecodeRuneInString(s[i:])
			if char > 0xffff {
				char -= 0x10000
				b = fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+char>>10, 0xdc00+char&0x3ff)
			} else {
				b = fmt.Appendf(b, `\u%04x`, char)
			}
		}
		i += width
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

var plainJSON = jsonStyle{item: ", ", keyValue: ": "}

// jsonStyleOf reads tojson's arguments: ensure_ascii, indent, separators and
// sort_keys.
func (r *render) jsonStyleOf(args []value) *jsonStyle {
	if args[0] == false && args[1] == nil && args[2] == nil && args[3] == false {
		return &plainJSON
	}
	style := &jsonStyle{ascii: r.truth(args[0]), sorted: r.truth(args[3]), item: ", ", keyValue: ": "}
	if args[1] != nil {
		style.multi, style.item = true, ","
		text, ok := textOf(args[1])
		if !ok {
			n := min(max(needInt(args[1]), 0), maxFieldWidth)
			text = strings.Repeat(" ", int(n))
		}
		style.indent = text
	}
	if args[2] != nil {
		pair := r.collect(args[2])
		if len(pair) != 2 {
			fail("ValueError", "separators must be two strings")
		}
		style.item, style.keyValue = needText(pair[0]), needText(pair[1])
	}
	return style
}
