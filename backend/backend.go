// Package backend is the backend operator: it turns a stream of token deltas
// into a stream of text deltas. It owns the incremental detokenizer, the stop
// strings and the text of logprobs, and it never learns that a worker changed.
package backend

import (
	"iter"

	"baton/engine"
	"baton/tokenizer"
)

// A Request is one choice: a tokenized request and how its tokens become text.
type Request struct {
	Tokens    *engine.Request
	Tokenizer *tokenizer.Tokenizer

	Stop        []string // stop strings; matched here, never sent to a worker
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
