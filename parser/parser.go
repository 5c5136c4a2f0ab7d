package parser

import (
	"encoding/json"
	"strings"
)

// Limits. A text that goes beyond one is not refused, it is given out as text.
const (
	// MaxCalls is how many calls one answer can have.
	MaxCalls = 128
	// MaxHeld is how many bytes are held back until it is clear whether they are
	// a call.
	MaxHeld = 1 << 20
	// MaxName is the length of a tool's name, in bytes.
	MaxName = 256
	// MaxDepth is how deep Python values can be nested.
	MaxDepth = 128

	maxBlank = 256 // bytes of white space that are held back as layout
)

// Kind says what an [Event] carries.
type Kind uint8

const (
	Content   Kind = iota // text for people
	Reasoning             // text that the model wrote for itself
	Call                  // a call begins: Index, Name, and ID if the model gave it one
	Arguments             // more of the arguments of call Index, as JSON text
)

// Event is a piece of an answer.
type Event struct {
	Kind Kind

	// Text is what to append, valid until the next call of Feed or Finish. It is
	// cut where the input was cut: at whole characters if that is.
	Text []byte

	// Index counts the calls of the answer from 0.
	Index int

	// Name is the tool's name, of a Call.
	Name string

	// ID is the id that the model wrote, of a Call; "" in most formats, where the
	// caller makes one. Kimi K2 must find its own again in the next turn.
	ID string
}

// Tool is a tool that a request offers.
type Tool struct {
	Name string
	// Parameters is the JSON schema of the arguments. Formats that write arguments
	// without types (qwen3_coder, glm45, minimax_m2, seed_oss) need it.
	Parameters json.RawMessage
}

// Options say how to read one answer.
type Options struct {
	// Tool is the format of calls, nil if the request has none (no tools, or
	// tool_choice none).
	Tool *Format

	// Reasoning is the format of reasoning, nil to leave it in the text.
	Reasoning *Format

	// Tools are those of the request. Without any, every name is known.
	Tools []Tool

	// PromptTail is the end of the rendered prompt (the last 100 bytes do): a template can
	// open the reasoning itself, or close it again when thinking is off.
	PromptTail string

	// Prefill is the part of the answer that the prompt already holds, when the
	// request continues its last message.
	Prefill string

	// Parallel is false if the request wants one call at most; then those after
	// the first are dropped.
	Parallel bool

	// Named is the tool whose arguments are all that the model can write, because
	// guided decoding was told so (tool_choice with a function's name). Tool is
	// ignored then; reasoning before it is found.
	Named string

	// Constrained: the answer is JSON because the engine was told so. Engines enforce
	// that from the first token on, or after the reasoning: if the prompt opens a
	// thought and the answer begins as JSON does, it is none.
	Constrained bool
}

// Parser reads one answer. It is used by one goroutine.
type Parser struct {
	opt   Options
	emit  func(Event)
	known map[string]json.RawMessage

	machine  machine // reads what stands behind a marker; nil in text
	finders  [4]*finder
	got      []byte // text that may be the beginning of a marker
	thinking bool   // inside reasoning
	spoken   bool   // some text of the answer's content was given
	thought  bool   // reasoning was seen
	blank    bool   // of this stretch of text only white space was seen
	gap      []byte // which is this

	held  []byte // behind a marker: what is text if this is no call
	after bool   // held is what follows a call: its end, not the beginning of another
	open  bool   // a call is open, its arguments flow
	calls int

	scratch []byte

	out     []byte // what this Feed gives out, outFrom on still to be emitted
	outFrom int
	outKind Kind
	outCall int
}

// New returns a parser for one answer.
func New(opt Options) *Parser {
	p := &Parser{opt: opt, blank: true}
	if len(opt.Tools) > 0 {
		p.known = make(map[string]json.RawMessage, len(opt.Tools))
		for _, tool := range opt.Tools {
			p.known[tool.Name] = tool.Parameters
		}
	}
	if opt.Tool.speaksHarmony() || opt.Reasoning.speaksHarmony() {
		p.machine = newHarmony(opt)
		return p
	}
	p.thinking = opt.Reasoning.thinks(opt.PromptTail, opt.Prefill)
	p.spoken = !p.thinking && strings.TrimSpace(opt.Prefill) != ""
	p.arm()
	return p
}

// Calls returns how many calls have begun: with one or more, an answer that ended
// by itself has the finish reason tool_calls.
func (p *Parser) Calls() int {
	if !p.opt.Parallel {
		return min(p.calls, 1)
	}
	return p.calls
}

// Feed reads more of the answer and gives out what is certain.
func (p *Parser) Feed(text []byte, emit func(Event)) {
	p.start(emit)
	for len(text) > 0 {
		if p.machine == nil {
			text = p.readText(text)
		} else if p.step(text[0]) {
			text = text[1:]
		}
	}
	p.flush()
}

