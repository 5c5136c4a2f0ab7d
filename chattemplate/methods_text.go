package chattemplate

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// methodsOfText are those of Python's str. Not there: encode, translate and
// maketrans, which make what no prompt can hold, and casefold.
func methodsOfText() map[string]*method {
	return map[string]*method{
		"strip":  onText(takes("chars", nil), func(_ *render, s string, args []value) value { return stripped(s, args[0], true, true) }),
		"lstrip": onText(takes("chars", nil), func(_ *render, s string, args []value) value { return stripped(s, args[0], true, false) }),
		"rstrip": onText(takes("chars", nil), func(_ *render, s string, args []value) value { return stripped(s, args[0], false, true) }),

		"upper":      onText(takes(""), func(r *render, s string, _ []value) value { return toUpper(s) }),
		"lower":      onText(takes(""), func(r *render, s string, _ []value) value { return toLower(s) }),
		"title":      onText(takes(""), func(r *render, s string, _ []value) value { return toTitle(s) }),
		"capitalize": onText(takes(""), func(r *render, s string, _ []value) value { return capitalize(s) }),
		"swapcase":   onText(takes(""), func(r *render, s string, _ []value) value { return swapCase(s) }),

		"split":      byName(takes("sep maxsplit", nil, int64(-1)), splitMethod(false)),
		"rsplit":     byName(takes("sep maxsplit", nil, int64(-1)), splitMethod(true)),
		"splitlines": byName(takes("keepends", false), splitLinesMethod),
		"partition": onText(takes("sep"), func(_ *render, s string, args []value) value {
			return partition(s, needSeparator(args[0]), strings.Index, true)
		}),
		"rpartition": onText(takes("sep"), func(_ *render, s string, args []value) value {
			return partition(s, needSeparator(args[0]), strings.LastIndex, false)
		}),
		"join": onText(takes("iterable"), joinMethod),
		"replace": onText(takes("old new count", int64(-1)), func(r *render, s string, args []value) value {
			return r.replaced(s, needText(args[0]), needText(args[1]), needInt(args[2]))
		}),
		"removeprefix": onText(takes("prefix"), func(_ *render, s string, args []value) value {
			return strings.TrimPrefix(s, needText(args[0]))
		}),
		"removesuffix": onText(takes("suffix"), func(_ *render, s string, args []value) value {
			return strings.TrimSuffix(s, needText(args[0]))
		}),

		"startswith": onText(takes("prefix start end", nil, nil), affixMethod(strings.HasPrefix)),
		"endswith":   onText(takes("suffix start end", nil, nil), affixMethod(strings.HasSuffix)),
		"find":       onText(takes("sub start end", nil, nil), findMethod(strings.Index, false)),
		"rfind":      onText(takes("sub start end", nil, nil), findMethod(strings.LastIndex, false)),
		"index":      onText(takes("sub start end", nil, nil), findMethod(strings.Index, true)),
		"rindex":     onText(takes("sub start end", nil, nil), findMethod(strings.LastIndex, true)),
		"count": onText(takes("sub start end", nil, nil), func(_ *render, s string, args []value) value {
			part, _, ok := window(s, args[1], args[2])
			if !ok {
				return int64(0)
			}
			return int64(strings.Count(part, needText(args[0])))
		}),

		"center": onText(takes("width fillchar", " "), padMethod("center")),
		"ljust":  onText(takes("width fillchar", " "), padMethod("ljust")),
		"rjust":  onText(takes("width fillchar", " "), padMethod("rjust")),
		"zfill": onText(takes("width"), func(r *render, s string, args []value) value {
			width := needInt(args[0])
			if s != "" && (s[0] == '+' || s[0] == '-') {
				return s[:1] + r.padded(s[1:], "rjust", width-1, "0")
			}
			return r.padded(s, "rjust", width, "0")
		}),
		"expandtabs": byName(takes("tabsize", int64(8)), expandTabs),

		"isdigit":   every(isDigit),
		"isdecimal": every(func(c rune) bool { return unicode.Is(unicode.Nd, c) }),
		"isnumeric": every(isNumeric),
		"isalpha":   every(unicode.IsLetter),
		"isalnum":   every(isAlnum),
		"isspace":   every(isSpace),
		"isupper":   onText(takes(""), func(_ *render, s string, _ []value) value { return allCased(s, isUpper) }),
		"islower":   onText(takes(""), func(_ *render, s string, _ []value) value { return allCased(s, isLower) }),
		"istitle":   onText(takes(""), func(_ *render, s string, _ []value) value { return isTitle(s) }),
		"isascii":   onText(takes(""), func(_ *render, s string, _ []value) value { return isASCII(s) }),
		"isprintable": onText(takes(""), func(_ *render, s string, _ []value) value {
			return strings.IndexFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) < 0
		}),
		"isidentifier": onText(takes(""), func(_ *render, s string, _ []value) value {
			first, _ := utf8.DecodeRuneInString(s)
			return s != "" && isNameStart(first) && strings.IndexFunc(s, func(c rune) bool { return !isNamePart(c) }) < 0
		}),

		"format": {raw: func(r *render, self value, args arguments) value {
			return alike(self, r.formatBraces(self, args))
		}},
	}
}

