package parser

import (
	"bytes"
	"slices"
)

// trigger is a marker that means something in text.
type trigger struct {
	marker string
	// opens makes the machine that reads what follows; nil if the marker belongs
	// to reasoning.
	opens func(p *Parser) machine
	// think is what becomes of "inside reasoning" if opens is nil.
	think bool
	// first: only at the beginning of the answer's content.
	first bool
}

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

// overlap returns the length of the longest end of text that is the beginning
// of a marker, but not all of it.
func (f *finder) overlap(text []byte) int {
	longest := 0
	for _, t := range f.triggers {
		for n := min(len(t.marker)-1, len(text)); n > longest; n-- {
			if t.marker[:n] == string(text[len(text)-n:]) {
				longest = n
			}
		}
	}
	return longest
}

// The four situations of text, each with the markers that count in it.
const (
	beginning  = iota // of the content, nothing said yet
	speaking          // in the content
	pondering         // at the beginning of a stretch of reasoning
	ruminating        // in reasoning
)

// arm makes the finders for the parser's formats.
func (p *Parser) arm() {
	var calls, open, close []trigger
	switch tool := p.opt.Tool; {
	case p.opt.Named != "":
		calls = append(calls, trigger{marker: "{", first: true, opens: newNamedArguments})
	case tool != nil:
		calls = tool.triggers
	}
	if r := p.opt.Reasoning; r != nil {
		for _, marker := range r.opens {
			open = append(open, trigger{marker: marker, think: true, first: true})
		}
		for _, marker := range r.closes {
			close = append(close, trigger{marker: marker})
		}
	}
	p.finders[beginning] = newFinder(slices.Concat(open, close, calls))
	calls = slices.DeleteFunc(slices.Clone(calls), func(t trigger) bool { return t.first })
	p.finders[speaking] = newFinder(calls)
	p.finders[pondering] = newFinder(slices.Concat(open, close, calls))
	p.finders[ruminating] = newFinder(slices.Concat(close, calls))
}

func (p *Parser) finder() *finder {
	switch {
	case p.thinking && p.blank:
		return p.finders[pondering]
	case p.thinking:
		return p.finders[ruminating]
	case !p.spoken && p.calls == 0:
		return p.finders[beginning]
	}
	return p.finders[speaking]
}

// readText reads text up to a marker, and returns what is left. Text that may be
// the beginning of a marker is kept in p.got.
func (p *Parser) readText(text []byte) []byte {
	f := p.finder()
	if len(p.got) == 0 {
		// At the beginning the markers that count change with the first byte of
		// text, and a marker that counts only there must not be found behind it.
		n := 0
		if f == p.finders[beginning] || f == p.finders[pondering] {
			for n < len(text) && space(text[n]) {
				n++
			}
			if n == 0 && f.next(text[:1]) > 0 {
				n = 1
			}
		} else {
			n = f.next(text)
		}
		if n > 0 {
			p.say(text[:n])
			return text[n:]
		}
	}
	p.got = append(p.got, text[0])
	for len(p.got) > 0 {
		f := p.finder()
		at, begins := f.match(p.got)
		if at >= 0 {
			marker := f.triggers[at]
			p.held = append(p.held[:0], p.got...)
			p.got = p.got[:0]
			p.fire(marker)
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

// fire does what a marker asks for, which is held as long as it may be text.
func (p *Parser) fire(t trigger) {
	if t.opens != nil {
		if p.calls < MaxCalls {
			p.machine = t.opens(p)
		} else {
			p.release()
		}
		return
	}
	p.held = p.held[:0]
	p.thinking, p.thought = t.think, true
	p.rest()
}
