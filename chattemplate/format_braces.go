package chattemplate

import (
	"math"
	"strings"
	"unicode/utf8"
)

// formatBraces is str.format, as the sandbox lets a template use it: attributes
// in fields go through the sandbox, too.
func (r *render) formatBraces(format value, args arguments) string {
	text, _ := textOf(format)
	_, safe := format.(markup)
	f := &braceFormat{r: r, args: args, safe: safe}
	f.run(text, 2)
	r.text(f.out.Len())
	return f.out.String()
}

type braceFormat struct {
	r      *render
	args   arguments
	auto   int  // the number of the next {}
	manual bool // numbers were given: {0}
	safe   bool // the format is markup: escape what is put in
	out    strings.Builder
}

// run formats a text; fields inside of fields are allowed once.
func (f *braceFormat) run(text string, depth int) {
	if depth < 0 {
		fail("ValueError", "Max string recursion exceeded")
	}
	f.r.step(len(text) / 16)
	for text != "" {
		i := strings.IndexAny(text, "{}")
		if i < 0 || f.out.Len() > maxTextBytes {
			f.out.WriteString(text)
			return
		}
		f.out.WriteString(text[:i])
		c := text[i]
		text = text[i+1:]
		switch {
		case text != "" && text[0] == c:
			f.out.WriteByte(c)
			text = text[1:]
		case c == '}':
			fail("ValueError", "Single '}' encountered in format string")
		default:
			end := closing(text)
			f.field(text[:end], depth)
			text = text[end+1:]
		}
	}
}

// closing finds the brace that ends a field.
func closing(text string) int {
	depth := 1
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	fail("ValueError", "expected '}' before end of string")
	return 0
}

func (f *braceFormat) field(field string, depth int) {
	f.r.step(1)
	name, conversion, spec := cutField(field)
	v := f.value(name)
	switch conversion {
	case "":
	case "s":
		v = f.r.str(v)
	case "r":
		v = f.r.reprText(v)
	case "a":
		v = f.r.asciiRepr(v)
	default:
		fail("ValueError", "Unknown conversion specifier %s", conversion)
	}
	if strings.IndexByte(spec, '{') >= 0 || strings.IndexByte(spec, '}') >= 0 {
		before := f.out
		f.out = strings.Builder{}
		f.run(spec, depth-1)
		spec = f.out.String()
		f.out = strings.Builder{}
		f.out.WriteString(before.String())
	}
	text := f.r.format(v, spec)
	if _, ok := v.(markup); f.safe && !ok {
		text = escapeHTML(text)
	}
	f.out.WriteString(text)
}

// cutField cuts "name!conversion:spec". What is in [ ] belongs to the name.
func cutField(field string) (name, conversion, spec string) {
	end, bracket := len(field), false
	for i := range len(field) {
		c := field[i]
		if c == '[' {
			bracket = true
		} else if c == ']' {
			bracket = false
		} else if (c == ':' || c == '!') && !bracket {
			end = i
			break
		}
	}
	name, rest := field[:end], field[end:]
	if strings.IndexByte(name, '{') >= 0 {
		fail("ValueError", "unexpected '{' in field name")
	}
	if strings.HasPrefix(rest, "!") {
		conversion, spec, _ = strings.Cut(rest[1:], ":")
		if utf8.RuneCountInString(conversion) != 1 {
			fail("ValueError", "expected one conversion character after '!'")
		}
		return name, conversion, spec
	}
	return name, "", strings.TrimPrefix(rest, ":")
}

