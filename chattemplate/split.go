package chattemplate

import (
	"strings"
	"unicode/utf8"
)

func needSeparator(v value) string {
	s := needText(v)
	if s == "" {
		fail("ValueError", "empty separator")
	}
	return s
}

func splitMethod(fromRight bool) func(r *render, s string, args []value) value {
	return func(r *render, s string, args []value) value {
		limit := needInt(args[1])
		if limit < 0 || limit > maxListItems {
			limit = maxListItems + 1
		}
		var parts []string
		switch {
		case args[0] == nil && fromRight:
			parts = fieldsFromRight(s, int(limit))
		case args[0] == nil:
			parts = fields(s, int(limit))
		case fromRight:
			parts = splitFromRight(s, needSeparator(args[0]), int(limit))
		default:
			parts = strings.SplitN(s, needSeparator(args[0]), int(limit)+1)
		}
		return r.texts(parts)
	}
}

func (r *render) texts(parts []string) *list {
	r.list(2 * len(parts))
	l := &list{items: make([]value, len(parts))}
	for i, p := range parts {
		l.items[i] = p
	}
	return l
}

// fields splits at runs of white space, at most limit times.
func fields(s string, limit int) []string {
	var out []string
	for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
		end := strings.IndexFunc(s, isSpace)
		if end < 0 || len(out) == limit {
			if len(out) == limit {
				return append(out, s)
			}
			end = len(s)
		}
		tooMany(out)
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}

func fieldsFromRight(s string, limit int) []string {
	var out []string
	for s = strings.TrimRightFunc(s, isSpace); s != ""; s = strings.TrimRightFunc(s, isSpace) {
		if len(out) == limit {
			out = append(out, s)
			break
		}
		start := strings.LastIndexFunc(s, isSpace)
		if start < 0 {
			out = append(out, s)
			break
		}
		_, width := utf8.DecodeRuneInString(s[start:])
		tooMany(out)
		out = append(out, s[start+width:])
		s = s[:start]
	}
	return backwards(out)
}

func splitFromRight(s, sep string, limit int) []string {
	var out []string
	for ; limit > 0; limit-- {
		i := strings.LastIndex(s, sep)
		if i < 0 {
			break
		}
		tooMany(out)
		out = append(out, s[i+len(sep):])
		s = s[:i]
	}
	return backwards(append(out, s))
}

func backwards(parts []string) []string {
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return parts
}

func splitLinesMethod(r *render, s string, args []value) value {
	return r.texts(splitLines(s, r.truth(args[0])))
}

func partition(s, sep string, index func(s, sep string) int, restLast bool) value {
	i := index(s, sep)
	switch {
	case i >= 0:
		return tupleOf(s[:i], sep, s[i+len(sep):])
	case restLast:
		return tupleOf(s, "", "")
	}
	return tupleOf("", "", s)
}

func joinMethod(r *render, s string, args []value) value {
	var b strings.Builder
	next := r.iterate(args[0])
	for i := 0; ; i++ {
		e, ok := next()
		if !ok {
			break
		}
		text, ok := textOf(e)
		if !ok {
			typeError("sequence item %d: expected str instance, %s found", i, typeName(e))
		}
		if i > 0 {
			b.WriteString(s)
		}
		b.WriteString(text)
		r.step(1)
		if b.Len() > maxTextBytes {
			break
		}
	}
	r.text(b.Len())
	return b.String()
}