// onText makes a method of str. What it makes of markup is markup.
func onText(takes signature, apply func(r *render, s string, args []value) value) *method {
	return fn(takes, func(r *render, self value, args []value) value {
		s, _ := textOf(self)
		v := apply(r, s, args)
		if _, ok := self.(markup); ok {
			return safeTexts(v)
		}
		return v
	})
}

// safeTexts makes markup of a text, or of the texts of a new list.
func safeTexts(v value) value {
	switch x := v.(type) {
	case string:
		return markup(x)
	case *list:
		for i, e := range x.items {
			x.items[i] = safeTexts(e)
		}
	}
	return v
}

// byName is onText for the few methods that take keywords.
func byName(takes signature, apply func(r *render, s string, args []value) value) *method {
	m := onText(takes, apply)
	m.nameless = false
	return m
}

func every(in func(rune) bool) *method {
	return onText(takes(""), func(_ *render, s string, _ []value) value {
		return s != "" && strings.IndexFunc(s, func(c rune) bool { return !in(c) }) < 0
	})
}

// window is s[start:end] in characters, and the number of characters before it.
// It is not ok where start lies behind the end, where nothing is found.
func window(s string, start, end value) (part string, before int, ok bool) {
	if start == nil && end == nil {
		return s, 0, true
	}
	n := int64(utf8.RuneCountInString(s))
	low, high := int64(0), n
	if start != nil {
		if low = sliceIndex(start); low < 0 {
			low = max(low+n, 0)
		}
	}
	if end != nil {
		if high = sliceIndex(end); high < 0 {
			high += n
		}
		high = min(max(high, 0), n)
	}
	if low > high {
		return "", 0, false
	}
	first, last := byteAt(s, low), byteAt(s, high)
	return s[first:last], int(low), true
}

// byteAt is where the n-th character begins.
func byteAt(s string, n int64) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

func affixMethod(has func(s, affix string) bool) func(r *render, s string, args []value) value {
	return func(r *render, s string, args []value) value {
		part, _, ok := window(s, args[1], args[2])
		options := args[:1]
		if l, isList := args[0].(*list); isList && l.tuple {
			options = l.items
		}
		for _, o := range options {
			if affix := needText(o); ok && has(part, affix) {
				return true
			}
		}
		return false
	}
}

func findMethod(index func(s, sub string) int, mustFind bool) func(r *render, s string, args []value) value {
	return func(r *render, s string, args []value) value {
		sub := needText(args[0])
		part, before, ok := window(s, args[1], args[2])
		if i := index(part, sub); ok && i >= 0 {
			return int64(before + utf8.RuneCountInString(part[:i]))
		}
		if mustFind {
			return fail("ValueError", "substring not found")
		}
		return int64(-1)
	}
}

func padMethod(how string) func(r *render, s string, args []value) value {
	return func(r *render, s string, args []value) value {
		fill := needText(args[1])
		if utf8.RuneCountInString(fill) != 1 {
			typeError("The fill character must be exactly one character long")
		}
		return r.padded(s, how, needInt(args[0]), fill)
	}
}

// padded fills s up to a width in characters.
func (r *render) padded(s, how string, width int64, fill string) string {
	missing := width - int64(utf8.RuneCountInString(s))
	if width < 0 || missing <= 0 {
		return s
	}
	if missing > math.MaxInt32 {
		missing = math.MaxInt32
	}
	r.text(len(s) + product(len(fill), missing))
	n := int(missing)
	switch how {
	case "ljust":
		return s + strings.Repeat(fill, n)
	case "rjust":
		return strings.Repeat(fill, n) + s
	}
	left := n/2 + n&int(width)&1 // an odd blank goes to the left in odd widths
	return strings.Repeat(fill, left) + s + strings.Repeat(fill, n-left)
}

func expandTabs(r *render, s string, args []value) value {
	size := int(min(max(needInt(args[0]), 0), maxFieldWidth))
	r.text(len(s) + product(size, int64(strings.Count(s, "\t"))))
	var b strings.Builder
	column := 0
	for _, c := range s {
		switch {
		case c == '\t' && size > 0:
			n := size - column%size
			b.WriteString(strings.Repeat(" ", n))
			column += n
		case c == '\t':
		default:
			b.WriteRune(c)
			if column++; c == '\n' || c == '\r' {
				column = 0
			}
		}
	}
	return b.String()
}

func swapCase(s string) string {
	var b strings.Builder
	for i, c := range s {
		switch {
		case isUpper(c):
			b.WriteString(lowerRune(s, i, c))
		case isLower(c):
			b.WriteString(upperRune(c))
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}

func isTitle(s string) bool {
	found, inWord := false, false
	for _, c := range s {
		switch {
		case isUpper(c) || unicode.IsTitle(c):
			if inWord {
				return false
			}
			found, inWord = true, true
		case isLower(c):
			if !inWord {
				return false
			}
			found = true
		default:
			inWord = false
		}
	}
	return found
}
