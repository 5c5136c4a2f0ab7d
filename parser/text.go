package parser

import (
	"bytes"
	"slices"
	"strings"
)

// trigger is a marker that means something in text.
type trigger struct {
	marker string
	// opens makes the machine that reads what follows; nil if the marker is no call's.
	opens func(p *Parser) machine
	// first: only at the beginning of the answer's content.
	first bool
	// means is what the marker says if it is no call's.
	means meaning
}

type meaning uint8

const (
	thoughtBegins meaning = iota + 1
	thoughtEnds
	wrapBegins // of the content that follows reasoning
	wrapEnds
)

// finder looks for markers in text. No marker is the beginning of another. It is
// not changed by use.
type finder struct {
	triggers []trigger
	starts   string // first bytes of markers, each once
}

func newFinder(triggers []trigger) *finder {
	f := &finder{triggers: triggers}
	var starts []byte
	for _, t := range triggers {
		if !slices.Contains(starts, t.marker[0]) {
			starts = append(starts, t.marker[0])
		}
	}
	f.starts = string(starts)
	return f
}

// next returns where in text the first byte of a marker stands, or len(text).
func (f *finder) next(text []byte) int {
	at := len(text)
	for i := range len(f.starts) {
		if j := bytes.IndexByte(text[:at], f.starts[i]); j >= 0 {
			at = j
		}
	}
	return at
}

// match returns the marker that text is, or -1, and whether text is the beginning of one.
func (f *finder) match(text []byte) (at int, begins bool) {
	for i, t := range f.triggers {
		if len(text) > len(t.marker) || t.marker[:len(text)] != string(text) {
			continue
		}
		if len(text) == len(t.marker) {
			return i, true
		}
		begins = true
	}
	return -1, begins
}

// The situations of text, each with the markers that count in it.
const (
	contentStart = iota // nothing of it was said yet
	inContent
	inContentUnclosed // a call ended the reasoning before it, whose end may still come
	reasoningStart
	inReasoning
)

// arm makes the finders for the parser's formats.
func (p *Parser) arm() {
	var calls, open, close, wraps, unwraps []trigger
	switch tool := p.opt.Tool; {
	case p.opt.Named != "":
		calls = append(calls, trigger{marker: "{", first: true, opens: newNamedArguments})
	case tool != nil:
		calls = tool.triggers
	}
	if r := p.opt.Reasoning; r != nil {
		for _, marker := range r.opens {
			open = append(open, trigger{marker: marker, means: thoughtBegins})
		}
		for _, marker := range r.closes {
			close = append(close, trigger{marker: marker, means: thoughtEnds})
		}
		for _, wrap := range r.wraps {
			wraps = append(wraps, trigger{marker: wrap[0], means: wrapBegins})
			unwraps = append(unwraps, trigger{marker: wrap[1], means: wrapEnds})
		}
	}
	p.finders[contentStart] = newFinder(slices.Concat(open, close, wraps, unwraps, calls))
	calls = slices.DeleteFunc(slices.Clone(calls), func(t trigger) bool { return t.first })
	p.finders[inContent] = newFinder(slices.Concat(unwraps, calls))
	p.finders[inContentUnclosed] = newFinder(slices.Concat(close, calls))
	p.finders[reasoningStart] = newFinder(slices.Concat(open, close, calls))
	p.finders[inReasoning] = newFinder(slices.Concat(close, calls))
}

func (p *Parser) finder() *finder {
	switch {
	case p.thinking && p.blank:
		return p.finders[reasoningStart]
	case p.thinking:
		return p.finders[inReasoning]
	case p.unclosed:
		return p.finders[inContentUnclosed]
	case !p.spoken && p.calls == 0:
		return p.finders[contentStart]
	}
	return p.finders[inContent]
}

// readText reads text up to a marker, and returns what is left. Text that may be
// the beginning of a marker is kept in p.got.
func (p *Parser) readText(text []byte) []byte {
	if p.fresh && !space(text[0]) {
		p.fresh = false
		if p.opt.Constrained && strings.IndexByte(`{["0123456789`, text[0]) >= 0 {
			p.thinking = false
		}
	}
	if len(p.got) == 0 {
		if n := p.plain(text); n > 0 {
			p.say(text[:n])
			return text[n:]
		}
	}
	p.got = append(p.got, text[0])
	for len(p.got) > 0 {
		f := p.finder()
		at, begins := f.match(p.got)
		if at >= 0 {
			p.held = append(p.held[:0], p.got...)
			p.got = p.got[:0]
			p.fire(f.triggers[at])
			break
		}
		if begins {
			break
		}
		p.say(p.got[:1])
		p.got = append(p.got[:0], p.got[1:]...)
	}
	return text[1:]
}

// plain returns how much of text is certainly no marker. At a beginning the markers
// that count change with the first byte that is said, so no more than that is.
func (p *Parser) plain(text []byte) int {
	f := p.finder()
	if f != p.finders[contentStart] && f != p.finders[reasoningStart] {
		return f.next(text)
	}
	n := 0
	for n < len(text) && space(text[n]) {
		n++
	}
	if n == 0 && f.next(text[:1]) > 0 {
		n = 1
	}
	return n
}

// fire does what a marker asks for, which is held as long as it may be text.
func (p *Parser) fire(t trigger) {
	switch {
	case t.opens != nil && p.calls < maxCalls:
		p.machine = t.opens(p)
		return
	case t.opens != nil || t.means == wrapEnds && !p.wrapped:
		p.say(p.held) // a text like any other
		p.held = p.held[:0]
		return
	}
	p.held = p.held[:0]
	switch t.means {
	case thoughtBegins:
		p.thinking, p.thought = true, true
	case thoughtEnds:
		p.thinking, p.unclosed, p.thought = false, false, true
	case wrapBegins:
		p.wrapped = true
	case wrapEnds:
		p.wrapped = false
	}
	p.rest()
}