// Finish ends the answer, whatever the reason: what was held back because it
// could have become a call is text now.
func (p *Parser) Finish(emit func(Event)) {
	p.start(emit)
	if p.machine != nil {
		p.machine.finish(p)
		if p.after {
			p.held = p.held[:0] // a call's end, cut off
		}
	}
	p.machine = nil
	p.say(p.held)
	p.say(p.got)
	p.held, p.got = p.held[:0], p.got[:0]
	if !p.thought && p.calls == 0 {
		p.give(p.kind(), 0, p.gap)
	}
	p.gap = p.gap[:0]
	p.flush()
}

func (p *Parser) start(emit func(Event)) {
	p.emit = emit
	p.out, p.outFrom = p.out[:0], 0
}

// verdict is what a machine says of a byte.
type verdict uint8

const (
	more verdict = iota // taken, and the machine goes on
	done                // taken, and all is complete
	fail                // not taken: what is held is text, and this byte is read as text
)

// machine reads what stands behind a marker.
type machine interface {
	next(p *Parser, c byte) verdict
	// finish is called when the answer ends inside.
	finish(p *Parser)
}

// step gives the machine a byte, and reports whether it was taken.
func (p *Parser) step(c byte) bool {
	before := len(p.held)
	if !p.open {
		p.held = append(p.held, c)
	}
	switch p.machine.next(p, c) {
	case done:
		p.machine, p.open, p.after = nil, false, false
		p.held = p.held[:0]
		p.rest()
		return true
	case fail:
		if len(p.held) > before {
			p.held = p.held[:len(p.held)-1]
		}
		p.machine, p.open, p.after = nil, false, false
		p.release()
		return false
	}
	if len(p.held) > MaxHeld {
		p.machine, p.after = nil, false
		p.release()
	}
	return true
}

// rest begins a new stretch of text.
func (p *Parser) rest() {
	p.blank = true
	p.gap = p.gap[:0]
}

// drop forgets what is held, the byte that is being read included: it was a
// call's syntax.
func (p *Parser) drop() { p.held = p.held[:0] }

// release gives out what is held as text, but for its end if that may be the
// beginning of a marker.
func (p *Parser) release() {
	from := len(p.held) - p.finder().overlap(p.held)
	p.say(p.held[:from])
	p.got = append(p.got[:0], p.held[from:]...)
	p.held = p.held[:0]
}

// begin opens a call if its name is one that may be called, and reports whether
// it did. strict asks for a name that the request has.
func (p *Parser) begin(name, id string, strict bool) bool {
	if !Callable(name) || p.calls >= MaxCalls {
		return false
	}
	if _, known := p.known[name]; !known && p.known != nil && (strict || p.thinking) {
		return false
	}
	p.open, p.after = true, false
	p.held = p.held[:0]
	p.rest()
	p.flush()
	if p.opt.Parallel || p.calls == 0 {
		p.emit(Event{Kind: Call, Index: p.calls, Name: name, ID: id})
	}
	p.calls++
	return true
}

// close ends the arguments of the call that is open; what is held from now on is
// its end.
func (p *Parser) close() {
	p.open, p.after = false, true
	p.held = p.held[:0]
}

// argue gives out more of the open call's arguments.
func (p *Parser) argue(text []byte) {
	if p.opt.Parallel || p.calls == 1 {
		p.give(Arguments, p.calls-1, text)
	}
}

func (p *Parser) kind() Kind {
	if p.thinking {
		return Reasoning
	}
	return Content
}

// say gives out text, of which the white space at the beginning is held back
// until something follows.
func (p *Parser) say(text []byte) {
	if p.blank && len(text) > 0 {
		i := 0
		for i < len(text) && space(text[i]) {
			i++
		}
		p.gap = append(p.gap, text[:i]...)
		if i == len(text) && len(p.gap) <= maxBlank {
			return
		}
		text = text[i:]
		p.blank = false
		p.give(p.kind(), 0, p.gap)
		p.gap = p.gap[:0]
	}
	if len(text) == 0 {
		return
	}
	p.give(p.kind(), 0, text)
	if !p.thinking {
		p.spoken = true
	}
}

// give adds to the text that is to be given out.
func (p *Parser) give(kind Kind, call int, text []byte) {
	if len(text) == 0 {
		return
	}
	if kind != p.outKind || call != p.outCall {
		p.flush()
		p.outKind, p.outCall = kind, call
	}
	p.out = append(p.out, text...)
}

func (p *Parser) flush() {
	if text := p.out[p.outFrom:]; len(text) > 0 {
		p.outFrom = len(p.out)
		p.emit(Event{Kind: p.outKind, Index: p.outCall, Text: text})
	}
}

func space(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// Callable reports whether name can be the name of a tool. Names are seen with
// dots and colons in them (namespaces), but not with white space or brackets.
func Callable(name string) bool {
	if name == "" || len(name) > MaxName {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 0x80, c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '_', c == '-', c == '.', c == ':', c == '/':
		default:
			return false
		}
	}
	return true
}
