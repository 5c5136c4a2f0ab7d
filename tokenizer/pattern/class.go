package pattern

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"baton/tokenizer/ucd"
)

// class reads a bracket expression whose [ has been read.
func (p *parser) class() ucd.Set {
	p.enter()
	defer func() { p.depth-- }()
	not := p.take("^")
	set := ucd.Set(nil).Not() // what all operands of && have in common
	var parts []ucd.Set       // the operand that is being read
	intersect := func() {
		set = set.And(ucd.Set(nil).Union(parts...))
		parts = nil
	}
	for first := true; first || !p.take("]"); first = false {
		switch {
		case strings.HasPrefix(p.rest, "[:"):
			p.fail("POSIX brackets are not supported")
		case p.take("["):
			parts = append(parts, p.class())
		case p.take("&&"):
			intersect()
		default:
			parts = append(parts, p.classItem())
		}
	}
	intersect()
	set = p.folded(set)
	if not {
		return set.Not()
	}
	return set
}

// classItem reads one character, class escape or range of a bracket expression.
func (p *parser) classItem() ucd.Set {
	set, lo := p.character(true)
	if lo < 0 || len(p.rest) < 2 || p.rest[0] != '-' || p.rest[1] == ']' {
		return set
	}
	p.rune()
	_, hi := p.character(true)
	if hi < lo {
		p.fail("a range that ends before it begins")
	}
	return ucd.Of(ucd.Range{Lo: lo, Hi: hi})
}

var plainEscapes = map[rune]rune{'n': '\n', 'r': '\r', 't': '\t', 'f': '\f', 'v': '\v', 'a': '\a', 'e': 0x1B}

// character reads a literal or an escape. It returns the set of what it
// matches and, if that is a single character, the character, else -1.
func (p *parser) character(inClass bool) (ucd.Set, rune) {
	r := p.rune()
	if r != '\\' {
		return ucd.Runes(r), r
	}
	r = p.rune()
	if plain, ok := plainEscapes[r]; ok {
		return ucd.Runes(plain), plain
	}
	switch r {
	case 's':
		return ucd.MustNamed(ucd.RegexSpace), -1
	case 'S':
		return ucd.MustNamed(ucd.RegexSpace).Not(), -1
	case 'd':
		return ucd.MustNamed(ucd.RegexDigit), -1
	case 'D':
		return ucd.MustNamed(ucd.RegexDigit).Not(), -1
	case 'w':
		return ucd.MustNamed(ucd.RegexWord), -1
	case 'W':
		return ucd.MustNamed(ucd.RegexWord).Not(), -1
	case 'h':
		return hexDigits, -1
	case 'H':
		return hexDigits.Not(), -1
	case 'p', 'P':
		return p.property(r == 'P'), -1
	case 'x', 'u':
		c := p.codePoint(r)
		return ucd.Runes(c), c
	case 'b':
		if inClass {
			return ucd.Runes('\b'), '\b'
		}
	}
	if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
		p.fail(`the escape \%c is not supported`, r)
	}
	return ucd.Runes(r), r
}

var hexDigits = ucd.Of(ucd.Range{Lo: '0', Hi: '9'}, ucd.Range{Lo: 'a', Hi: 'f'}, ucd.Range{Lo: 'A', Hi: 'F'})

// codePoint reads the digits of \xHH, \x{H...} or \uHHHH.
func (p *parser) codePoint(kind rune) rune {
	digits := 2
	if kind == 'u' {
		digits = 4
	}
	if kind == 'x' && p.take("{") {
		if digits = strings.IndexByte(p.rest, '}'); digits < 0 {
			p.fail("missing }")
		}
		defer p.take("}")
	} else if kind == 'x' && len(p.rest) > 0 && p.rest[0] >= '8' {
		p.fail(`\x above 7F is a raw byte, which is not supported`)
	}
	if len(p.rest) < digits {
		p.fail("it ends too early")
	}
	c, err := strconv.ParseUint(p.rest[:digits], 16, 32)
	if err != nil || c > ucd.MaxRune {
		p.fail("%q is no code point", p.rest[:digits])
	}
	p.rest = p.rest[digits:]
	return rune(c)
}

// property reads the name after \p or \P.
func (p *parser) property(not bool) ucd.Set {
	if !p.take("{") {
		p.fail(`\p needs a name in braces`)
	}
	name, after, ok := strings.Cut(p.rest, "}")
	if !ok {
		p.fail("missing }")
	}
	p.rest = after
	if strings.HasPrefix(name, "^") {
		not, name = !not, name[1:]
	}
	if _, seen := p.properties[name]; !seen {
		set, known := ucd.Named(strings.TrimSpace(name))
		if !known || strings.ToUpper(name[:1]) != name[:1] {
			p.fail("the property %q is not supported", clip(name))
		}
		p.properties[name] = [2]ucd.Set{set, set.Not()}
	}
	if not {
		return p.properties[name][1]
	}
	return p.properties[name][0]
}
