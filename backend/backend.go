package backend

import (
	"context"
	"errors"
	"iter"

	"baton/engine"
	"baton/tokenizer"
)

// A Request is one choice: a tokenized request and how its tokens become text.
type Request struct {
	Tokens    *engine.Request
	Tokenizer *tokenizer.Tokenizer

	Stop        []string // stop strings; matched here, never sent to a worker; bounded by the preprocessor
	IncludeStop bool     // the matched stop string (or end token) is part of the text
	SkipSpecial bool     // special tokens have no text, but for those of KeepSpecial
	// KeepSpecial are special tokens that have text nevertheless, because somebody
	// reads the text who waits for them: the markers of a tool call, say.
	KeepSpecial []engine.TokenID
}

// A Delta is what one step added to the text of a choice. Its slices are valid
// until the next iteration.
type Delta struct {
	Text     []byte           // valid UTF-8 that is final: nothing of it is taken back
	TokenIDs []engine.TokenID // the ids of this step, the end id included
	Logprobs []Logprob        // one per token whose text is out, aligned with Text over the whole stream

	CompletionTokens int // ids generated so far, the end id included

	FinishReason engine.FinishReason
	// Stop is what ended the generation, in vLLM's terms: "" for EOS, budget and
	// context, else the stop string; StopID the matched stop token id, or -1.
	Stop   string
	StopID engine.TokenID
}

// A Logprob is one token with its text.
type Logprob struct {
	Token   []byte // the token's own bytes, which may be no whole character
	Logprob float64
	Top     []TopLogprob
}

// A TopLogprob is one alternative.
type TopLogprob struct {
	Token   []byte
	Logprob float64
}

// A Stream follows the contract of engine.Stream: it ends with a Delta that has
// a FinishReason, or with one *engine.Error.
type Stream = iter.Seq2[Delta, error]

// A Backend makes text of the tokens of an engine.
type Backend struct {
	tokens engine.Engine
}

// New returns a Backend over tokens.
func New(tokens engine.Engine) *Backend { return &Backend{tokens: tokens} }

// Generate returns the choice as a single-use sequence. Nothing is sent before
// the caller ranges over it. Errors are those of the token stream.
func (b *Backend) Generate(ctx context.Context, req *Request) Stream {
	return func(yield func(Delta, error) bool) {
		c := newChoice(req)
		c.yield = yield
		b.tokens.Generate(ctx, req.Tokens)(c.take) // cheaper than a range statement, whose variables escape one by one
		switch {
		case c.left:
		case c.matched:
			yield(c.out, nil) // the work on the worker has ended, now the client is told
		case !c.finished:
			yield(Delta{}, &engine.Error{Kind: engine.Internal, Err: errNoFinish})
		}
	}
}

// take takes one delta of tokens. It returns false when the choice is over:
// finished by a stop string, failed, or left by its consumer.
func (c *choice) take(d engine.Delta, err error) bool {
	switch {
	case c.left || c.matched:
		return false
	case err != nil:
		c.left = true
		c.yield(Delta{}, err)
		return false
	case c.finished:
		return true // the sequence closes itself
	}
	out := c.step(d)
	if !c.matched && !c.yield(out, nil) {
		c.left = true
	}
	return !c.matched && !c.left
}

var errNoFinish = errors.New("backend: the token stream ended without a finish reason")
