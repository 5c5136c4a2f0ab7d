// Package model knows what a served model is to the frontend: its tokenizer, its
// chat template, its end ids and its defaults, read from a model folder or from
// the header of a .gguf file.
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

	ContextLength int     // from the model's files, in tokens; 0 = unknown
	VocabSize     int     // every id of the model is in [0, VocabSize)
	EOS           []int32 // ids that end a generation
	Defaults      Defaults
}

// Defaults are the sampling defaults of generation_config.json; nil = not given.
type Defaults struct {
	Temperature, TopP, MinP, RepetitionPenalty *float64
	TopK                                       *int
}
