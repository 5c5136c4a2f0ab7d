package parser

import (
	"bytes"
	"slices"
	"strings"
)

// harmony reads the messages of gpt-oss. Each has a header, which names a channel
// and perhaps a recipient, and a body: analysis is reasoning, final is content,
// commentary is content if it has no recipient, and a call if that is a function.
// Source: "OpenAI harmony response format", OpenAI Cookbook.
type harmony struct {
	state  harmonyState
	header []byte
	body   []byte // the end of the body that may be a marker
	// Of the header: whether it has a marker, and whether that says that a role follows.
	marked, started bool
	begun           bool // a message was read
	call            bool // the body is a call's arguments
	some            bool // which are not empty
	json            jsonText
	whole           bool // the arguments are complete
	tools           bool
	said            [2]bool // of Content and Reasoning, whether there was any
	join            bool    // the message goes on with what one before it said

	// inner reads the content, where calls are written in it in another format:
	// a model that is made to call writes JSON into its final message.
	inner *Parser
	relay func(Event)
}

type harmonyState uint8

const (
	inHeader harmonyState = iota
	inBody
	between // messages
)

const (
	harmonyStart   = "<|start|>"
	harmonyChannel = "<|channel|>"
	harmonyMessage = "<|message|>"
)

var harmonyEnds = []string{"<|end|>", "<|call|>", "<|return|>", harmonyStart, harmonyChannel}

func newHarmony(p *Parser) *harmony {
	h := &harmony{tools: p.opt.Tool.speaksHarmony() && p.opt.Named == ""}
	if !h.tools && (p.opt.Tool != nil || p.opt.Named != "") {
		inner := p.opt
		inner.Reasoning, inner.PromptTail, inner.Prefill = nil, "", ""
		if inner.Tool.speaksHarmony() {
			inner.Tool = nil
		}
		h.inner = New(inner)
		h.relay = func(e Event) {
			if e.Kind != Call {
				p.give(e.Kind, e.Index, e.Text)
				return
			}
			p.flush()
			p.emit(e)
			p.calls++
		}
	}
	prompted := p.opt.PromptTail
	if at := strings.LastIndex(prompted, harmonyStart+"assistant"); at >= 0 {
		prompted = prompted[at+len(harmonyStart+"assistant"):]
	} else {
		prompted = ""
	}
	header, _, bodied := strings.Cut(prompted, harmonyMessage)
	h.header = append(h.header, header...)
	if bodied {
		h.state = inBody
	}
	return h
}

func (h *harmony) next(p *Parser, c byte) verdict {
	p.drop() // nothing is held: a message is known by its header
	switch h.state {
	case inHeader:
		h.readHeader(p, c)
	case between:
		if space(c) {
			p.one[0] = c
			p.say(p.one[:])
			return more
		}
		h.state = inHeader
		h.readHeader(p, c)
	case inBody:
		if !h.begun {
			h.openBody(p) // a body that the prompt began
		}
		h.readBody(p, c)
	}
	return more
}

// finish gives out what is held back. A header that was cut off says nothing.
func (h *harmony) finish(p *Parser) {
	p.drop()
	if h.state == inHeader && !h.marked && len(h.header) > 0 {
		h.pass(p, h.header) // an answer that was as short as a header's word
	} else if h.state != inHeader && len(h.body) > 0 {
		h.pass(p, h.body)
	}
	if h.call && h.whole {
		p.close() // the token that says so is an end of the answer, which need not have a text
	}
	p.after = false
	if h.inner != nil {
		h.inner.Finish(h.relay)
		p.cut = h.inner.cut
	}
}

// headers are what can stand at the beginning of a header.
var headers = []string{harmonyChannel, harmonyMessage, harmonyStart, "<|constrain|>", " to=", "assistant"}

func (h *harmony) readHeader(p *Parser, c byte) {
	h.header = append(h.header, c)
	switch {
	case c != '>':
	case endsWith(h.header, harmonyStart):
		h.header, h.marked, h.started = h.header[:0], true, true
		return
	case endsWith(h.header, harmonyMessage):
		h.header = h.header[:len(h.header)-len(harmonyMessage)]
		h.openBody(p)
		return
	case endsWith(h.header, harmonyChannel):
		h.marked = true
	}
	if len(h.header) <= 2*MaxName && (beginsHeader(h.header) || h.started && isRole(h.header)) {
		return
	}
	// This is no header: an answer without any, or text that looked like one.
	text := string(h.header)
	h.state, h.begun, h.call = inBody, true, false
	h.header, h.marked, h.started = h.header[:0], false, false
	p.thinking = false
	for i := range len(text) {
		h.readBody(p, text[i])
	}
}

