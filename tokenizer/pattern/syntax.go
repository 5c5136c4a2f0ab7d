package pattern

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"baton/tokenizer/ucd"
)

// Limits of an expression. Those in use stay far below.
const (
	maxExpressionBytes = 16 << 10
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
	// The properties that were asked for, and what is outside of each.
	properties map[string][2]ucd.Set
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
	p := &parser{rest: expr, properties: map[string][2]ucd.Set{}}
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
