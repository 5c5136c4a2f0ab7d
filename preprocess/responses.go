package preprocess

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"baton/engine"
	"baton/openai"
)

// The fields of POST /v1/responses.

const (
	notStored       = "responses are not stored; send the whole conversation as 'input'"
	noConversations = "there are no conversations by themselves; 'previous_response_id' goes on from a response, or send the whole conversation as 'input'"
)

var responsesFields = map[string]reader{
	"input":             keep(func(r *request) **value { return &r.input }, ""),
	"instructions":      keep(func(r *request) **value { return &r.instructions }, "a string"),
	"max_output_tokens": limit(func(r *request) **int { return &r.maxTokens }),
	"include":           readInclude,
	"top_logprobs":      readResponsesTopLogprobs,
	"text":              readTextConfig,
	"reasoning":         readReasoning,
	"metadata":          readMetadata,
	"max_tool_calls":    readMaxToolCalls,
	"truncation":        readTruncation,

	"tools":               keep(func(r *request) **value { return &r.tools }, "an array"),
	"tool_choice":         keep(func(r *request) **value { return &r.toolChoice }, ""),
	"parallel_tool_calls": boolean(func(r *request) *bool { return &r.parallelCalls }),

	"chat_template_kwargs": readKwargs,
	"include_reasoning":    boolean(func(r *request) *bool { return &r.includeReasoning }),

	"prompt_cache_options": ignored,
	"client_metadata":      ignored, // Codex'

	"previous_response_id": keep(func(r *request) **value { return &r.previousID }, "a string"),
	"store":                boolean(func(r *request) *bool { return &r.store }),
	"conversation":         refused(noConversations),
	"prompt":               refused("there are no stored prompts; use 'instructions' and 'input'"),
	"background":           refusedIfTrue("an answer is given to the request that asks for it, streamed or as a whole"),
	"context_management":   refusedUnlessEmpty("the input is not changed"),
	"moderation":           refused("there is no moderation"),
	"return_token_ids":     refusedIfTrue("a response has no place for them"),
	"chat_template":        refused("the model's own template is used"),
	"continue_final_message": refusedIfTrue(
		"it is a parameter of /v1/chat/completions"),

	"n":                     readOneAnswer,
	"messages":              refused("here it is 'input'"),
	"max_tokens":            refused("here it is 'max_output_tokens'"),
	"max_completion_tokens": refused("here it is 'max_output_tokens'"),
	"response_format":       refused("here it is 'text.format'"),
	"reasoning_effort":      refused("here it is 'reasoning.effort'"),
	"verbosity":             refused("here it is 'text.verbosity'"),
	"logprobs":              refused("here 'include' asks for message.output_text.logprobs"),
	"functions":             refused("here it is 'tools'"),
	"function_call":         refused("here it is 'tool_choice'"),
}

const outputLogprobs = "message.output_text.logprobs"

// includable are the values of include. Apart from the first they ask for parts of
// items that do not occur in an answer: nothing is encrypted, and tools that the
// server would run are refused.
var includable = []string{
	outputLogprobs, "reasoning.encrypted_content", "file_search_call.results", "web_search_call.results",
	"web_search_call.action.sources", "message.input_image.image_url", "computer_call_output.output.image_url",
	"code_interpreter_call.outputs",
}

func readInclude(r *request, v *value) *openai.Error {
	if !v.isArray() {
		return v.wrongType("an array of strings")
	}
	for _, e := range v.elements() {
		what, err := e.text()
		switch {
		case err != nil:
			return err
		case !slices.Contains(includable, what):
			return e.invalid("there is nothing of this name to include.")
		case what == outputLogprobs:
			r.logprobs = true
		}
	}
	return nil
}

// readResponsesTopLogprobs: whoever asks for alternatives wants to see them, with
// include or without.
func readResponsesTopLogprobs(r *request, v *value) *openai.Error {
	err := readTopLogprobs(r, v)
	if err == nil && *r.topLogprobs > 0 {
		r.logprobs = true
	}
	return err
}

// readTextConfig reads how the text of the answer must be. Verbosity is a wish that
// only models of OpenAI know.
func readTextConfig(r *request, v *value) *openai.Error {
	if !v.isObject() {
		return v.wrongType("an object")
	}
	if verbosity, ok := v.member("verbosity"); ok && !verbosity.isNull() {
		if _, err := verbosity.text(); err != nil {
			return err
		}
		r.verbosity = &verbosity
	}
	format, ok := v.member("format")
	switch {
	case !ok || format.isNull():
		return nil
	case !format.isObject():
		return format.wrongType("an object")
	}
	r.textFormat = &format
	kind, ok := format.member("type")
	if !ok {
		return openai.Missing(format.param() + ".type")
	}
	name, err := kind.text()
	if err != nil {
		return err
	}
	r.ofMessages = name != "text"
	switch name {
	case "text":
		return nil
	case "json_object":
		return r.constrain(&format, &engine.Constraint{JSONObject: true})
	case "json_schema":
		return r.readNamedSchema(&format)
	}
	return kind.invalid("must be text, json_object or json_schema.")
}

// readReasoning reads how much the model should think. What it thinks is given out
// as it is, also as its own summary: how long that is cannot be chosen.
func readReasoning(r *request, v *value) *openai.Error {
	if !v.isObject() {
		return v.wrongType("an object")
	}
	for key, m := range v.members() {
		if m.isNull() || key != "effort" && key != "summary" && key != "generate_summary" {
			continue
		}
		if _, err := m.text(); err != nil {
			return err
		}
		found := *m
		if key == "effort" {
			r.reasoningEffort = &found
		} else {
			r.reasoningSummary = &found
		}
	}
	return nil
}