// value resolves "0.name[key]".
func (f *braceFormat) value(name string) value {
	end := strings.IndexAny(name, ".[")
	if end < 0 {
		end = len(name)
	}
	v := f.argument(name[:end], name == "")
	for rest := name[end:]; rest != ""; {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			if end == 0 {
				fail("ValueError", "Empty attribute in format string")
			}
			v, rest = f.r.attribute(v, rest[1:1+end]), rest[1+end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if rest[0] != '[' || end < 0 || end == 1 {
			fail("ValueError", "Empty or unclosed [ in format string")
		}
		var key value = rest[1:end]
		if n, ok := fieldNumber(rest[1:end]); ok {
			key = n
		}
		v, rest = f.r.item(v, key), rest[end+1:]
		if rest != "" && rest[0] != '.' && rest[0] != '[' {
			fail("ValueError", "Only '.' or '[' may follow ']' in format field specifier")
		}
	}
	return v
}

func (f *braceFormat) argument(name string, automatic bool) value {
	n, isNumber := fieldNumber(name)
	switch {
	case automatic:
		if f.manual {
			fail("ValueError", "cannot switch from manual field specification to automatic field numbering")
		}
		n, isNumber = int64(f.auto), true
		f.auto++
	case isNumber:
		if f.auto > 0 {
			fail("ValueError", "cannot switch from manual field specification to automatic field numbering")
		}
		f.manual = true
	}
	if isNumber {
		if n >= int64(len(f.args.positional)) {
			fail("IndexError", "Replacement index %d out of range for positional args tuple", n)
		}
		return f.args.positional[n]
	}
	if f.args.keywords != nil {
		if v, ok := f.args.keywords.get(name); ok {
			return v
		}
	}
	return fail("KeyError", "'%s'", name)
}

func fieldNumber(s string) (int64, bool) {
	if s == "" || len(s) > 9 {
		return 0, false
	}
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

// format is Python's format(): what a field's specification makes of a value.
func (r *render) format(v value, text string) string {
	if text == "" {
		return r.str(v)
	}
	switch x := v.(type) {
	case string, markup:
		s, _ := textOf(x)
		spec := parseSpec(text)
		if spec.kind != 0 && spec.kind != 's' || spec.sign != 0 || spec.grouping != 0 || spec.alternate || spec.align == '=' && spec.fill != "0" {
			fail("ValueError", "Invalid format specifier '%s' for object of type 'str'", text)
		}
		if spec.align == '=' { // a zero before the width fills texts on the right
			spec.align = '<'
		}
		return r.clipped(s, spec)
	case float64:
		spec := parseSpec(text)
		if spec.kind != 0 && strings.IndexByte("eEfFgGn%", spec.kind) < 0 {
			fail("ValueError", "Unknown format code '%c' for object of type 'float'", rune(spec.kind))
		}
		return r.float(x, spec)
	}
	n, ok := bigOf(v)
	if !ok {
		typeError("unsupported format string passed to %s.__format__", typeName(v))
	}
	spec := parseSpec(text)
	switch {
	case spec.kind != 0 && strings.IndexByte("eEfFgG%", spec.kind) >= 0:
		f, _ := floatOf(v)
		return r.float(f, spec)
	case spec.kind != 0 && strings.IndexByte("bcdoxXn", spec.kind) < 0:
		fail("ValueError", "Unknown format code '%c' for object of type 'int'", rune(spec.kind))
	case spec.precision >= 0:
		fail("ValueError", "Precision not allowed in integer format specifier")
	}
	return r.integer(n, spec)
}

// parseSpec reads [[fill]align][sign][#][0][width][grouping][.precision][kind].
func parseSpec(text string) *formatSpec {
	spec := &formatSpec{precision: -1}
	whole := text
	_, first := utf8.DecodeRuneInString(text)
	isAlign := func(i int) bool { return i < len(text) && strings.IndexByte("<>^=", text[i]) >= 0 }
	if isAlign(first) {
		spec.fill, spec.align, text = text[:first], text[first], text[first+1:]
	} else if isAlign(0) {
		spec.align, text = text[0], text[1:]
	}
	take := func(chars string) byte {
		if text != "" && strings.IndexByte(chars, text[0]) >= 0 {
			c := text[0]
			text = text[1:]
			return c
		}
		return 0
	}
	if spec.sign = take("+- "); spec.sign == '-' {
		spec.sign = 0
	}
	spec.alternate = take("#") != 0
	if take("0") != 0 && spec.fill == "" {
		spec.fill = "0"
		if spec.align == 0 {
			spec.align = '='
		}
	}
	number := func() (n int64, ok bool) {
		for ; text != "" && text[0] >= '0' && text[0] <= '9'; text = text[1:] {
			if n, ok = n*10+int64(text[0]-'0'), true; n > math.MaxInt32 {
				fail("ValueError", "Too many decimal digits in format string")
			}
		}
		return n, ok
	}
	spec.width, _ = number()
	spec.grouping = take(",_")
	if take(".") != 0 {
		n, ok := number()
		if !ok {
			fail("ValueError", "Format specifier missing precision")
		}
		spec.precision = n
	}
	if text != "" {
		spec.kind, text = text[0], text[1:]
	}
	if text != "" {
		fail("ValueError", "Invalid format specifier '%s'", whole)
	}
	return spec
}
