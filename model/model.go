package model

import (
	"baton/chattemplate"
	"baton/tokenizer"
)

// A Model is immutable after loading.
type Model struct {
	Name      string // public name
	Path      string // folder or file it was read from
	Tokenizer *tokenizer.Tokenizer

	Template     *chattemplate.Template // nil: the model has none, chat is a 400
	ToolTemplate *chattemplate.Template // used when tools are given; nil: Template
	// SpecialTokens are passed to the template by name: bos_token, eos_token, …
	SpecialTokens map[string]string
	// Shape says in which form the templates take their input.
	Shape Shape

	// Formats say how the model writes tool calls and reasoning.
	Formats Formats

	ContextLength int     // from the model's files, in tokens; 0 = unknown
	VocabSize     int     // every id of the model is in [0, VocabSize)
	EOS           []int32 // ids that end a generation
	Defaults      Defaults

	digest func() Digest // computed once, when two models are to be compared
}

// Defaults are the sampling defaults of generation_config.json; nil = not given.
type Defaults struct {
	Temperature, TopP, MinP, RepetitionPenalty *float64
	TopK                                       *int
}

// Digest identifies the tokenizer: models with the same digest turn the same
// text into the same ids, and ids into the same text.
func (m *Model) Digest() Digest { return m.digest() }

// TemplateFor returns the template of a conversation, nil if there is none.
func (m *Model) TemplateFor(hasTools bool) *chattemplate.Template {
	if hasTools && m.ToolTemplate != nil {
		return m.ToolTemplate
	}
	return m.Template
}
