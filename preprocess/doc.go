// Package preprocess is the preprocessor: it decodes and validates a request of
// the public API, fills in the defaults, renders the chat template, tokenizes,
// and leaves single-choice requests of the pipeline. After it nothing can be
// wrong with a request that the frontend could have known.
//
// A body goes through four steps:
//
//	scan      the bytes are JSON, within limits, valid Unicode; split into fields  scan.go
//	read      each field by its own rule, into a request with the model's defaults  fields.go, rules.go, values.go
//	prompt    messages are checked and rendered (chat.go, messages.go), which the
//	          items of a response become first (responsesinput.go), with those of
//	          earlier ones before them (responsesrecall.go), or the prompts of a
//	          completion read (completion.go)
//	choices   one pipeline request for each prompt and choice                       choices.go
//
// What tools a request has is checked before its messages are rendered (tools.go). How
// the text of its answer is to be read follows from them and from the end of the prompt
// (reading.go); where an answer must be calls, or JSON beside them, that becomes a
// constraint (calls.go, of several schemas merge.go).
//
// Messages, tools and template arguments stay the bytes that the client sent,
// because the order of keys and the spelling of numbers can be seen in a prompt.
//
// Every error names the parameter at fault. Apart from names, positions and
// numbers, none of them and no log record holds anything of a prompt.
package preprocess
