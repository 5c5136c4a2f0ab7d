package pattern

import (
	"errors"
	"fmt"
	"slices"

	"baton/tokenizer/ucd"
)

// Limits of a compiled expression. A repeat of a group is written out so many
// times, and each class has a table of some 10 kB.
const (
	maxInstructions = 2_000
	maxTables       = 128
)

type opcode uint8

const (
	opMatch  opcode = iota // the (sub)program has matched
	opSet                  // one character of set
	opRepeat               // min to max characters of set, as many as possible, fewer if the rest asks for it
	opTake                 // the same, but never fewer: possessive
	opAlt                  // each of alts in order
	opLook                 // run sub here; not: it must fail
	opBehind               // look at the character before
	opAtomic               // run sub and go on where it ended
	opAssert
)

// An instruction's set has two forms: set for the analysis here, table for the matcher.
type instruction struct {
	op       opcode
	not      bool
	assert   assertKind
	next     int // where to go on
	sub      int
	min, max int
	set      ucd.Set
	table    *ucd.Table
	alts     []int
	// first[b] has bit i set if alts[i] can match at a byte b; atEnd likewise at the end of the text.
	first *[256]uint64
	atEnd uint64
}

// maxAlternatives is how many alternatives one instruction can have: the bits of first.
const maxAlternatives = 64

type compiler struct {
	code     []instruction
	tables   map[string]*ucd.Table
	sameSets map[setID]*ucd.Table
}

// A setID is equal only for one and the same set.
type setID struct {
	first *ucd.Range
	size  int
}

var errTooBig = fmt.Errorf("it compiles to more than %d instructions", maxInstructions)
var errTooManyTables = fmt.Errorf("it has more than %d different classes", maxTables)
var errEmptyLoop = errors.New("an unbounded repeat of a group that can match nothing is not supported")

func compile(n *node) (code []instruction, start int, err error) {
	c := &compiler{code: []instruction{{op: opMatch}}, tables: map[string]*ucd.Table{}, sameSets: map[setID]*ucd.Table{}}
	if start, err = c.emit(n, 0); err != nil {
		return nil, 0, err
	}
	if len(c.tables) > maxTables {
		return nil, 0, errTooManyTables
	}
	c.optimize()
	return c.code, start, nil
}

func (c *compiler) add(in instruction) (int, error) {
	if len(c.code) >= maxInstructions {
		return 0, errTooBig
	}
	c.code = append(c.code, in)
	return len(c.code) - 1, nil
}

// emit appends the code of n, which goes on at next, and returns where it begins.
// Code is written back to front, so only loops refer to what comes later.
func (c *compiler) emit(n *node, next int) (int, error) {
	var err error
	switch n.kind {
	case nodeSet:
		return c.add(instruction{op: opSet, set: n.set, table: c.table(n.set), next: next})
	case nodeSeq:
		for _, sub := range slices.Backward(n.subs) {
			if next, err = c.emit(sub, next); err != nil {
				return 0, err
			}
		}
		return next, nil
	case nodeAlt:
		return c.emitAlternatives(n.subs, next)
	case nodeRepeat:
		return c.emitRepeat(n, next)
	case nodeLook, nodeAtomic:
		if n.kind == nodeAtomic {
			if sub := n.subs[0]; sub.kind == nodeRepeat && sub.subs[0].kind == nodeSet && !sub.lazy {
				set := sub.subs[0].set
				return c.add(instruction{op: opTake, set: set, table: c.table(set), min: sub.min, max: sub.max, next: next})
			}
		}
		sub, err := c.emit(n.subs[0], 0)
		if err != nil {
			return 0, err
		}
		op := opLook
		if n.kind == nodeAtomic {
			op = opAtomic
		}
		return c.add(instruction{op: op, not: n.not, sub: sub, next: next})
	case nodeBehind:
		return c.add(instruction{op: opBehind, not: n.not, table: c.table(n.set), next: next})
	default:
		return c.add(instruction{op: opAssert, assert: n.assert, next: next})
	}
}

func (c *compiler) emitAlternatives(subs []*node, next int) (int, error) {
	if len(subs) > maxAlternatives { // the last one becomes all the others
		rest := &node{kind: nodeAlt, subs: subs[maxAlternatives-1:]}
		subs = append(slices.Clone(subs[:maxAlternatives-1]), rest)
	}
	var alts []int
	for _, sub := range subs {
		at, err := c.emit(sub, next)
		if err != nil {
			return 0, err
		}
		alts = append(alts, at)
	}
	return c.add(instruction{op: opAlt, alts: alts})
}

