package server

import (
	"strings"
	"time"

	"baton/backend"
	"baton/engine"
	"baton/openai"
	"baton/parser"
)

// The answer to POST /v1/responses is a list of items: reasoning, messages and calls
// of functions, in the order in which the model writes them. A stream tells how they
// grow (responsesstream.go), a JSON reply has them when they are complete.

// An itemKind is a sort of item in the output of a response.
type itemKind struct {
	idPrefix string

	// Of the events that tell how its text grows; textMember is the text's name in
	// the event that has all of it.
	deltaEvent, doneEvent, textMember string

	parts *partKind // of its only part; nil = it has none
}

// A partKind is a sort of part in an item.
type partKind struct {
	kind, list, index     string // its type, the item's member that holds it, and its number in events
	addedEvent, doneEvent string
}

var (
	messageItem = &itemKind{
		idPrefix:   "msg_",
		deltaEvent: "response.output_text.delta", doneEvent: "response.output_text.done", textMember: "text",
		parts: contentPart("output_text"),
	}
	thoughtItem = &itemKind{
		idPrefix:   "rs_",
		deltaEvent: "response.reasoning_text.delta", doneEvent: "response.reasoning_text.done", textMember: "text",
		parts: contentPart("reasoning_text"),
	}
	callItem = &itemKind{
		idPrefix:   "fc_",
		deltaEvent: "response.function_call_arguments.delta", doneEvent: "response.function_call_arguments.done", textMember: "arguments",
	}

	// summaryItem is a thought for clients that ask for a summary of it: many show
	// nothing else, and there is nobody to make it shorter.
	summaryItem = &itemKind{
		idPrefix:   "rs_",
		deltaEvent: "response.reasoning_summary_text.delta", doneEvent: "response.reasoning_summary_text.done", textMember: "text",
		parts: &partKind{
			kind: "summary_text", list: "summary", index: "summary_index",
			addedEvent: "response.reasoning_summary_part.added", doneEvent: "response.reasoning_summary_part.done",
		},
	}
)

func contentPart(kind string) *partKind {
	return &partKind{
		kind: kind, list: "content", index: "content_index",
		addedEvent: "response.content_part.added", doneEvent: "response.content_part.done",
	}
}

// Statuses of responses and items.
const (
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
)

// A responseOutput is the list of items while it grows. It belongs to the choice's
// goroutine.
type responseOutput struct {
	choice  *choice
	thought *itemKind          // what reasoning becomes
	watch   outputWatch        // nil: nobody wants to see how it grows
	give    func(parser.Event) // o.addPiece, made once

	items []byte // JSON of those that are complete, with commas between them
	ends  []int  // of each in items, if the response is to be kept

	// Where the object, and in it the output, was appended last.
	objectStart, outputStart, objectEnd int

	kind   *itemKind // of the item that is open; nil = none is
	index  int       // of that item, or the next one
	text   []byte    // its text, as JSON spells it, without quotes
	callID string
	name   string // of the called function, without its namespace
	space  string // its namespace; "" = none

	answered bool // there was a message or a call
	status   string
	logprobs *outputLogprobs // nil: not asked for
}

// An outputWatch is told how the output grows.
type outputWatch interface {
	opened()
	// grew: the open item's text has more from this byte on; logprobs are of its
	// tokens, as JSON.
	grew(from int, logprobs []byte)
	closed(status string)
}

func (o *responseOutput) init(c *choice, watch outputWatch) {
	o.choice, o.watch, o.status = c, watch, statusInProgress
	o.give = o.addPiece
	o.thought = thoughtItem
	if c.call.prepared.SummarizeReasoning {
		o.thought = summaryItem
	}
	if c.request.Tokens.Output.Logprobs {
		o.logprobs = &outputLogprobs{plain: c.reading == nil}
	}
}

