// Package model knows what a served model is to the frontend: its tokenizer, its
// chat template, its end ids and its defaults.
//
// A [Model] is read from a model folder ([Load], folder.go) or from the header
// of a .gguf file (ggufmodel.go). A hub id is found in the local hub cache, or
// fetched into it while other models serve (place.go, fetch.go). What a template can
// take (content as a list of parts, tool arguments as text) is found out by trying
// it once (shape.go).
//
// Models with the same tokenizer.json share one tokenizer (tokenizers.go).
//
// A [Set] says which model belongs to which public name, by the rules of the
// flags --model-path and --served-model-name (names.go) and by what the workers
// say of themselves.
//
// Every error is one sentence that names the file and says what to do.
package model
