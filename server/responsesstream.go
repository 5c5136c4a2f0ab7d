package server

import (
	"baton/openai"
)

// A responseEncoder makes the events of a streamed response, in the grammar of
// OpenAI's API: the response is created, items are added to it, their texts grow and
// are done, and at the end the response is shown as a whole. Every event has its type
// as its name and a number. A stream has no end mark: it ends with the event that
// shows how the response ended.
type responseEncoder struct {
	responseOutput
	buf      []byte
	sequence int
	begun    bool

	// A delta of the open item, but for its number and its text.
	deltaHead, deltaMiddle []byte
}

func newResponseEncoder(c *choice) *responseEncoder {
	e := &responseEncoder{}
	e.init(c, e)
	return e
}

func (e *responseEncoder) take() []byte {
	events := e.buf
	e.buf = e.buf[:0]
	return events
}

// event begins an event, up to its own members.
func (e *responseEncoder) event(kind string) {
	e.buf = appendEventHead(e.buf, kind)
	e.number()
}

// appendEventHead appends an event up to its number.
func appendEventHead(dst []byte, kind string) []byte {
	dst = append(append(dst, "event: "...), kind...)
	return append(append(append(dst, "\ndata: {\"type\":\""...), kind...), `","sequence_number":`...)
}

func (e *responseEncoder) number() {
	e.buf = appendInt(e.buf, e.sequence)
	e.sequence++
}

func (e *responseEncoder) endEvent() { e.buf = append(e.buf, "}\n\n"...) }

// begin makes the first events, if they have not been made.
func (e *responseEncoder) begin() {
	if e.begun {
		return
	}
	e.begun = true
	for _, kind := range [...]string{"response.created", "response.in_progress"} {
		e.lifecycle(kind, statusInProgress, nil, nil)
	}
}

// lifecycle makes an event that shows the whole response.
func (e *responseEncoder) lifecycle(kind, status string, failure *openai.Error, usage *tokenUsage) {
	e.event(kind)
	e.buf = e.appendResponse(append(e.buf, `,"response":`...), status, failure, usage)
	e.endEvent()
}

// place appends the members that say which item, or which content part of it.
func (e *responseEncoder) place(dst []byte) []byte {
	dst = e.appendItemID(append(dst, `,"item_id":`...))
	dst = appendInt(append(dst, `,"output_index":`...), e.index)
	if e.kind.parts != nil {
		dst = append(append(append(dst, `,"`...), e.kind.parts.index...), `":0`...)
	}
	return dst
}

func (e *responseEncoder) opened() {
	e.begin()
	kind := e.kind
	e.event("response.output_item.added")
	e.buf = appendInt(append(e.buf, `,"output_index":`...), e.index)
	e.buf = e.appendItemHead(append(e.buf, `,"item":`...), statusInProgress)
	if kind == callItem {
		e.buf = append(e.buf, `"arguments":""}`...)
	} else {
		e.buf = append(e.appendListHead(e.buf), "]}"...)
	}
	e.endEvent()
	if kind.parts != nil {
		e.event(kind.parts.addedEvent)
		e.buf = e.appendPart(append(e.place(e.buf), `,"part":`...))
		e.endEvent()
	}
	e.deltaHead = appendEventHead(e.deltaHead[:0], kind.deltaEvent)
	e.deltaMiddle = append(e.place(e.deltaMiddle[:0]), `,"delta":"`...)
}

func (e *responseEncoder) grew(from int, logprobs []byte) {
	e.buf = append(e.buf, e.deltaHead...)
	e.number()
	e.buf = append(append(e.buf, e.deltaMiddle...), e.text[from:]...)
	e.buf = append(e.buf, '"')
	if e.kind == messageItem {
		e.buf = append(append(append(e.buf, `,"logprobs":[`...), logprobs...), ']')
	}
	e.endEvent()
}

func (e *responseEncoder) closed(status string) {
	e.event(e.kind.doneEvent)
	e.buf = append(append(append(e.place(e.buf), `,"`...), e.kind.textMember...), `":"`...)
	e.buf = append(append(e.buf, e.text...), '"')
	switch e.kind {
	case messageItem:
		e.buf = e.appendLogprobs(e.buf)
	case callItem:
		e.buf = appendString(append(e.buf, `,"name":`...), e.name)
	}
	e.endEvent()
	if e.kind.parts != nil {
		e.event(e.kind.parts.doneEvent)
		e.buf = e.appendPart(append(e.place(e.buf), `,"part":`...))
		e.endEvent()
	}
	e.event("response.output_item.done")
	e.buf = appendInt(append(e.buf, `,"output_index":`...), e.index)
	e.buf = e.appendItem(append(e.buf, `,"item":`...), status)
	e.endEvent()
}

// last ends the stream with the whole response.
func (e *responseEncoder) last(dst []byte, usage *tokenUsage, comment []byte) []byte {
	e.buf = dst // the events before it, which take returned
	e.begin()
	e.buf = append(e.buf, comment...)
	kind := "response.completed"
	if e.status == statusIncomplete {
		kind = "response.incomplete"
	}
	e.lifecycle(kind, e.status, nil, usage)
	e.save(e.buf)
	return e.take()
}

// fail ends the stream with the response as far as it got, and an error event. The
// first tells clients that follow the response, the second, whose member error is an
// error to every SDK, those that only collect texts.
func (e *responseEncoder) fail(dst []byte, err *openai.Error) []byte {
	e.buf = nil // nothing waits in it
	e.begin()
	e.lifecycle("response.failed", statusFailed, err, nil)
	e.event("error")
	e.buf = appendStringOrNull(append(e.buf, `,"code":`...), err.Code)
	e.buf = appendString(append(e.buf, `,"message":`...), err.Message)
	e.buf = appendStringOrNull(append(e.buf, `,"param":`...), err.Param)
	envelope := appendEnvelope(nil, err)
	e.buf = append(append(e.buf, ','), envelope[1:len(envelope)-1]...)
	e.endEvent()
	return append(dst, e.buf...)
}
