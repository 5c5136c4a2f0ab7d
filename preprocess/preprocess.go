// Package preprocess is the preprocessor: it decodes and validates a request of
// the public API, fills in the defaults, renders the chat template, tokenizes,
// and leaves single-choice requests of the pipeline. After it nothing can be
// wrong with a request that the frontend could have known.
package preprocess

import (
	"baton/backend"
)

// Prepared is one API request, ready to run.
type Prepared struct {
	Model   string   // public name, as in every chunk
	Choices []Choice // in index order: prompt index × n + i

	Stream          bool
	IncludeUsage    bool // stream_options.include_usage
	ContinuousUsage bool // stream_options.continuous_usage_stats
	ReturnTokenIDs  bool
	Logprobs        bool
	TopLogprobs     int
	PromptTokens    int // of every prompt once, whatever n is
	UnknownFields   []string
}

// A Choice is one element of the answer's choices array.
type Choice struct {
	Request *backend.Request
	Echo    string // completions with echo: the prompt's text, before the answer
}
