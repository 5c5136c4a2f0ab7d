package server

import (
	"unicode/utf8"

	"baton/backend"
	"baton/openai"
	"baton/preprocess"
)

// An encoder makes the chunks of one choice. What is the same in all of them is
// made once, so that a chunk costs no allocation. It belongs to one goroutine.
type encoder struct {
	// buf holds the events that were made and not taken yet. Its memory always
	// begins with a chunk up to its delta (chat) or its text: the first chunk
	// after a take is written behind that, and copies nothing of it.
	buf         []byte
	prefixBytes int

	head            []byte // what all chunks of the request begin with
	begun           bool   // the first chunk was made
	chat            bool
	returnIDs       bool
	continuousUsage bool
	usage           bool        // a chunk with it ends the stream
	promptTokens    int         // of this choice, for continuous usage
	logprobs        logprobList // nil: not asked for
	echo            string      // sent before the first output; completions only
	promptIDs       []int32
	reading         *readingEncoder // nil: the answer is text and nothing else
	memory          [512]byte       // of buf, while that is enough: a chunk with a token or two fits
}

// chunkHead is what all chunks of a request begin with, up to the choices.
func chunkHead(ep *endpoint, id string, created int64, model string) []byte {
	return appendHead([]byte("data: "), ep.streamObject, id, created, model)
}

func appendHead(dst []byte, object, id string, created int64, model string) []byte {
	dst = appendString(append(dst, `{"id":`...), id)
	dst = appendString(append(dst, `,"object":`...), object)
	dst = appendInt(append(dst, `,"created":`...), int(created))
	dst = appendString(append(dst, `,"model":`...), model)
	return append(dst, `,"choices":[`...)
}

// encodeChunks makes the encoders of all choices. It returns the first chunks of all
// where there are several choices: see streamAnswer.send.
func (c *call) encodeChunks() (openings []byte) {
	head := chunkHead(c.ep, c.ids.own, c.start.Unix(), c.prepared.Model)
	for _, choice := range c.choices {
		choice.events = &choice.encoder
		choice.encoder.init(c.ep, c.prepared, choice.index, head)
		if choice.reading != nil {
			choice.encoder.read(choice.reading, c.server.cfg.ReasoningField)
		}
		if len(c.choices) > 1 {
			openings = append(openings, choice.encoder.begin()...)
		}
	}
	return openings
}

// init makes e the encoder of a choice, whose chunks begin with head.
func (e *encoder) init(ep *endpoint, p *preprocess.Prepared, index int, head []byte) {
	choice := &p.Choices[index]
	buf := append(e.memory[:0], head...)
	buf = appendInt(append(buf, `{"index":`...), index)
	if ep.chat {
		buf = append(buf, `,"delta":{`...)
	} else {
		buf = append(buf, `,"text":"`...)
	}
	e.buf, e.prefixBytes = buf[:0], len(buf)
	e.head = head
	e.chat = ep.chat
	e.logprobs = newLogprobList(ep, choice)
	e.echo = choice.Echo
	e.promptIDs = choice.Request.Tokens.TokenIDs
	e.promptTokens = len(e.promptIDs)
	e.returnIDs = p.ReturnTokenIDs
	e.continuousUsage = p.ContinuousUsage
	e.usage = p.IncludeUsage
}

func newLogprobList(ep *endpoint, choice *preprocess.Choice) logprobList {
	output := choice.Request.Tokens.Output
	switch {
	case !output.Logprobs:
		return nil
	case ep.chat:
		return &chatLogprobs{}
	}
	return &textLogprobs{topCount: output.TopLogprobs, offset: utf8.RuneCountInString(choice.Echo)}
}

// take returns the events that were made, valid until the next call of add.
func (e *encoder) take() []byte {
	events := e.buf
	e.buf = e.buf[:0]
	return events
}

