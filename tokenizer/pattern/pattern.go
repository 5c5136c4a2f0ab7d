package pattern

import (
	"fmt"
	"math/bits"
	"unicode/utf8"

	"baton/tokenizer/ucd"
)

// MaxBacktracks is how many steps back one match may take, as in Oniguruma.
const MaxBacktracks = 10_000_000

// maxBacktracksPerByte is what a whole text may take per byte of it, on top of
// one MaxBacktracks.
const maxBacktracksPerByte = 1_000

// A Pattern is a compiled split expression. It is immutable.
type Pattern struct {
	expr  string
	code  []instruction
	start int
	first *[256]bool // the bytes that a match can begin with; nil: it can begin anywhere
}

// Compile compiles an expression. An error names what is wrong or not supported.
func Compile(expr string) (*Pattern, error) {
	n, err := parse(expr)
	if err != nil {
		return nil, err
	}
	code, start, err := compile(n)
	if err != nil {
		return nil, fmt.Errorf("split expression %q: %w", clip(expr), err)
	}
	return &Pattern{expr: expr, code: code, start: start, first: firstOfAll(code, start)}, nil
}

// String returns the expression.
func (p *Pattern) String() string { return p.expr }

// A Matcher walks over the matches of a Pattern in one text. The zero value is
// ready for [Matcher.Reset]; it keeps its memory for the next text.
type Matcher struct {
	pattern *Pattern
	text    []byte
	from    int // where the next search begins
	last    int // where the last match ended, -1 before the first
	limit   int // where no match may begin any more
	choices []choice
	spent   int // steps back taken in this match
	left    int // steps back left in this text, of
	allowed int
}

// maxKeptChoices bounds the memory that is kept for the next text.
const maxKeptChoices = 4096

// A choice is a place to go back to: for opAlt the alternatives in rest are
// still to be tried at pos, for opRepeat the end can move from pos back to low.
type choice struct {
	pc, pos, low int
	rest         uint64
}

// Reset makes m ready to find the matches of p in text, which must be valid UTF-8
// and stay unchanged.
func (m *Matcher) Reset(p *Pattern, text []byte) {
	if cap(m.choices) > maxKeptChoices {
		m.choices = nil
	}
	m.pattern, m.text, m.from, m.last, m.limit = p, text, 0, -1, len(text)+1
	m.allowed = MaxBacktracks + maxBacktracksPerByte*len(text)
	m.left = m.allowed
}

// Resume is like [Matcher.Reset], but for the matches behind one that ended at
// from. They depend on the text and on that place, on nothing else, as long as the
// allowance lasts; see [Matcher.Spent].
func (m *Matcher) Resume(p *Pattern, text []byte, from int) {
	m.Reset(p, text)
	m.from, m.last = from, from
}

// Limit makes m find, until it is reset, only matches that begin before limit, and
// allows it no more steps back than that part of the text makes up for.
func (m *Matcher) Limit(limit int) {
	m.limit = limit
	m.allowed = maxBacktracksPerByte * (min(limit, len(m.text)) - m.from)
	m.left = m.allowed
}

// Spent is how many steps back were taken since the last Reset or Resume, and how
// many are allowed. If they are more, matches may be missing.
func (m *Matcher) Spent() (spent, allowed int) { return m.allowed - m.left, m.allowed }

// Next returns the bounds of the next match, leftmost first; ok is false if
// there is none. As in the reference, a match may be empty, but not where the
// last one ended.
func (m *Matcher) Next() (start, end int, ok bool) {
	first, before := m.pattern.first, min(m.limit, len(m.text))
	for pos := m.from; pos < m.limit; {
		if first != nil {
			for pos < before && !first[m.text[pos]] {
				pos++
			}
			if pos >= before {
				break
			}
		}
		m.spent, m.choices = 0, m.choices[:0]
		if end := m.run(m.pattern.start, pos); end > pos || end == pos && pos != m.last {
			m.from, m.last = end, end
			return pos, end, true
		}
		if m.left < 0 {
			break
		}
		pos++
		for pos < len(m.text) && !utf8.RuneStart(m.text[pos]) {
			pos++
		}
	}
	m.from = len(m.text) + 1
	return 0, 0, false
}

