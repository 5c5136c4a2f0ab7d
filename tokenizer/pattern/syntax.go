package pattern

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"baton/tokenizer/ucd"
)

// Limits of an expression. Those in use stay far below.
const (
	maxExpressionBytes = 64 << 10
	maxNesting         = 100
	maxRepeat          = 10_000 // the numbers in {m,n}
)

type nodeKind uint8

const (
	nodeSet    nodeKind = iota // one character of set
	nodeSeq                    // subs, one after the other
	nodeAlt                    // the first of subs that leads to a match
	nodeRepeat                 // subs[0], min to max times
	nodeLook                   // subs[0] matches here, or (not) does not; nothing is consumed
	nodeBehind                 // the character before is in set, or (not) is not
	nodeAtomic                 // subs[0], without trying other ways through it later
	nodeAssert                 // a place: see assertKind
)

type assertKind uint8

const (
	textStart assertKind = iota
	textEnd
	lineStart
	lineEnd
	textEndOrNewline
	wordBoundary
	noWordBoundary
)

type node struct {
	kind     nodeKind
	set      ucd.Set
	subs     []*node
	min, max int // max < 0: any number
	lazy     bool
	not      bool
	assert   assertKind
}

// A parser reads one expression. Methods give up by panicking with a
// syntaxError, which parse turns into an error.
type parser struct {
	rest  string
	fold  bool
	depth int
}

type syntaxError string

func parse(expr string) (n *node, err error) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case syntaxError:
			err = fmt.Errorf("split expression %q: %s", clip(expr), string(x))
		default:
			panic(x)
		}
	}()
	if len(expr) > maxExpressionBytes {
		return nil, fmt.Errorf("split expression of %d bytes, above the limit of %d", len(expr), maxExpressionBytes)
	}
	if !utf8.ValidString(expr) {
		return nil, fmt.Errorf("split expression %q is not valid UTF-8", clip(expr))
	}
	p := &parser{rest: expr}
	n = p.alternatives()
	if p.rest != "" {
		p.fail("unmatched )")
	}
	return n, nil
}

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}

func (p *parser) fail(format string, args ...any) {
	panic(syntaxError(fmt.Sprintf(format, args...)))
}

// take removes prefix from what is left, if it stands there.
func (p *parser) take(prefix string) bool {
	if strings.HasPrefix(p.rest, prefix) {
		p.rest = p.rest[len(prefix):]
		return true
	}
	return false
}

// rune removes and returns the next character.
func (p *parser) rune() rune {
	if p.rest == "" {
		p.fail("it ends too early")
	}
	r, size := utf8.DecodeRuneInString(p.rest)
	p.rest = p.rest[size:]
	return r
}

func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.fail("nested deeper than %d", maxNesting)
	}
}

func (p *parser) alternatives() *node {
	p.enter()
	defer func() { p.depth-- }()
	alt := &node{kind: nodeAlt}
	for {
		seq := &node{kind: nodeSeq}
		for p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
			seq.subs = append(seq.subs, p.repeated())
		}
		if p.fold {
			p.refuseLongFolds(seq.subs)
		}
		alt.subs = append(alt.subs, seq)
		if !p.take("|") {
			break
		}
	}
	if len(alt.subs) == 1 {
		return alt.subs[0]
	}
	return alt
}

// repeated reads an atom and the quantifiers behind it.
func (p *parser) repeated() *node {
	n := p.atom()
	for depth := 0; p.rest != ""; depth++ {
		if depth > maxNesting {
			p.fail("nested deeper than %d", maxNesting)
		}
		least, most, interval := 0, -1, false
		switch {
		case p.take("?"):
			most = 1
		case p.take("*"):
		case p.take("+"):
			least = 1
		case p.rest[0] == '{':
			if least, most, interval = p.interval(); !interval {
				return n // a brace that begins no interval is a character
			}
		default:
			return n
		}
		if n.kind == nodeLook || n.kind == nodeBehind || n.kind == nodeAssert {
			p.fail("a repeated lookaround or anchor is not supported")
		}
		r := &node{kind: nodeRepeat, subs: []*node{n}, min: least, max: most}
		switch {
		case p.take("?"):
			if interval && least == most {
				p.fail("{n}? is not supported")
			}
			r.lazy = true
		case !interval && p.take("+"): // after an interval, + is one more repeat
			r = &node{kind: nodeAtomic, subs: []*node{r}}
		}
		n = r
	}
	return n
}

// interval reads {n}, {n,}, {,n} or {n,m}; ok is false, and nothing is read, if none stands here.
func (p *parser) interval() (least, most int, ok bool) {
	body, after, closed := strings.Cut(p.rest[1:], "}")
	low, high, two := strings.Cut(body, ",")
	if !closed || strings.Trim(low+high, "0123456789") != "" || low+high == "" {
		return 0, 0, false
	}
	number := func(digits string, absent int) int {
		if digits == "" {
			return absent
		}
		n, err := strconv.Atoi(digits)
		if err != nil || n > maxRepeat {
			p.fail("a repeat above %d", maxRepeat)
		}
		return n
	}
	least = number(low, 0)
	most = least
	if two {
		most = number(high, -1)
	}
	if most >= 0 && most < least {
		p.fail("a repeat {%s} that ends before it begins", body)
	}
	p.rest = after
	return least, most, true
}