func (c *compiler) emitRepeat(n *node, next int) (int, error) {
	body := n.subs[0]
	for body.kind == nodeSeq && len(body.subs) == 1 {
		body = body.subs[0]
	}
	if body.kind == nodeSet && !n.lazy {
		return c.add(instruction{op: opRepeat, set: body.set, table: c.table(body.set), min: n.min, max: n.max, next: next})
	}
	either := func(in, out int) []int { // the order is the preference
		if n.lazy {
			return []int{out, in}
		}
		return []int{in, out}
	}
	var err error
	if n.max < 0 {
		if canBeEmpty(body) {
			return 0, errEmptyLoop
		}
		loop, err := c.add(instruction{op: opAlt})
		if err != nil {
			return 0, err
		}
		in, err := c.emit(body, loop)
		if err != nil {
			return 0, err
		}
		c.code[loop].alts = either(in, next)
		next = loop
	} else {
		out := next
		for range n.max - n.min {
			in, err := c.emit(body, next)
			if err != nil {
				return 0, err
			}
			if next, err = c.add(instruction{op: opAlt, alts: either(in, out)}); err != nil {
				return 0, err
			}
		}
	}
	for range n.min {
		out := next
		if next, err = c.emit(body, next); err != nil {
			return 0, err
		}
		if next == out {
			break // an empty body needs no repeat
		}
	}
	return next, nil
}

// table returns the table of s; equal sets share one.
func (c *compiler) table(s ucd.Set) *ucd.Table {
	var same setID // most equal sets are the very same
	if len(s) > 0 {
		same = setID{&s[0], len(s)}
	}
	if t := c.sameSets[same]; t != nil {
		return t
	}
	key := fmt.Sprint(s)
	if c.tables[key] == nil {
		if len(c.tables) > maxTables { // compile will say so
			return nil
		}
		c.tables[key] = s.Table()
	}
	c.sameSets[same] = c.tables[key]
	return c.tables[key]
}

func canBeEmpty(n *node) bool {
	switch n.kind {
	case nodeSet:
		return false
	case nodeSeq:
		return !slices.ContainsFunc(n.subs, func(s *node) bool { return !canBeEmpty(s) })
	case nodeAlt:
		return slices.ContainsFunc(n.subs, canBeEmpty)
	case nodeRepeat:
		return n.min == 0 || canBeEmpty(n.subs[0])
	case nodeAtomic:
		return canBeEmpty(n.subs[0])
	default:
		return true
	}
}

// optimize works out which bytes each alternative can begin with, and turns
// repeats that can never usefully give a character back into possessive ones.
func (c *compiler) optimize() {
	for i := range c.code {
		in := &c.code[i]
		if in.op == opRepeat && c.neverBeginsIn(in.next, in.set) {
			in.op = opTake
		}
		if in.op != opAlt {
			continue
		}
		in.first = new([256]uint64)
		for k, alt := range in.alts {
			var f firstBytes
			c.firstOf(alt, &f)
			for b := range in.first {
				if f.any || f.bytes[b] {
					in.first[b] |= 1 << k
				}
			}
			if f.any {
				in.atEnd |= 1 << k
			}
		}
	}
}

// neverBeginsIn tells whether the code at pc certainly fails at any character of set.
func (c *compiler) neverBeginsIn(pc int, set ucd.Set) bool {
	switch in := &c.code[pc]; {
	case in.op == opMatch:
		return true // it matches with all of them: none is ever asked back
	case in.op == opSet, (in.op == opRepeat || in.op == opTake) && in.min > 0:
		return len(in.set.And(set)) == 0
	}
	return false
}

// firstBytes is a safe guess at how a piece of code can begin.
type firstBytes struct {
	bytes  [256]bool
	any    bool // anything can come, the end of the text too
	visits int  // instructions looked at
}

// maxFirstVisits bounds the walk of firstOf; beyond it anything can come.
const maxFirstVisits = 200

func (c *compiler) firstOf(pc int, f *firstBytes) {
	if f.visits++; f.any || f.visits > maxFirstVisits {
		f.any = true
		return
	}
	switch in := &c.code[pc]; in.op {
	case opSet:
		f.addSet(in.set)
	case opRepeat, opTake:
		if in.max == 0 {
			f.any = true
			return
		}
		f.addSet(in.set)
		if in.min == 0 {
			c.firstOf(in.next, f)
		}
	case opAlt:
		for _, alt := range in.alts {
			c.firstOf(alt, f)
		}
	case opMatch:
		f.any = true
	default: // zero width, or atomic: what follows is more than enough to know
		f.any = true
	}
}

// firstOfAll returns the bytes that a match of the whole code can begin with,
// nil if that can be any or none.
func firstOfAll(code []instruction, start int) *[256]bool {
	c := compiler{code: code}
	var f firstBytes
	if c.firstOf(start, &f); f.any {
		return nil
	}
	return &f.bytes
}

func (f *firstBytes) addSet(s ucd.Set) {
	for _, r := range s {
		for b := r.Lo; b <= min(r.Hi, 0x7F); b++ {
			f.bytes[b] = true
		}
		if r.Hi >= 0x80 {
			for b := leadByte(max(r.Lo, 0x80)); b <= leadByte(r.Hi); b++ {
				f.bytes[b] = true
			}
		}
	}
}

// leadByte is the first byte of the UTF-8 form of r, which is at least U+0080.
func leadByte(r rune) int {
	switch {
	case r < 0x800:
		return int(0xC0 | r>>6)
	case r < 0x10000:
		return int(0xE0 | r>>12)
	default:
		return int(0xF0 | r>>18)
	}
}