// Limits of metadata, which are OpenAI's. They bound what an answer repeats.
const (
	maxMetadata           = 16
	maxMetadataKeyBytes   = 256
	maxMetadataValueBytes = 2048
)

func readMetadata(r *request, v *value) *openai.Error {
	if !v.isObject() {
		return v.wrongType("an object")
	}
	n := 0
	for key, m := range v.members() {
		s, err := m.text()
		switch n++; {
		case err != nil:
			return err
		case n > maxMetadata:
			return v.invalid("at most %d entries are allowed.", maxMetadata)
		case len(key) > maxMetadataKeyBytes || len(s) > maxMetadataValueBytes:
			return v.invalid("a key may have at most %d bytes, a value %d.", maxMetadataKeyBytes, maxMetadataValueBytes)
		}
	}
	r.metadata = v
	return nil
}

// readMaxToolCalls: the number is about tools that the server runs, and it runs none.
func readMaxToolCalls(r *request, v *value) *openai.Error {
	_, err := v.integer(1, math.MaxInt32)
	r.maxToolCalls = v
	return err
}

// readTruncation: an input that does not fit is an error either way, because nobody
// can tell what of a conversation may be dropped.
func readTruncation(_ *request, v *value) *openai.Error {
	s, err := v.text()
	if err == nil && s != "auto" && s != "disabled" {
		err = v.invalid("must be auto or disabled.")
	}
	return err
}

func readOneAnswer(_ *request, v *value) *openai.Error {
	n, err := v.integer(1, maxChoicesPerPrompt)
	if err == nil && n > 1 {
		err = openai.Unsupported("n", "a response is one answer")
	}
	return err
}

// echoed are the members of a response that repeat the request, as it was understood.
// They go into lines of a stream, so they are brought onto one.
func (r *request) echoed() []byte {
	var e echo
	e.add("instructions", r.instructions, "null")
	e.number("max_output_tokens", r.maxTokens)
	e.add("max_tool_calls", r.maxToolCalls, "null")
	e.add("metadata", r.metadata, "{}")
	e.raw("parallel_tool_calls", strconv.AppendBool(nil, r.parallelCalls))
	e.add("previous_response_id", r.previousID, "null")
	e.open("reasoning")
	e.add("effort", r.reasoningEffort, "null")
	e.add("summary", r.reasoningSummary, "null")
	e.close()
	e.raw("store", strconv.AppendBool(nil, r.toKeep != nil))
	e.raw("temperature", strconv.AppendFloat(nil, r.sampling.Temperature, 'g', -1, 64))
	e.open("text")
	e.add("format", r.textFormat, `{"type":"text"}`)
	if r.verbosity != nil {
		e.add("verbosity", r.verbosity, "")
	}
	e.close()
	e.add("tool_choice", r.toolChoice, `"auto"`)
	e.add("tools", r.tools, "[]")
	top := or(r.topLogprobs, 0)
	e.number("top_logprobs", &top)
	e.raw("top_p", strconv.AppendFloat(nil, r.sampling.TopP, 'g', -1, 64))
	e.raw("truncation", []byte(`"disabled"`))
	return e.out
}

// An echo is a list of members of a JSON object while it grows.
type echo struct{ out []byte }

func (e *echo) name(name string) {
	if n := len(e.out); n > 0 && e.out[n-1] != '{' {
		e.out = append(e.out, ',')
	}
	e.out = append(append(append(e.out, '"'), name...), `":`...)
}

func (e *echo) raw(name string, json []byte) {
	e.name(name)
	e.out = append(e.out, json...)
}

func (e *echo) number(name string, n *int) {
	if n == nil {
		e.raw(name, []byte("null"))
		return
	}
	e.raw(name, strconv.AppendInt(nil, int64(*n), 10))
}

func (e *echo) open(name string) {
	e.name(name)
	e.out = append(e.out, '{')
}

func (e *echo) close() { e.out = append(e.out, '}') }

// add adds what the client sent, or otherwise.
func (e *echo) add(name string, v *value, otherwise string) {
	if v == nil {
		e.raw(name, []byte(otherwise))
		return
	}
	e.name(name)
	e.out = appendOneLine(e.out, v.raw())
}

// appendOneLine appends JSON without white space between its values. Characters in
// its texts that some clients take for the end of a line are escaped.
func appendOneLine(dst, json []byte) []byte {
	inText := false
	for i := 0; i < len(json); i++ {
		c := json[i]
		switch {
		case inText && c == '\\':
			dst = append(dst, c, json[i+1])
			i++
			continue
		case c == '"':
			inText = !inText
		case !inText && (c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			continue
		case c == 0xC2 || c == 0xE2:
			if escape, size := lineEnd(json[i:]); size > 0 {
				dst = append(dst, escape...)
				i += size - 1
				continue
			}
		}
		dst = append(dst, c)
	}
	return dst
}

// lineEnd returns how a line separator beyond ASCII is escaped, and how long it is;
// 0 if there is none at the beginning of text.
func lineEnd(text []byte) (escape string, size int) {
	for _, c := range [...]struct{ character, escape string }{{"\u0085", `\u0085`}, {"\u2028", `\u2028`}, {"\u2029", `\u2029`}} {
		if bytes.HasPrefix(text, []byte(c.character)) {
			return c.escape, len(c.character)
		}
	}
	return "", 0
}