// add takes the newest delta.
func (o *responseOutput) add(d *backend.Delta) {
	if o.logprobs != nil {
		o.logprobs.add(d.Logprobs)
	}
	if o.choice.reading != nil {
		o.choice.reading.read(d, o.give)
	} else if len(d.Text) > 0 {
		o.addPiece(parser.Event{Kind: parser.Content, Text: d.Text})
	}
	if d.FinishReason != "" {
		o.finish(d.FinishReason)
	}
}

func (o *responseOutput) addPiece(piece parser.Event) {
	switch piece.Kind {
	case parser.Content:
		o.need(messageItem)
	case parser.Reasoning:
		o.need(o.thought)
	case parser.Call:
		o.close(statusCompleted)
		o.callID, o.name, o.space = piece.ID, piece.Name, o.choice.reading.how.Namespaces[piece.Name]
		if o.space != "" {
			o.name = o.name[len(o.space)+1:]
		}
		o.need(callItem)
		return
	}
	o.grow(piece.Text)
}

// need opens an item of this kind unless one is open.
func (o *responseOutput) need(kind *itemKind) {
	if o.kind == kind {
		return
	}
	o.close(statusCompleted)
	o.kind = kind
	o.answered = o.answered || kind != o.thought
	if o.watch != nil {
		o.watch.opened()
	}
}

func (o *responseOutput) grow(text []byte) {
	from := len(o.text)
	o.text = appendEscaped(o.text, text)
	var logprobs []byte
	if o.logprobs != nil {
		logprobs = o.logprobs.take(text, o.kind)
	}
	if o.watch != nil {
		o.watch.grew(from, logprobs)
	}
}

// close ends the open item, if there is one.
func (o *responseOutput) close(status string) {
	if o.kind == nil {
		return
	}
	if o.watch != nil {
		o.watch.closed(status)
	}
	o.items = o.appendItem(appendComma(o.items), status)
	if o.choice.call.prepared.Input != nil {
		o.ends = append(o.ends, len(o.items))
	}
	o.kind = nil
	o.index++
	o.text = o.text[:0]
	if o.logprobs != nil {
		o.logprobs.reset()
	}
}

// finish ends the output. An answer that ended by itself has a message or a call,
// even if the model had nothing to say: clients look for one.
func (o *responseOutput) finish(reason engine.FinishReason) {
	o.status = statusCompleted
	if reason == engine.FinishLength {
		o.status = statusIncomplete
	} else if !o.answered {
		o.need(messageItem)
	}
	if o.kind == messageItem && o.logprobs.waiting() {
		o.grow(nil) // tokens behind the text
	}
	status := o.status
	if r := o.choice.reading; o.kind == callItem && r != nil && r.parser.Cut() {
		status = statusIncomplete
	}
	o.close(status)
}

// appendItemID appends the id of the open item as a JSON string. It goes on as that of
// the response does.
func (o *responseOutput) appendItemID(dst []byte) []byte {
	dst = append(append(dst, '"'), o.kind.idPrefix...)
	dst = append(dst, strings.TrimPrefix(o.choice.call.ids.own, openai.ResponsePrefix)...)
	return append(appendInt(append(dst, '-'), o.index), '"')
}

// appendItem appends the open item with its text so far.
func (o *responseOutput) appendItem(dst []byte, status string) []byte {
	dst = o.appendItemHead(dst, status)
	if o.kind == callItem {
		return append(append(append(dst, `"arguments":"`...), o.text...), `"}`...)
	}
	return append(o.appendPart(o.appendListHead(dst)), "]}"...)
}

// appendListHead appends the beginning of the list of parts.
func (o *responseOutput) appendListHead(dst []byte) []byte {
	return append(append(append(dst, '"'), o.kind.parts.list...), `":[`...)
}

