package parser

import (
	"slices"
	"strings"
)

// named reads calls of which the name stands before the arguments, between
// markers: what stands between the beginning of a call and the separator is its
// head, what follows up to the first brace its middle.
type named struct {
	spec *namedSpec

	state namedState
	want  expect
	from  int // where in held the head or the middle begins
	head  string
	raw   jsonText
}

type namedSpec struct {
	begins, separators, ends, closes []string
	bare                             bool // the arguments may follow the name with no separator
	// name finds the name and the id in head and middle.
	name func(head, middle string) (name, id string)
}

type namedState uint8

const (
	inSection namedState = iota
	inHead
	inMiddle
	inNamedArguments
)

// section returns what reads on behind a marker that opens a section of calls.
func (spec *namedSpec) section(*Parser) machine { return &named{spec: spec} }

// call returns what reads on behind a marker that opens a call.
func (spec *namedSpec) call(p *Parser) machine {
	return &named{spec: spec, state: inHead, from: len(p.held)}
}

func (n *named) finish(*Parser) {}

func (n *named) next(p *Parser, c byte) verdict {
	switch n.state {
	case inHead:
		return n.readHead(p, c)
	case inMiddle:
		return n.readMiddle(p, c)
	case inNamedArguments:
		closed, taken := n.raw.flow(p, c)
		if !closed {
			return more
		}
		n.state = inSection
		if taken {
			if len(n.spec.closes)+len(n.spec.ends) == 0 {
				return done
			}
			return more
		}
	}
	return n.between(p, c)
}

// between reads the markers that separate calls. The fences of code blocks are layout.
func (n *named) between(p *Parser, c byte) verdict {
	if len(n.want.got) == 0 {
		if space(c) || p.after && c == '`' {
			return more
		}
		if p.after && (c == '}' || c == ']') {
			p.drop()
			return more
		}
		if n.want.markers == nil {
			n.want.markers = append(append(append(n.want.markers, n.spec.begins...), n.spec.ends...), n.spec.closes...)
		}
	}
	at, possible := n.want.next(c)
	begins, ends := len(n.spec.begins), len(n.spec.ends)
	switch {
	case !possible:
		return fail
	case at < 0:
	case at < begins:
		p.after = false
		n.state, n.from = inHead, len(p.held)
	case !p.after: // an end with no call before it
		return fail
	case at < begins+ends:
		p.drop()
	default:
		return done
	}
	return more
}

func (n *named) readHead(p *Parser, c byte) verdict {
	text := p.held[n.from:]
	if n.spec.bare && c == '{' {
		n.head = string(text[:len(text)-1])
		return n.openArguments(p, "")
	}
	for _, separator := range n.spec.separators {
		if endsWith(text, separator) {
			n.head = string(text)
			if separator != callIDMarker {
				n.head = strings.TrimSuffix(n.head, separator)
			}
			n.state, n.from = inMiddle, len(p.held)
			return more
		}
	}
	if len(text) > MaxName+64 || slices.ContainsFunc(n.spec.ends, func(end string) bool { return endsWith(text, end) }) {
		return fail
	}
	return more
}

func (n *named) readMiddle(p *Parser, c byte) verdict {
	text := p.held[n.from:]
	if c == '{' {
		return n.openArguments(p, string(text[:len(text)-1]))
	}
	for _, end := range n.spec.ends {
		if endsWith(text, end) {
			name, id := n.spec.name(n.head, string(text[:len(text)-len(end)]))
			if !p.begin(name, id, false) {
				return fail
			}
			p.argue([]byte("{}"))
			p.close()
			n.state = inSection
			return more
		}
	}
	if len(text) > MaxName+64 {
		return fail
	}
	return more
}

func (n *named) openArguments(p *Parser, middle string) verdict {
	name, id := n.spec.name(n.head, middle)
	if !p.begin(name, id, false) {
		return fail
	}
	n.state, n.raw = inNamedArguments, jsonText{depth: 1}
	p.argue([]byte{'{'})
	return more
}

// namedArguments reads the arguments of the tool that the request chose.
type namedArguments struct{ raw jsonText }

func newNamedArguments(p *Parser) machine {
	if !p.begin(p.opt.Named, "", false) {
		return &namedArguments{}
	}
	p.argue([]byte{'{'})
	return &namedArguments{raw: jsonText{depth: 1}}
}

func (n *namedArguments) finish(*Parser) {}

func (n *namedArguments) next(p *Parser, c byte) verdict {
	if !p.open {
		return fail
	}
	closed, taken := n.raw.flow(p, c)
	switch {
	case !taken:
		return fail
	case closed:
		return done
	}
	return more
}

// mistral reads what follows [TOOL_CALLS]: a JSON list up to tokenizer version 7,
// a name and its arguments from version 11 on.
type mistral struct{}

func (mistral) finish(*Parser) {}

func (mistral) next(p *Parser, c byte) verdict {
	switch {
	case space(c):
		return more
	case c == '[' || c == '{':
		p.machine = &objects{}
	default:
		n := &named{spec: mistralSpec, state: inHead, from: len(p.held) - 1}
		p.machine = n
	}
	return p.machine.next(p, c)
}

const callIDMarker = "[CALL_ID]"

var mistralSpec = &namedSpec{
	separators: []string{"[ARGS]", callIDMarker},
	bare:       true,
	name: func(head, middle string) (name, id string) {
		middle = strings.TrimSpace(middle)
		if name, isID := strings.CutSuffix(head, callIDMarker); isID {
			return strings.TrimSpace(name), strings.TrimSuffix(middle, "[ARGS]")
		}
		if middle != "" {
			return "", ""
		}
		return strings.TrimSpace(head), ""
	},
}

// deepseekSpec serves V3 and R1, whose head is the word function and whose
// middle is the name and the opening of a code block, and V3.1, whose head is the name.
var deepseekSpec = &namedSpec{
	begins:     []string{"<｜tool▁call▁begin｜>"},
	separators: []string{"<｜tool▁sep｜>"},
	ends:       []string{"<｜tool▁call▁end｜>"},
	closes:     []string{"<｜tool▁calls▁end｜>"},
	name: func(head, middle string) (name, id string) {
		head, middle = strings.TrimSpace(head), strings.TrimSpace(middle)
		if middle == "" || strings.HasPrefix(middle, "```") {
			return head, ""
		}
		name, _, _ = strings.Cut(middle, "\n")
		return strings.TrimSpace(name), ""
	},
}

// kimiSpec: the head is the id, functions.NAME:INDEX.
var kimiSpec = &namedSpec{
	begins:     []string{"<|tool_call_begin|>"},
	separators: []string{"<|tool_call_argument_begin|>"},
	ends:       []string{"<|tool_call_end|>"},
	closes:     []string{"<|tool_calls_section_end|>", "<|tool_call_section_end|>"},
	name: func(head, middle string) (name, id string) {
		id = strings.TrimSpace(head)
		if strings.TrimSpace(middle) != "" {
			return "", ""
		}
		name = strings.TrimPrefix(id, "functions.")
		if at := strings.LastIndexByte(name, ':'); at >= 0 {
			name = name[:at]
		}
		return name, id
	},
}
