package parser

import (
	"slices"
	"strings"
)

// harmony reads the messages of gpt-oss. Each has a header, which names a channel
// and perhaps a recipient, and a body: analysis is reasoning, final is content,
// commentary is content if it has no recipient, and a call if that is a function.
type harmony struct {
	state  harmonyState
	header []byte
	body   []byte // the end of the body that may be a marker
	call   bool
	some   bool // the call's arguments are not empty
	begun  bool // a message was read; before, text without header is an answer
	tools  bool
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

func newHarmony(opt Options) *harmony {
	h := &harmony{tools: opt.Tool != nil}
	_, prompted, _ := cutLast(opt.PromptTail, harmonyStart+"assistant")
	if _, _, bodied := strings.Cut(prompted, harmonyMessage); bodied {
		h.header = append(h.header, prompted[:strings.Index(prompted, harmonyMessage)]...)
		h.state = inBody
		return h
	}
	h.header = append(h.header, prompted...)
	return h
}

func cutLast(text, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(text, separator); at >= 0 {
		return text[:at], text[at+len(separator):], true
	}
	return text, "", false
}

func (h *harmony) next(p *Parser, c byte) verdict {
	p.drop() // nothing is held: a message is known by its header
	switch h.state {
	case inHeader:
		h.readHeader(p, c)
	case between:
		if len(h.body) == 0 && space(c) {
			return more
		}
		h.readBody(p, c)
	case inBody:
		if !h.begun {
			h.openBody(p) // a body that the prompt began
		}
		h.readBody(p, c)
	}
	return more
}

func (h *harmony) finish(p *Parser) {
	p.drop()
	switch {
	case h.state == inHeader && !h.begun && !slices.Contains(h.header, '|'):
		p.say(h.header)
	case h.state != inHeader && !h.call:
		p.say(h.body)
	case h.state == inBody && len(h.body) > 0:
		p.argue(h.body)
	}
}

// headers are what can stand at the beginning of a header.
var headers = []string{harmonyChannel, harmonyMessage, harmonyStart, "<|constrain|>", " to=", "assistant"}

func (h *harmony) readHeader(p *Parser, c byte) {
	h.header = append(h.header, c)
	if endsWith(h.header, harmonyStart) {
		h.header = h.header[:0]
		return
	}
	if endsWith(h.header, harmonyMessage) {
		h.header = h.header[:len(h.header)-len(harmonyMessage)]
		h.openBody(p)
		return
	}
	text := string(h.header)
	if len(text) <= MaxName*2 && slices.ContainsFunc(headers, func(prefix string) bool {
		return strings.HasPrefix(text, prefix) || strings.HasPrefix(prefix, text)
	}) {
		return
	}
	// This is no header: an answer without any, or text that looked like one.
	h.state, h.begun, h.call = inBody, true, false
	h.header = h.header[:0]
	p.thinking = false
	for i := range len(text) {
		h.readBody(p, text[i])
	}
}

func (h *harmony) openBody(p *Parser) {
	head, channel, _ := strings.Cut(string(h.header), harmonyChannel)
	channel = strings.TrimSpace(channel)
	recipient := recipientIn(channel)
	if recipient == "" {
		recipient = recipientIn(head)
	}
	h.header = h.header[:0]
	h.body = h.body[:0]
	h.state, h.begun, h.some = inBody, true, false
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
	if h.state == between { // text between messages is an answer
		h.state, h.call, p.thinking = inBody, false, false
	}
	if !h.call {
		p.say(text)
		return
	}
	h.some = h.some || !space(text[0])
	p.argue(text)
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
		h.state, h.header = inHeader, h.header[:0]
	case harmonyChannel:
		h.state, h.header = inHeader, append(h.header[:0], marker...)
	}
}