// appendItemHead appends an item up to the member that grows.
func (o *responseOutput) appendItemHead(dst []byte, status string) []byte {
	dst = o.appendItemID(append(dst, `{"id":`...))
	switch o.kind {
	case messageItem:
		dst = append(dst, `,"type":"message","role":"assistant","status":`...)
	case thoughtItem:
		dst = append(dst, `,"type":"reasoning","summary":[],"status":`...)
	case summaryItem:
		dst = append(dst, `,"type":"reasoning","status":`...)
	case callItem:
		dst = appendString(append(dst, `,"type":"function_call","call_id":`...), o.callID)
		dst = appendString(append(dst, `,"name":`...), o.name)
		if o.space != "" {
			dst = appendString(append(dst, `,"namespace":`...), o.space)
		}
		dst = append(dst, `,"status":`...)
	}
	return append(appendString(dst, status), ',')
}

// appendPart appends the content part of the open item with its text so far.
func (o *responseOutput) appendPart(dst []byte) []byte {
	dst = append(append(append(dst, `{"type":"`...), o.kind.parts.kind...), `","text":"`...)
	dst = append(append(dst, o.text...), '"')
	if o.kind == messageItem {
		dst = o.appendLogprobs(append(dst, `,"annotations":[]`...))
	}
	return append(dst, '}')
}

// appendLogprobs appends the member with those of the open item's text so far.
func (o *responseOutput) appendLogprobs(dst []byte) []byte {
	dst = append(dst, `,"logprobs":[`...)
	if o.logprobs != nil {
		dst = append(dst, o.logprobs.shown...)
	}
	return append(dst, ']')
}

// appendResponse appends the response object as it is at the moment. failure may be
// nil; usage is that of a response that has ended well.
func (o *responseOutput) appendResponse(dst []byte, status string, failure *openai.Error, usage *tokenUsage) []byte {
	c := o.choice.call
	o.objectStart = len(dst)
	dst = appendString(append(dst, `{"id":`...), c.ids.own)
	dst = appendInt(append(dst, `,"object":"response","created_at":`...), int(c.start.Unix()))
	dst = appendString(append(dst, `,"status":`...), status)
	dst = append(dst, `,"background":false,"completed_at":`...)
	if status == statusCompleted {
		dst = appendInt(dst, int(time.Now().Unix()))
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"error":`...)
	if failure != nil {
		dst = appendString(append(dst, `{"code":`...), responseErrorCode(failure))
		dst = append(appendString(append(dst, `,"message":`...), failure.Message), '}')
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"incomplete_details":`...)
	if status == statusIncomplete {
		dst = append(dst, `{"reason":"max_output_tokens"}`...)
	} else {
		dst = append(dst, "null"...)
	}
	dst = appendString(append(dst, `,"model":`...), c.prepared.Model)
	dst = append(dst, `,"output":[`...)
	o.outputStart = len(dst)
	dst = append(dst, o.items...)
	if o.kind != nil && status == statusFailed {
		if len(o.items) > 0 {
			dst = append(dst, ',')
		}
		dst = o.appendItem(dst, statusIncomplete)
	}
	dst = append(append(dst, `],`...), c.prepared.Echo...)
	dst = append(dst, `,"usage":`...)
	if usage != nil {
		dst = usage.appendResponse(dst)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, '}')
	o.objectEnd = len(dst)
	return dst
}

// responseErrorCode is the code of a failed response: OpenAI has few, and SDKs list
// them. Our own stands in the error event behind it.
func responseErrorCode(e *openai.Error) string {
	switch e.Type {
	case openai.TypeRateLimit:
		return "rate_limit_exceeded"
	case openai.TypeInvalidRequest:
		return "invalid_prompt"
	}
	return "server_error"
}

// A responseReply is the response object as a JSON reply.
type responseReply struct{ responseOutput }

func newResponseReply(c *choice) *responseReply {
	r := &responseReply{}
	r.init(c, nil)
	return r
}

func (r *responseReply) add(c *choice) { r.responseOutput.add(&c.delta) }

func (r *responseReply) appendTo(dst []byte) []byte {
	u := r.choice.call.usage()
	dst = r.appendResponse(dst, r.status, nil, &u)
	r.save(dst)
	return dst
}