func beginsHeader(text []byte) bool {
	return slices.ContainsFunc(headers, func(prefix string) bool {
		n := min(len(prefix), len(text))
		if string(text[:n]) != prefix[:n] {
			return false
		}
		return prefix[0] == '<' || len(text) <= len(prefix) || prefix[n-1] == '=' || text[n] == ' ' || text[n] == '<'
	})
}

// isRole reports whether a header can begin with text: with a role and a recipient,
// which need not be those of an answer.
func isRole(text []byte) bool {
	role, _, _ := bytes.Cut(text, []byte{'<'})
	return !bytes.ContainsFunc(role, func(c rune) bool { return c != ' ' && c != '=' && !Callable(string(c)) })
}

func (h *harmony) openBody(p *Parser) {
	head, channel, _ := strings.Cut(string(h.header), harmonyChannel)
	channel = strings.TrimSpace(channel)
	recipient := recipientIn(channel)
	if recipient == "" {
		recipient = recipientIn(head)
	}
	h.header, h.body, h.marked, h.started = h.header[:0], h.body[:0], false, false
	h.state, h.begun, h.some = inBody, true, false
	h.json, h.whole = jsonText{}, false
	name, isFunction := strings.CutPrefix(recipient, "functions.")
	_, known := p.known[name]
	p.rest()
	p.thinking = false
	h.call = h.tools && name != "" && (isFunction || known) && p.begin(name, "", false)
	if h.call {
		return
	}
	// Calls of tools that the model was trained with (python, browser) and that this
	// request does not have belong to its thoughts.
	p.thinking = strings.HasPrefix(channel, "analysis") || recipient != "" && !isFunction
	p.thought = p.thought || p.thinking
	h.join = h.said[p.kind()]
}

// recipientIn returns what follows "to=" in a part of a header.
func recipientIn(text string) string {
	_, recipient, _ := strings.Cut(text, "to=")
	if end := strings.IndexAny(recipient, " \n\t<"); end >= 0 {
		recipient = recipient[:end]
	}
	return recipient
}

func (h *harmony) readBody(p *Parser, c byte) {
	if len(h.body) == 0 && c != '<' {
		p.one[0] = c
		h.pass(p, p.one[:])
		return
	}
	h.body = append(h.body, c)
	for len(h.body) > 0 {
		begins := false
		for _, end := range harmonyEnds {
			if len(h.body) > len(end) || end[:len(h.body)] != string(h.body) {
				continue
			}
			if len(h.body) == len(end) {
				h.closeBody(p, end)
				return
			}
			begins = true
		}
		if begins {
			return
		}
		h.pass(p, h.body[:1])
		h.body = append(h.body[:0], h.body[1:]...)
	}
}

func (h *harmony) pass(p *Parser, text []byte) {
	if h.state != inBody { // text that is in no message is an answer
		h.state, h.begun, h.call, p.thinking = inBody, true, false, false
	}
	switch {
	case h.call:
		h.some = h.some || !space(text[0])
		for _, c := range text {
			if closed, _ := h.json.scan(c); closed {
				h.whole = true
			}
		}
		p.argue(text)
	case h.inner != nil && !p.thinking:
		h.inner.Feed(text, h.relay)
	default:
		if h.join { // on a line of its own, as vLLM and Dynamo do
			p.give(p.kind(), 0, []byte{'\n'})
			h.join = false
		}
		p.say(text)
		h.said[p.kind()] = true
	}
}

func (h *harmony) closeBody(p *Parser, marker string) {
	h.body = h.body[:0]
	if h.call {
		if !h.some {
			p.argue([]byte("{}"))
		}
		p.close()
		h.call = false
	}
	p.after = false
	p.thinking = false
	p.rest()
	h.state = between
	switch marker {
	case harmonyStart:
		h.state, h.header, h.marked, h.started = inHeader, h.header[:0], true, true
	case harmonyChannel:
		h.state, h.header, h.marked = inHeader, append(h.header[:0], marker...), true
	}
}
