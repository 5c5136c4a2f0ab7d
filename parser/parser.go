package parser

import (
	"encoding/json"
	"strings"
)

// MaxName is the length of a tool's name, in bytes.
const MaxName = 256

// Limits. A text that goes beyond one is not refused, it is given out as text.
const (
	maxCalls = 128     // in one answer
	maxHeld  = 1 << 20 // bytes that are held back until it is clear whether they are a call
	maxDepth = 128     // of Python values in each other, and of JSON that is skipped
	maxBlank = 256     // bytes of white space that are held back as layout

	firstCredit, creditPerByte = 4096, 4 // see giveUp
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

	// Constrained says that the answer is JSON because the engine was told so
	// (response_format, tool_choice required or with a name). An engine may have begun
	// it at once although the prompt opened the reasoning: where the answer begins
	// with one of {["0123456789 it is not taken for reasoning.
	Constrained bool
}

// Parser reads one answer. It is used by one goroutine.
type Parser struct {
	opt   Options
	emit  func(Event)
	known map[string]json.RawMessage
	types map[string]map[string]parameter // of the tools that were called

	machine  machine // reads what stands behind a marker; nil in text
	finders  [5]*finder
	got      []byte // text that may be the beginning of a marker
	fresh    bool   // nothing of the answer was read but white space
	thinking bool   // inside reasoning
	unclosed bool   // a call ended the reasoning, and its end may still come
	wrapped  bool   // a marker opened the content, and its end is to come
	spoken   bool   // some text of the answer's content was given
	thought  bool   // reasoning was seen
	blank    bool   // of this stretch of text only white space was seen
	gap      []byte // which is this

	held   []byte // behind a marker, and with it: what is text if this is no call
	after  bool   // held is what follows a call: its end, not the beginning of another
	open   bool   // a call is open, its arguments flow
	calls  int
	cut    bool   // the answer ended inside a call's arguments
	unread []byte // what is read before all that is fed, its last byte first
	credit int    // how many bytes may still be read again

	scratch []byte
	one     [1]byte

	out     []byte // what this Feed gives out, outFrom on still to be emitted
	outFrom int
	outKind Kind
	outCall int
}

// New returns a parser for one answer.
func New(opt Options) *Parser {
	p := &Parser{opt: opt, blank: true, credit: firstCredit}
	if len(opt.Tools) > 0 {
		p.known = make(map[string]json.RawMessage, len(opt.Tools))
		for _, tool := range opt.Tools {
			p.known[tool.Name] = tool.Parameters
		}
	}
	if opt.Tool.speaksHarmony() || opt.Reasoning.speaksHarmony() {
		p.machine = newHarmony(p)
		return p
	}
	p.thinking, _ = opt.Thought()
	prefill := strings.TrimSpace(opt.Prefill)
	p.spoken = !p.thinking && prefill != ""
	p.fresh = prefill == "" || p.thinking && endsWithOne(prefill, opt.Reasoning.opens)
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

// Cut reports, behind Finish, whether the answer ended inside the arguments of a call
// that was given out, so that they are no whole JSON.
func (p *Parser) Cut() bool { return p.cut }

// Answering reports whether content or a call was given out. Reasoning does not follow
// that in formats in which two markers are all that tells it apart.
func (p *Parser) Answering() bool { return p.spoken || p.calls > 0 }

// Thinking reports whether what is fed next belongs to the reasoning, as far as is known.
func (p *Parser) Thinking() bool { return p.thinking }

// Feed reads more of the answer and gives out what is certain.
func (p *Parser) Feed(text []byte, emit func(Event)) {
	p.start(emit)
	p.read(text)
	p.flush()
}

// Finish ends the answer, whatever the reason: what was held back because it
// could have become a call is text now.
func (p *Parser) Finish(emit func(Event)) {
	p.start(emit)
	for p.machine != nil {
		p.machine.finish(p)
		p.cut = p.cut || p.open && (p.opt.Parallel || p.calls == 1)
		if p.after {
			p.held = p.held[:0] // a call's end, cut off
		}
		p.giveUp()
		p.read(nil)
	}
	p.say(p.got)
	p.got = p.got[:0]
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

// read reads what is to be read again, and then text.
func (p *Parser) read(text []byte) {
	for {
		for n := len(p.unread); n > 0; n = len(p.unread) {
			p.one[0] = p.unread[n-1]
			p.unread = p.unread[:n-1]
			if p.machine == nil {
				p.readText(p.one[:])
			} else {
				p.step(p.one[0])
			}
		}
		switch {
		case len(text) == 0:
			return
		case p.machine == nil:
			text = p.readText(text)
		default:
			p.credit += creditPerByte
			p.step(text[0])
			text = text[1:]
		}
	}
}

// verdict is what a machine says of a byte.
type verdict uint8

const (
	more verdict = iota // taken, and the machine goes on
	done                // taken, and all is complete
	fail                // not taken: what is held is text, and so may be this byte
)

// machine reads what stands behind a marker.
type machine interface {
	next(p *Parser, c byte) verdict
	// finish is called when the answer ends inside, to give out what the machine
	// itself holds back of arguments.
	finish(p *Parser)
}

// step gives the machine a byte.
func (p *Parser) step(c byte) {
	before := len(p.held)
	if !p.open {
		p.held = append(p.held, c)
	}
	switch p.machine.next(p, c) {
	case done:
		p.machine, p.open, p.after = nil, false, false
		p.held = p.held[:0]
		p.rest()
	case fail:
		if len(p.held) > before {
			p.held = p.held[:len(p.held)-1]
		}
		p.unread = append(p.unread, c)
		p.giveUp()
	default:
		if len(p.held) > maxHeld {
			p.giveUp()
		}
	}
}

// giveUp ends the machine. What is held was no call, or does not belong to the one
// before it, and is read again as text: another marker may stand in it. The first
// byte of a call that is none is text for good. To be linear in the length of the
// answer whatever stands in it, no more is read again than there is credit for.
func (p *Parser) giveUp() {
	from := 0
	if !p.after {
		from = min(1, len(p.held))
	}
	if again := len(p.held) - from; again > p.credit {
		from = len(p.held)
	} else {
		p.credit -= again
	}
	p.machine, p.open, p.after = nil, false, false
	p.say(p.held[:from])
	for i := len(p.held) - 1; i >= from; i-- {
		p.unread = append(p.unread, p.held[i])
	}
	p.held = p.held[:0]
}

// rest begins a new stretch of text.
func (p *Parser) rest() {
	p.blank = true
	p.gap = p.gap[:0]
}

// drop forgets what is held, the byte that is being read included: it was a
// call's syntax.
func (p *Parser) drop() { p.held = p.held[:0] }

// begin opens a call if its name is one that may be called, and reports whether
// it did. strict asks for a name that the request has.
func (p *Parser) begin(name, id string, strict bool) bool {
	if !p.callable(name, strict) {
		return false
	}
	p.unclosed = p.unclosed || p.thinking
	p.thinking = false
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

// callable reports whether a call of name may begin.
func (p *Parser) callable(name string, strict bool) bool {
	_, known := p.known[name]
	return Callable(name) && p.calls < maxCalls && (known || p.known == nil || !strict && !p.thinking)
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
	if p.blank {
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
	p.give(p.kind(), 0, text)
	p.spoken = p.spoken || !p.thinking
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
