package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"

	"baton/backend"
	"baton/engine"
	"baton/parser"
	"baton/preprocess"
)

// A reading finds reasoning and tool calls in the text of one choice. It belongs to
// the choice's goroutine.
type reading struct {
	parser *parser.Parser
	how    *preprocess.Reading
	take   func(parser.Event) // r.pass, made once
	give   func(parser.Event) // of the read that goes on

	requestID string // with the number of the choice, of which ids of calls are made
	index     int

	// By the tokens that open and close reasoning.
	bytes           func(engine.TokenID) []byte // of a token; nil: none is white space
	thinking        bool
	answering       bool // the answer proper has begun
	reasoningTokens int
}

// newReading returns nil where an answer is text and nothing else.
func newReading(p *preprocess.Prepared, requestID string, index int) *reading {
	if p.Read == nil {
		return nil
	}
	r := &reading{parser: parser.New(p.Read.Options), how: p.Read, requestID: requestID, index: index}
	r.take = r.pass
	r.thinking, r.answering = r.parser.Thinking(), r.parser.Answering()
	if t := p.Choices[index].Request.Tokenizer; t != nil {
		r.bytes = t.Bytes
	}
	return r
}

// read gives out what is certain of d's text. An answer that ended by itself after
// calls ends with the finish reason tool_calls, which it gives to d: it promises that
// their arguments are whole, so it is not said where a stop string cut them.
func (r *reading) read(d *backend.Delta, give func(parser.Event)) {
	r.give = give
	before := r.parser.Thinking()
	r.parser.Feed(d.Text, r.take)
	r.count(d.TokenIDs, before)
	if d.FinishReason == "" {
		return
	}
	r.parser.Finish(r.take)
	if d.FinishReason == engine.FinishStop && r.parser.Calls() > 0 && !r.parser.Cut() {
		d.FinishReason = finishToolCalls
	}
}

// pass gives an event on.
func (r *reading) pass(e parser.Event) {
	if e.Kind == parser.Reasoning && r.how.HideReasoning {
		return
	}
	if e.Kind == parser.Call && e.ID == "" {
		e.ID = r.callID(e.Index)
	}
	r.give(e)
}

// count counts the tokens of the reasoning, the markers included. Where tokens mark
// it they are counted one by one, because steps come with as many as there are, else
// by the step that brought them. Once the answer proper has begun a marker is text.
func (r *reading) count(ids []engine.TokenID, before bool) {
	if len(r.how.Closes) == 0 {
		if before || r.parser.Thinking() {
			r.reasoningTokens += len(ids)
		}
		return
	}
	for _, id := range ids {
		switch {
		case r.thinking:
			r.reasoningTokens++
			r.thinking = !slices.Contains(r.how.Closes, id)
		case !r.answering && slices.Contains(r.how.Opens, id):
			r.reasoningTokens++
			r.thinking = true
		case !r.answering:
			r.answering = !r.isBlank(id) && !slices.Contains(r.how.Closes, id)
		}
	}
	if r.parser.Answering() {
		r.thinking, r.answering = false, true // a call ends the reasoning, without a marker
	}
}

// isBlank reports whether a token is white space.
func (r *reading) isBlank(id engine.TokenID) bool {
	return r.bytes != nil && len(bytes.TrimSpace(r.bytes(id))) == 0
}

// finishToolCalls is the API's reason of an answer that ends with calls; engines know
// nothing of it.
const finishToolCalls engine.FinishReason = "tool_calls"

const (
	callIDLetters      = 24
	shortCallIDLetters = 9 // Mistral's templates refuse ids that have not so many letters and digits
)

// callID is the id of a call to which the model gave none.
func (r *reading) callID(index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", r.requestID, r.index, index))
	if r.how.ShortCallIDs {
		return letters(sum[:], shortCallIDLetters)
	}
	return "call_" + letters(sum[:], callIDLetters)
}

// letters makes n letters and digits of random bytes.
func letters(random []byte, n int) string {
	b := []byte(base64.RawStdEncoding.EncodeToString(random))[:n]
	for i, c := range b {
		switch c {
		case '+':
			b[i] = 'p'
		case '/':
			b[i] = 's'
		}
	}
	return string(b)
}
