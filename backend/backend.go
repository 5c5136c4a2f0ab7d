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
	SkipSpecial bool     // special tokens have no text
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
		for d, err := range b.tokens.Generate(ctx, req.Tokens) {
			if err != nil {
				yield(Delta{}, err)
				return
			}
			if c.finished {
				continue // the sequence closes itself
			}
			out := c.step(d)
			if c.matched {
				break // which ends the work on the worker; then the client is told
			}
			if !yield(out, nil) {
				return
			}
		}
		switch {
		case c.matched:
			yield(c.out, nil)
		case !c.finished:
			yield(Delta{}, &engine.Error{Kind: engine.Internal, Err: errNoFinish})
		}
	}
}

var errNoFinish = errors.New("backend: the token stream ended without a finish reason")
