package chattemplate

import (
	"strings"
	"unicode/utf8"
)

func textFilters() map[string]*method {
	return map[string]*method{
		"upper":      plain(func(r *render, v value) value { return r.cased(v, toUpper) }),
		"lower":      plain(func(r *render, v value) value { return r.cased(v, toLower) }),
		"capitalize": plain(func(r *render, v value) value { return r.cased(v, capitalize) }),
		"title":      plain(func(r *render, v value) value { return titleWords(r.str(v)) }),
		"trim": filter(takes("chars", nil), func(r *render, v value, args []value) value {
			return alike(v, stripped(r.str(v), args[0], true, true))
		}),
		"replace": filter(takes("old new count", nil), func(r *render, v value, args []value) value {
			n := int64(-1)
			if args[2] != nil {
				n = needInt(args[2])
			}
			return r.replaced(r.str(v), r.str(args[0]), r.str(args[1]), n)
		}),
		"indent":   filter(takes("width first blank", int64(4), false, false), indented),
		"truncate": filter(takes("length killwords end leeway", int64(255), false, "...", nil), truncated),
		"center": filter(takes("width", int64(80)), func(r *render, v value, args []value) value {
			return alike(v, r.padded(r.str(v), "center", needInt(args[0]), " "))
		}),
		"format": {raw: func(r *render, v value, args arguments) value {
			if args.keywords != nil && len(args.keywords.keys) > 0 {
				if len(args.positional) > 0 {
					fail("FilterArgumentError", "can't handle positional and keyword arguments at the same time")
				}
				return r.formatPercent(r.soft(v), args.keywords)
			}
			return r.formatPercent(r.soft(v), tupleOf(args.positional...))
		}},
		"escape":      plain(func(r *render, v value) value { return r.escaped(v) }),
		"forceescape": plain(func(r *render, v value) value { return r.escaped(r.str(v)) }),
		"safe":        plain(func(r *render, v value) value { return markup(r.str(v)) }),
		"string":      plain(func(r *render, v value) value { return r.soft(v) }),
		"striptags":   plain(func(r *render, v value) value { return withoutTags(r.str(v)) }),
		"urlencode":   plain(urlEncoded),
		"xmlattr":     filter(takes("autospace", true), xmlAttributes),
		"wordcount": plain(func(r *render, v value) value {
			return words(r.str(v))
		}),
		"tojson": filter(takes("ensure_ascii indent separators sort_keys", false, nil, nil, false),
			func(r *render, v value, args []value) value { return r.toJSON(v, r.jsonStyleOf(args)) }),
	}
}

// soft is markupsafe's soft_str: markup stays markup, anything else is str().
func (r *render) soft(v value) value {
	if m, ok := v.(markup); ok {
		return m
	}
	return r.str(v)
}

func (r *render) cased(v value, f func(string) string) value {
	s := r.str(v)
	r.made(2 * len(s))
	return alike(v, f(s))
}

// words counts runs of letters, digits and underscores.
func words(s string) value {
	n, inside := int64(0), false
	for _, c := range s {
		if c != '_' && !isAlnum(c) {
			inside = false
		} else if !inside {
			inside = true
			n++
		}
	}
	return n
}

// titleWords is the filter title, which unlike the method of the same name only
// begins words after blanks, hyphens and opening brackets.
func titleWords(s string) string {
	var b strings.Builder
	begin := true
	for i, c := range s {
		separator := isSpace(c) || strings.ContainsRune("-({[<", c)
		switch {
		case separator:
			b.WriteRune(c)
		case begin:
			b.WriteString(upperRune(c))
		default:
			b.WriteString(lowerRune(s, i, c))
		}
		begin = separator
	}
	return b.String()
}

// stripped removes white space, or the characters of set, from the ends.
func stripped(s string, set value, left, right bool) string {
	in := isSpace
	if set != nil {
		chars := needText(set)
		in = func(c rune) bool { return strings.ContainsRune(chars, c) }
		if len(chars) > 64 {
			set := map[rune]bool{}
			for _, c := range chars {
				set[c] = true
			}
			in = func(c rune) bool { return set[c] }
		}
	}
	if left {
		s = strings.TrimLeftFunc(s, in)
	}
	if right {
		s = strings.TrimRightFunc(s, in)
	}
	return s
}

func (r *render) replaced(s, old, new string, n int64) string {
	if n < 0 || n > int64(len(s))+1 {
		n = int64(len(s)) + 1
	}
	count := min(strings.Count(s, old), int(n))
	r.text(len(s) + max(0, product(max(len(new)-len(old), 0), int64(count))))
	return strings.Replace(s, old, new, int(n))
}

