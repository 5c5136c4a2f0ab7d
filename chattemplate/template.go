package chattemplate

import (
	"encoding/json"
	"time"
)

// A Template is a compiled chat template. It is immutable: any number of
// goroutines may render it at the same time.
type Template struct {
	source string
}

// Parse compiles a template. Templates come from a model's files, so it is
// meant to be called once per model, not per request.
//
// The error is a *SyntaxError when the source is no template, or a *LimitError
// when it is larger or nested deeper than a chat template has any reason to be.
func Parse(source string) (*Template, error) {
	return nil, &SyntaxError{Line: 1, Message: "the parser is not there yet"}
}

// Render writes the prompt for one conversation.
//
// The error is a *RaisedError when the template itself refused the
// conversation with raise_exception, an *InputError when the conversation is
// not what the template can work with, and a *LimitError when rendering would
// have taken more than its share of time or memory. All three are the
// client's to repair. The text is empty whenever there is an error.
func (t *Template) Render(in Input) (string, error) {
	return "", &InputError{Message: "the renderer is not there yet"}
}

// Input is what one request gives to the template.
//
// The JSON fields are the request's own bytes, because what a decoder into Go
// maps would lose can be seen in the prompt: the order of keys, and whether a
// number was written 1 or 1.0. Bytes that are not UTF-8 and escapes of lone
// surrogates become U+FFFD, as in encoding/json.
type Input struct {
	Messages  json.RawMessage // an array of objects, required
	Tools     json.RawMessage // an array of objects; absent or null is None
	Documents json.RawMessage // an array of objects; absent or null is None

	// AddGenerationPrompt asks for the header of the answer at the end.
	AddGenerationPrompt bool
	// ContinueFinalMessage leaves the last message open, so that the model goes
	// on writing it. It cannot be combined with AddGenerationPrompt.
	ContinueFinalMessage bool
	// Normalize prepares the messages as transformers 5 does before a template
	// sees them: members that are null are dropped, and reasoning is given under
	// each of the names reasoning_content and thinking, whichever of
	// reasoning_content, thinking and reasoning it came under.
	Normalize bool

	// Kwargs is the object chat_template_kwargs of the request: its members
	// become variables of the template, before the special tokens. A name that
	// this struct sets itself is an *InputError, as it is in transformers.
	Kwargs json.RawMessage

	// SpecialTokens are the tokenizer's named special tokens, bos_token and the
	// like. SpecialTokens(config) reads them from tokenizer_config.json.
	SpecialTokens map[string]string

	// Now is what strftime_now tells, in its own time zone. The zero value means
	// the time of the call.
	Now time.Time
}