// add makes the events of d: none if it has nothing to show, and before the
// first one the role of the choice (chat) or its echoed prompt (completions).
func (e *encoder) add(d *backend.Delta) {
	if e.reading != nil {
		e.reading.add(d)
		return
	}
	if len(d.Text) == 0 && len(d.Logprobs) == 0 && d.FinishReason == "" && !(len(d.TokenIDs) > 0 && (e.returnIDs || e.continuousUsage)) {
		return // half a character, or what may become a stop string
	}
	if !e.begun {
		e.begun = true
		e.addFirst()
	}
	dst := e.open()
	if e.chat {
		// The finish chunk alone needs no content. Others have it, even if empty.
		if len(d.Text) > 0 || d.FinishReason == "" {
			dst = appendString(append(dst, `"content":`...), d.Text)
		}
		dst = append(dst, '}')
	} else {
		dst = append(appendEscaped(dst, d.Text), '"')
	}
	dst = append(dst, `,"logprobs":`...)
	if e.logprobs == nil || len(d.Logprobs) == 0 {
		dst = append(dst, "null"...)
	} else {
		e.logprobs.reset()
		e.logprobs.add(d.Logprobs)
		dst = e.logprobs.appendTo(dst)
	}
	dst = appendFinish(dst, d)
	if e.returnIDs {
		dst = appendIDs(append(dst, `,"token_ids":`...), d.TokenIDs)
	}
	e.close(append(dst, "}]"...), d.CompletionTokens)
}

// begin returns the chunk that only opens the choice, if there is one, for callers
// that want it before there is any output.
func (e *encoder) begin() []byte {
	e.begun = true
	e.addFirst()
	return e.take()
}

// addFirst makes the chunk that only opens the choice, where there is one.
func (e *encoder) addFirst() {
	if !e.chat && e.echo == "" && !e.returnIDs {
		return
	}
	dst := e.open()
	if e.chat {
		dst = append(dst, `"role":"assistant","content":""}`...)
	} else {
		dst = append(appendEscaped(dst, e.echo), '"')
	}
	dst = append(dst, `,"logprobs":null,"finish_reason":null`...)
	if e.returnIDs && !e.chat {
		// vLLM has it in the choice here, and at the top level in chat.
		dst = appendIDs(append(dst, `,"prompt_token_ids":`...), e.promptIDs)
	}
	dst = append(dst, "}]"...)
	if e.returnIDs && e.chat {
		dst = appendIDs(append(dst, `,"prompt_token_ids":`...), e.promptIDs)
	}
	e.close(dst, 0)
}

// open begins a chunk behind those that were made.
func (e *encoder) open() []byte {
	prefix := e.buf[:e.prefixBytes]
	if len(e.buf) == 0 {
		return prefix
	}
	return append(e.buf, prefix...)
}

// close ends the chunk that open began.
func (e *encoder) close(dst []byte, completionTokens int) {
	if e.continuousUsage {
		u := tokenUsage{promptTokens: e.promptTokens, completionTokens: completionTokens}
		if e.reading != nil {
			u.add(e.reading.reading)
			u.reasoningTokens = min(u.reasoningTokens, completionTokens) // before the first piece none is told of
		}
		dst = u.appendTo(append(dst, `,"usage":`...))
	}
	e.buf = append(dst, "}\n\n"...)
}

// appendFinish appends the finish reason, null until the end, and with it what
// the generation was stopped by, with vLLM's name: a string, an id or null.
func appendFinish(dst []byte, d *backend.Delta) []byte {
	dst = append(dst, `,"finish_reason":`...)
	if d.FinishReason == "" {
		return append(dst, "null"...)
	}
	dst = append(appendString(dst, d.FinishReason), `,"stop_reason":`...)
	switch {
	case d.Stop != "":
		return appendString(dst, d.Stop)
	case d.StopID >= 0:
		return appendInt(dst, int(d.StopID))
	}
	return append(dst, "null"...)
}

// last ends the stream with the usage, if it is asked for, the comment and the end mark.
func (e *encoder) last(dst []byte, u *tokenUsage, comment []byte) []byte {
	if e.usage {
		dst = append(append(dst, e.head...), `],"usage":`...)
		dst = append(u.appendTo(dst), "}\n\n"...)
	}
	return append(append(dst, comment...), doneEvent...)
}

// fail ends the stream with an event that is an error to all clients.
func (e *encoder) fail(dst []byte, err *openai.Error) []byte {
	return append(appendEnvelope(append(dst, "data: "...), err), "\n\n"...)
}

const doneEvent = "data: [DONE]\n\n"