func (p *parser) atom() *node {
	switch {
	case p.rest[0] == '(':
		return p.group()
	case p.rest[0] == '[':
		p.rune()
		return &node{kind: nodeSet, set: p.class()}
	case p.take("."):
		return &node{kind: nodeSet, set: ucd.Runes('\n').Not()}
	case p.take("^"):
		return &node{kind: nodeAssert, assert: lineStart}
	case p.take("$"):
		return &node{kind: nodeAssert, assert: lineEnd}
	case p.take(`\A`):
		return &node{kind: nodeAssert, assert: textStart}
	case p.take(`\z`):
		return &node{kind: nodeAssert, assert: textEnd}
	case p.take(`\Z`):
		return &node{kind: nodeAssert, assert: textEndOrNewline}
	case p.take(`\b`):
		return &node{kind: nodeAssert, assert: wordBoundary}
	case p.take(`\B`):
		return &node{kind: nodeAssert, assert: noWordBoundary}
	case strings.IndexByte("?*+", p.rest[0]) >= 0:
		p.fail("%c has nothing to repeat", p.rest[0])
	}
	set, _ := p.character(false)
	return &node{kind: nodeSet, set: p.folded(set)}
}

func (p *parser) group() *node {
	oldFold := p.fold
	wrap := func(n *node) *node { return n }
	switch {
	case p.take("(?:"):
	case p.take("(?i:"):
		p.fold = true
	case p.take("(?-i:"):
		p.fold = false
	case p.take("(?>"):
		wrap = func(n *node) *node { return &node{kind: nodeAtomic, subs: []*node{n}} }
	case p.take("(?="):
		wrap = func(n *node) *node { return &node{kind: nodeLook, subs: []*node{n}} }
	case p.take("(?!"):
		wrap = func(n *node) *node { return &node{kind: nodeLook, subs: []*node{n}, not: true} }
	case p.take("(?<="):
		wrap = func(n *node) *node { return p.behind(n, false) }
	case p.take("(?<!"):
		wrap = func(n *node) *node { return p.behind(n, true) }
	case strings.HasPrefix(p.rest, "(?"):
		p.fail("the group %q is not supported", clip(p.rest))
	default:
		p.rune()
	}
	n := p.alternatives()
	if !p.take(")") {
		p.fail("missing )")
	}
	p.fold = oldFold
	return wrap(n)
}

// behind makes a lookbehind for n.
func (p *parser) behind(n *node, not bool) *node {
	for n.kind == nodeSeq && len(n.subs) == 1 {
		n = n.subs[0]
	}
	if n.kind != nodeSet {
		p.fail("a lookbehind over anything but one character is not supported")
	}
	return &node{kind: nodeBehind, set: n.set, not: not}
}

// The reference's engine lets (?i:ss) match ß, and ß match ss: a character and
// two that are cases of each other. No known file needs that, so it is refused.
var (
	longFolds     = []string{"ss", "ff", "fi", "fl", "st"}
	longFoldRunes = ucd.Runes('ß', 'ẞ', 'İ', 'ŉ', 'ǰ', 'ΐ', 'ΰ', 'և').Union(ucd.Of(
		ucd.Range{Lo: 0x1E96, Hi: 0x1E9A}, ucd.Range{Lo: 0x1F50, Hi: 0x1FFC}, ucd.Range{Lo: 0xFB00, Hi: 0xFB17}))
)

func (p *parser) refuseLongFolds(seq []*node) {
	const few = 8 // ranges: more is no literal
	for i, n := range seq {
		if n.kind != nodeSet || len(n.set) > few {
			continue
		}
		refused := len(n.set.And(longFoldRunes)) > 0
		if i+1 < len(seq) && seq[i+1].kind == nodeSet && len(seq[i+1].set) <= few {
			for _, pair := range longFolds {
				refused = refused || n.set.Contains(rune(pair[0])) && seq[i+1].set.Contains(rune(pair[1]))
			}
		}
		if refused {
			p.fail("ignoring the case of ss, ff, fi, fl, st or of a character like ß is not supported")
		}
	}
}

// folded adds the other cases of every character, if case is ignored here.
func (p *parser) folded(s ucd.Set) ucd.Set {
	if !p.fold {
		return s
	}
	var more []ucd.Range
	for _, r := range s {
		for c := r.Lo; c <= r.Hi; c++ {
			for f := unicode.SimpleFold(c); f != c; f = unicode.SimpleFold(f) {
				more = append(more, ucd.Range{Lo: f, Hi: f})
			}
		}
	}
	return s.Union(ucd.Of(more...))
}

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
	set, known := ucd.Named(strings.TrimSpace(name))
	if !known || strings.ToUpper(name[:1]) != name[:1] {
		p.fail("the property %q is not supported", clip(name))
	}
	if not {
		return set.Not()
	}
	return set
}
