package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"baton/backend"
	"baton/engine"
)

// maxReplyWriteBytes is how much of a reply is written under one deadline, so
// that a slow client that goes on reading is not taken for one that does not.
const maxReplyWriteBytes = 64 << 10

// heldBytes at the end of a reply stay in net/http's buffer until the handler
// returns, so that a client which has the whole reply finds it counted.
const heldBytes = 1 << 10

// A collected is one choice of a JSON reply while it grows. It belongs to the
// choice's goroutine.
type collected struct {
	text     []byte
	reading  *readingReply // nil: the answer is text and nothing else
	logprobs logprobList   // nil: not asked for
	ids      []byte        // JSON list; only if asked for
	end      backend.Delta
}

// A replyBuilder makes the body of a JSON reply.
type replyBuilder interface {
	// add takes the newest delta of a choice, on the choice's goroutine.
	add(c *choice)
	// appendTo appends the whole body, when all choices have finished.
	appendTo(dst []byte) []byte
}

// reply answers with one JSON object, made from the same deltas as a stream. It
// returns why there is none, or nil.
func (c *call) reply(ctx context.Context, w http.ResponseWriter) *engine.Error {
	var body replyBuilder
	if c.ep.responses {
		body = newResponseReply(c.choices[0])
	} else {
		body = c.newCompletion()
	}
	err := c.run(ctx, func(choice *choice) error {
		body.add(choice)
		return nil
	})
	if err != nil {
		failure := finalError(ctx, err)
		if !clientLeft(failure) {
			c.setTraceHeaders(w)
			writeError(w, c.publicError(failure))
		}
		return failure
	}
	c.setTraceHeaders(w)
	if err := c.server.writeReply(w, body.appendTo(nil)); err != nil {
		return &engine.Error{Kind: engine.Cancelled, Err: err}
	}
	return nil
}

// A completion is the reply of chat and text completions.
type completion struct {
	call    *call
	choices []collected
}

func (c *call) newCompletion() *completion {
	body := &completion{call: c, choices: make([]collected, len(c.choices))}
	for i := range body.choices {
		prepared := &c.prepared.Choices[i]
		body.choices[i].text = []byte(prepared.Echo)
		body.choices[i].logprobs = newLogprobList(c.ep, prepared)
		if r := c.choices[i].reading; r != nil {
			body.choices[i].reading = newReadingReply(&body.choices[i], r)
		}
	}
	return body
}

func (b *completion) add(c *choice) {
	b.choices[c.index].add(&c.delta, b.call.prepared.ReturnTokenIDs)
}

func (a *collected) add(d *backend.Delta, keepIDs bool) {
	if a.reading == nil {
		a.text = append(a.text, d.Text...)
	} else {
		a.reading.reading.read(d, a.reading.give)
	}
	if a.logprobs != nil {
		a.logprobs.add(d.Logprobs)
	}
	if keepIDs && len(d.TokenIDs) > 0 {
		a.ids = appendIDList(appendComma(a.ids), d.TokenIDs)
	}
	if d.FinishReason != "" {
		a.end = backend.Delta{FinishReason: d.FinishReason, Stop: d.Stop, StopID: d.StopID}
	}
}

func (b *completion) appendTo(dst []byte) []byte {
	c := b.call
	p := c.prepared
	dst = appendHead(dst, c.ep.replyObject, c.ids.own, c.start.Unix(), p.Model)
	for i := range b.choices {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = c.appendChoice(dst, i, &b.choices[i])
	}
	u := c.usage()
	dst = u.appendTo(append(dst, `],"usage":`...))
	if p.ReturnTokenIDs && c.ep.chat {
		dst = appendIDs(append(dst, `,"prompt_token_ids":`...), c.choices[0].request.Tokens.TokenIDs)
	}
	return append(dst, '}')
}

// usage is what the answer to a request cost whose choices have all finished.
func (c *call) usage() tokenUsage {
	u := tokenUsage{promptTokens: c.prepared.PromptTokens, completionTokens: c.completionTokens()}
	for _, choice := range c.choices {
		u.add(choice.reading)
	}
	return u
}

func (c *call) appendChoice(dst []byte, index int, a *collected) []byte {
	dst = appendInt(append(dst, `{"index":`...), index)
	if c.ep.chat {
		dst = append(dst, `,"message":{"role":"assistant","content":`...)
		if len(a.text) == 0 && a.reading != nil && len(a.reading.calls) > 0 {
			dst = append(dst, "null"...)
		} else {
			dst = appendString(dst, a.text)
		}
		dst = append(dst, `,"refusal":null`...)
		if a.reading != nil {
			dst = a.reading.appendTo(dst, c.server.cfg.ReasoningField)
		}
		dst = append(dst, '}')
	} else {
		dst = appendString(append(dst, `,"text":`...), a.text)
	}
	dst = append(dst, `,"logprobs":`...)
	if a.logprobs != nil {
		dst = a.logprobs.appendTo(dst)
	} else {
		dst = append(dst, "null"...)
	}
	dst = appendFinish(dst, &a.end)
	if c.prepared.ReturnTokenIDs {
		dst = append(append(append(dst, `,"token_ids":[`...), a.ids...), ']')
		if !c.ep.chat {
			dst = appendIDs(append(dst, `,"prompt_token_ids":`...), c.choices[index].request.Tokens.TokenIDs)
		}
	}
	return append(dst, '}')
}

// writeReply writes a whole reply, whose pieces follow each other, each part of it
// within the write time-out.
func (s *Server) writeReply(w http.ResponseWriter, pieces ...[]byte) error {
	left := 0
	for _, piece := range pieces {
		left += len(piece)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(left))
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	timeout := s.cfg.WriteTimeout
	for _, piece := range pieces {
		for len(piece) > 0 {
			if timeout > 0 {
				_ = rc.SetWriteDeadline(time.Now().Add(timeout)) // not every writer has deadlines
			}
			n := min(len(piece), maxReplyWriteBytes)
			if left > heldBytes {
				n = min(n, left-heldBytes)
			}
			if _, err := w.Write(piece[:n]); err != nil {
				return err
			}
			piece, left = piece[n:], left-n
		}
	}
	return nil
}
