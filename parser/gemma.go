package parser

import (
	"strings"

	"baton/jsonbytes"
)

// gemma reads calls as Gemma writes them: call:NAME{KEY:VALUE,...}, where a string
// stands between two of its own marks, with nothing escaped inside.
type gemma struct {
	mark, close string

	state gemmaState
	name  []byte
	value pythonValue // all else is as in Python
	got   []byte      // what may be a mark
	raw   bool        // between two marks
	end   expect
}

type gemmaState uint8

const (
	inGemmaName gemmaState = iota
	inGemmaArguments
	behindGemma
)

func gemmaCall(marker, mark, close string) trigger {
	return trigger{marker: marker, opens: func(*Parser) machine { return &gemma{mark: mark, close: close} }}
}

func (g *gemma) next(p *Parser, c byte) verdict {
	switch g.state {
	case inGemmaName:
		return g.readName(p, c)
	case inGemmaArguments:
		return g.readArguments(p, c)
	}
	if len(g.end.got) == 0 {
		if space(c) {
			return more
		}
		g.end.markers = append(g.end.markers[:0], g.close)
	}
	return g.end.end(c)
}

func (g *gemma) readName(p *Parser, c byte) verdict {
	if c != '{' {
		if g.name = append(g.name, c); len(g.name) > MaxName+8 {
			return fail
		}
		return more
	}
	// Gemma 4 is seen to forget the word call, not the colon.
	name, isCall := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(string(g.name)), "call"), ":")
	if !isCall || !p.begin(name, "", false) {
		return fail
	}
	g.state = inGemmaArguments
	return g.readArguments(p, c)
}

func (g *gemma) readArguments(p *Parser, c byte) verdict {
	p.scratch = p.scratch[:0]
	g.got = append(g.got, c)
	for len(g.got) > 0 {
		if begins := len(g.got) <= len(g.mark) && g.mark[:len(g.got)] == string(g.got); begins {
			if len(g.got) == len(g.mark) && !g.quote(p) {
				return g.abandon(p)
			}
			break
		}
		if !g.take(p, g.got[0]) {
			return g.abandon(p)
		}
		g.got = append(g.got[:0], g.got[1:]...)
	}
	p.argue(p.scratch)
	if g.value.complete() {
		p.close()
		g.state = behindGemma
	}
	return more
}

// quote begins or ends a string, and reports whether there can be one.
func (g *gemma) quote(p *Parser) bool {
	g.got = g.got[:0]
	if !g.raw && (g.value.ready || len(g.value.word) > 0) {
		g.got = append(g.got, g.mark...)
		return false
	}
	if g.raw = !g.raw; g.raw {
		p.scratch = g.value.separator(p.scratch)
	}
	g.value.ready = !g.raw
	p.scratch = append(p.scratch, '"')
	return true
}

// take adds a byte to the arguments, in p.scratch, and reports whether it fits.
func (g *gemma) take(p *Parser, c byte) bool {
	if g.raw {
		p.scratch = jsonbytes.AppendEscaped(p.scratch, c)
		return true
	}
	var v verdict
	p.scratch, v = g.value.next(p.scratch, c)
	return v != fail
}

// abandon ends a call that goes on as none does; what it has of arguments is whole
// if the last one is.
func (g *gemma) abandon(p *Parser) verdict {
	if !g.raw {
		p.scratch = g.value.appendCut(p.scratch)
		if g.value.ready && string(g.value.stack) == ":" {
			p.scratch = append(p.scratch, '}')
		}
	}
	p.argue(p.scratch)
	p.close()
	p.held = append(p.held, g.got...) // the byte that did not fit at its end
	return fail
}

// finish gives out the value that is being read, as far as it was.
func (g *gemma) finish(p *Parser) {
	if !p.open {
		return
	}
	p.scratch = p.scratch[:0]
	if g.raw {
		p.scratch = appendAllEscaped(p.scratch, g.got)
	} else {
		p.scratch = g.value.appendCut(p.scratch)
	}
	p.argue(p.scratch)
}