// run returns where the code at pc ends when it matches at pos, -1 if it does not.
// Choices below the ones it makes itself are left alone.
func (m *Matcher) run(pc, pos int) int {
	code, text := m.pattern.code, m.text
	base := len(m.choices)
	for {
		in := &code[pc]
		ok := true
		switch in.op {
		case opMatch:
			m.choices = m.choices[:base]
			return pos
		case opSet:
			if size := in.table.SizeAt(text, pos); size > 0 {
				pos += size
			} else {
				ok = false
			}
			pc = in.next
		case opRepeat, opTake:
			end, low := pos, pos
			n := 0
			for n != in.max && end < len(text) {
				size := 1
				if b := text[end]; b < utf8.RuneSelf { // apart, to be inlined: most text is ASCII
					if !in.table.HasByte(b) {
						break
					}
				} else if size = in.table.SizeAt(text, end); size == 0 {
					break
				}
				end += size
				if n++; n == in.min {
					low = end
				}
			}
			ok = n >= in.min
			if ok && in.op == opRepeat && end > low {
				m.choices = append(m.choices, choice{pc: pc, pos: end, low: low})
			}
			pos, pc = end, in.next
		case opAlt:
			rest := in.atEnd
			if pos < len(text) {
				rest = in.first[text[pos]]
			}
			if ok = rest != 0; ok {
				pc = m.choose(in, pc, pos, rest)
			}
		case opLook:
			ok = (m.run(in.sub, pos) >= 0) != in.not
			pc = in.next
		case opAtomic:
			if end := m.run(in.sub, pos); end >= 0 {
				pos = end
			} else {
				ok = false
			}
			pc = in.next
		case opBehind:
			r, size := utf8.DecodeLastRune(text[:pos])
			ok = (size > 0 && in.table.Has(r)) != in.not
			pc = in.next
		case opAssert:
			ok = holds(in.assert, text, pos)
			pc = in.next
		}
		if ok {
			continue
		}
		if len(m.choices) == base {
			return -1
		}
		m.spent++
		if m.left--; m.spent > MaxBacktracks || m.left < 0 {
			m.choices = m.choices[:base]
			return -1
		}
		top := &m.choices[len(m.choices)-1]
		if in := &code[top.pc]; in.op == opAlt {
			at, rest, from := top.pc, top.rest, top.pos
			m.choices = m.choices[:len(m.choices)-1]
			pos, pc = from, m.choose(in, at, from, rest)
			continue
		}
		top.pos--
		for !utf8.RuneStart(text[top.pos]) {
			top.pos--
		}
		pos, pc = top.pos, code[top.pc].next
		if top.pos == top.low {
			m.choices = m.choices[:len(m.choices)-1]
		}
	}
}

// choose takes the first alternative of rest, which is not empty, and keeps the others as a choice.
func (m *Matcher) choose(in *instruction, pc, pos int, rest uint64) int {
	k := bits.TrailingZeros64(rest)
	if rest &= rest - 1; rest != 0 {
		m.choices = append(m.choices, choice{pc: pc, pos: pos, rest: rest})
	}
	return in.alts[k]
}

var wordTable = ucd.MustNamed(ucd.RegexWord).Table()

func holds(kind assertKind, text []byte, pos int) bool {
	switch kind {
	case textStart:
		return pos == 0
	case textEnd:
		return pos == len(text)
	case textEndOrNewline:
		return pos == len(text) || pos == len(text)-1 && text[pos] == '\n'
	case lineStart:
		return pos == 0 || text[pos-1] == '\n' && pos < len(text)
	case lineEnd:
		return pos == len(text) || text[pos] == '\n'
	}
	before, size := utf8.DecodeLastRune(text[:pos])
	boundary := (size > 0 && wordTable.Has(before)) != (wordTable.SizeAt(text, pos) > 0)
	return boundary == (kind == wordBoundary)
}