func indented(r *render, v value, args []value) value {
	indent, ok := textOf(args[0])
	if !ok {
		indent = strings.Repeat(" ", int(min(max(needInt(args[0]), 0), maxFieldWidth)))
	}
	if u, ok := v.(*undefined); ok {
		return u.fail()
	}
	s := needText(v)
	lines := splitLines(s+"\n", false)
	r.text(len(s) + product(len(indent), int64(len(lines)+1)))
	var b strings.Builder
	if r.truth(args[1]) {
		b.WriteString(indent)
	}
	blank := r.truth(args[2])
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
			if blank || line != "" {
				b.WriteString(indent)
			}
		}
		b.WriteString(line)
	}
	return alike(v, b.String())
}

// lineEnds are all characters at which str.splitlines() splits.
const lineEnds = "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029"

// tooMany stops a split before it makes a list that is over the limit anyway.
func tooMany(parts []string) {
	if len(parts) > maxListItems {
		overLimit("elements in one list", maxListItems)
	}
}

func splitLines(s string, keepEnds bool) []string {
	var lines []string
	for s != "" {
		tooMany(lines)
		i := strings.IndexAny(s, lineEnds)
		if i < 0 {
			return append(lines, s)
		}
		_, width := utf8.DecodeRuneInString(s[i:])
		if strings.HasPrefix(s[i:], "\r\n") {
			width = 2
		}
		if keepEnds {
			lines = append(lines, s[:i+width])
		} else {
			lines = append(lines, s[:i])
		}
		s = s[i+width:]
	}
	return lines
}

func truncated(r *render, v value, args []value) value {
	length, end, leeway := needInt(args[0]), needText(args[2]), int64(5)
	if args[3] != nil {
		leeway = needInt(args[3])
	}
	endLength := int64(utf8.RuneCountInString(end))
	if length < endLength || leeway < 0 {
		fail("AssertionError", "expected length >= %d, got %d", endLength, length)
	}
	n, ok := r.length(v)
	if !ok {
		return typeError("object of type '%s' has no len()", typeName(v))
	}
	if leeway > 1<<40 || length > 1<<40 || int64(n) <= length+leeway {
		return v
	}
	s := needText(r.slice(v, nil, length-endLength, nil))
	if !r.truth(args[1]) {
		if i := strings.LastIndexByte(s, ' '); i >= 0 {
			s = s[:i]
		}
	}
	return r.binary("+", alike(v, s), end)
}

// withoutTags is markupsafe's striptags: no comments, no tags, single blanks.
func withoutTags(s string) string {
	s = withoutRuns(withoutRuns(s, "<!--", "-->"), "<", ">")
	var b strings.Builder
	for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
		end := strings.IndexFunc(s, isSpace)
		if end < 0 {
			end = len(s)
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(s[:end])
		s = s[end:]
	}
	s = b.String()
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#39;", "'", "&#34;", `"`, "&quot;", `"`, "&amp;", "&").Replace(s)
}

func withoutRuns(s, begin, end string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, begin)
		if ok {
			_, rest, ok = strings.Cut(rest, end)
		}
		if !ok {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(before)
		s = rest
	}
}

func urlEncoded(r *render, v value) value {
	if d, ok := v.(*dict); ok {
		return r.urlPairs(d.pairs(r))
	}
	if _, ok := textOf(v); !ok && isIterable(v) {
		return r.urlPairs(r.collect(v))
	}
	return urlQuote(r.str(v), "/")
}

func (r *render) urlPairs(pairs []value) value {
	var parts []string
	for _, e := range pairs {
		pair := r.collect(e)
		if len(pair) != 2 {
			fail("ValueError", "urlencode needs pairs")
		}
		quote := func(v value) string { return strings.ReplaceAll(urlQuote(r.str(v), ""), "%20", "+") }
		parts = append(parts, quote(pair[0])+"="+quote(pair[1]))
	}
	return strings.Join(parts, "&")
}

func urlQuote(s, safe string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("_.-~"+safe, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteString(string([]byte{'%', hex[c>>4], hex[c&15]}))
	}
	return b.String()
}

func xmlAttributes(r *render, v value, args []value) value {
	d, ok := v.(*dict)
	if !ok {
		return fail("AttributeError", "'%s' object has no attribute 'items'", typeName(v))
	}
	var b strings.Builder
	for i, k := range d.keys {
		if _, ok := d.vals[i].(*undefined); ok || d.vals[i] == nil {
			continue
		}
		key := needText(k)
		if strings.ContainsAny(key, " \t\n\r\f\v/>=") {
			fail("ValueError", "Invalid character in attribute name: %q", key)
		}
		if b.Len() > 0 || r.truth(args[0]) {
			b.WriteByte(' ')
		}
		b.WriteString(escapeHTML(key) + `="` + string(r.escaped(d.vals[i])) + `"`)
	}
	return b.String()
}
