package server

import (
	"baton/backend"
	"baton/engine"
	"baton/parser"
)

// A readingEncoder makes the chunks of a choice in which reasoning and calls are
// looked for: one for each piece, and a last one with the finish reason. What belongs
// to tokens of which nothing is shown yet goes with the next chunk.
type readingEncoder struct {
	*encoder
	reading *reading
	field   string             // where reasoning goes
	give    func(parser.Event) // addPiece

	ids              []engine.TokenID // to be shown, if asked for
	completionTokens int
}

// read makes e look for reasoning and calls. It is called after init.
func (e *encoder) read(r *reading, field string) {
	e.reading = &readingEncoder{encoder: e, reading: r, field: field}
	e.reading.give = e.reading.addPiece
}

func (e *readingEncoder) add(d *backend.Delta) {
	if e.returnIDs {
		e.ids = append(e.ids, d.TokenIDs...)
	}
	if e.logprobs != nil {
		e.logprobs.add(d.Logprobs)
	}
	e.completionTokens = d.CompletionTokens
	e.reading.read(d, e.give)
	if d.FinishReason != "" {
		e.end(append(e.openDelta(), '}'), d)
	}
}

// openDelta begins a chunk, of which the delta is open.
func (e *readingEncoder) openDelta() []byte {
	if !e.begun {
		e.begun = true
		e.addFirst()
	}
	return e.open()
}

func (e *readingEncoder) addPiece(piece parser.Event) {
	dst := e.openDelta()
	switch piece.Kind {
	case parser.Content:
		dst = appendString(append(dst, `"content":`...), piece.Text)
	case parser.Reasoning:
		dst = appendString(append(appendString(dst, e.field), ':'), piece.Text)
	case parser.Call:
		dst = appendInt(append(dst, `"tool_calls":[{"index":`...), piece.Index)
		dst = appendCallHead(append(dst, ','), piece)
		dst = append(dst, `"}}]`...)
	case parser.Arguments:
		dst = appendInt(append(dst, `"tool_calls":[{"index":`...), piece.Index)
		dst = appendEscaped(append(dst, `,"function":{"arguments":"`...), piece.Text)
		dst = append(dst, `"}}]`...)
	}
	e.end(append(dst, '}'), &backend.Delta{})
}

// appendCallHead appends a call up to the text of its arguments.
func appendCallHead(dst []byte, call parser.Event) []byte {
	dst = appendString(append(dst, `"id":`...), call.ID)
	dst = appendString(append(dst, `,"type":"function","function":{"name":`...), call.Name)
	return append(dst, `,"arguments":"`...)
}

// end ends a chunk whose delta is complete.
func (e *readingEncoder) end(dst []byte, d *backend.Delta) {
	dst = append(dst, `,"logprobs":`...)
	if e.logprobs == nil {
		dst = append(dst, "null"...)
	} else {
		dst = e.logprobs.appendTo(dst)
		e.logprobs.reset()
	}
	dst = appendFinish(dst, d)
	if e.returnIDs {
		dst = appendIDs(append(dst, `,"token_ids":`...), e.ids)
		e.ids = e.ids[:0]
	}
	e.close(append(dst, "}]"...), e.completionTokens)
}
