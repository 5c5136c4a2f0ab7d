package preprocess

import (
	"maps"
	"math"
	"strconv"

	"baton/engine"
	"baton/openai"
)

// Limits of single fields.
const (
	maxChoicesPerPrompt = 128  // n
	maxStopStrings      = 64   // stop
	maxStopBytes        = 4096 // each of them
	maxStopIDs          = 1024 // stop_token_ids
	maxLogprobs         = 20   // top_logprobs, and logprobs of completions
	maxCacheSaltBytes   = 1024 // cache_salt
)

var (
	chatAPI       = &api{fields: join(commonFields, chatFields), defaultTokens: unboundedTokens}
	completionAPI = &api{fields: join(commonFields, completionFields), defaultTokens: defaultCompletionTokens, addSpecial: true}
)

func join(parts ...map[string]reader) map[string]reader {
	all := make(map[string]reader)
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// commonFields are known to both endpoints. OpenAI's names come first, then
// those that vLLM adds, then what is known and cannot be honoured.
var commonFields = map[string]reader{
	"model": ignored, // read before everything else

	"temperature":           number(func(r *request) *float64 { return &r.sampling.Temperature }, 0, 2),
	"top_p":                 fraction(func(r *request) *float64 { return &r.sampling.TopP }),
	"presence_penalty":      number(func(r *request) *float64 { return &r.sampling.PresencePenalty }, -2, 2),
	"frequency_penalty":     number(func(r *request) *float64 { return &r.sampling.FrequencyPenalty }, -2, 2),
	"logit_bias":            readLogitBias,
	"seed":                  readSeed,
	"n":                     integer(func(r *request) *int { return &r.n }, 1, maxChoicesPerPrompt),
	"max_tokens":            limit(func(r *request) **int { return &r.maxTokens }),
	"max_completion_tokens": limit(func(r *request) **int { return &r.maxCompletionTokens }),
	"stop":                  readStop,
	"stream":                boolean(func(r *request) *bool { return &r.stream }),
	"stream_options":        readStreamOptions,

	"user":                   ignored,
	"store":                  ignored,
	"metadata":               ignored,
	"service_tier":           ignored,
	"safety_identifier":      ignored,
	"prompt_cache_key":       ignored,
	"prompt_cache_retention": ignored,

	"top_k":                      readTopK,
	"min_p":                      number(func(r *request) *float64 { return &r.sampling.MinP }, 0, 1),
	"repetition_penalty":         readRepetitionPenalty,
	"min_tokens":                 integer(func(r *request) *int { return &r.minTokens }, 0, math.MaxInt32),
	"stop_token_ids":             readStopIDs,
	"ignore_eos":                 boolean(func(r *request) *bool { return &r.ignoreEOS }),
	"include_stop_str_in_output": boolean(func(r *request) *bool { return &r.includeStop }),
	"skip_special_tokens":        boolean(func(r *request) *bool { return &r.skipSpecial }),
	"add_special_tokens":         boolean(func(r *request) *bool { return &r.addSpecial }),
	"priority":                   integer(func(r *request) *int { return &r.priority }, math.MinInt32, math.MaxInt32),
	"cache_salt":                 readCacheSalt,
	"return_token_ids":           boolean(func(r *request) *bool { return &r.returnTokenIDs }),
	"nvext":                      readExtension,

	// How a text is put together from tokens, and where a request comes from:
	// there is only one way here, so there is nothing to choose.
	"spaces_between_special_tokens": ignored,
	"request_id":                    ignored,

	"response_format":           readResponseFormat,
	"structured_outputs":        guided,
	"guided_json":               guided,
	"guided_regex":              guided,
	"guided_choice":             guided,
	"guided_grammar":            guided,
	"guided_json_object":        guided,
	"guided_decoding_backend":   guided,
	"guided_whitespace_pattern": guided,
	"structural_tag":            guided,
	"json_schema":               guided, // SGLang's and llama.cpp's names
	"regex":                     guided,
	"ebnf":                      guided,
	"grammar":                   guided,

	"best_of":                    readBestOf,
	"use_beam_search":            refusedIfTrue("beam search is not available"),
	"return_tokens_as_token_ids": refusedIfTrue("tokens are always given as text; 'return_token_ids' gives their ids"),
	"prompt_logprobs":            refused("log-probabilities of the prompt are not available"),
	"truncate_prompt_tokens":     refused("prompts are not cut"),
	"bad_words":                  refusedUnlessEmpty("words cannot be forbidden; 'logit_bias' can forbid tokens"),
	"allowed_token_ids":          refused("the vocabulary cannot be narrowed"),
	"logits_processors":          refusedUnlessEmpty("logits processors are not available"),
	"thinking_token_budget":      refused("thinking cannot be bounded by itself; 'max_tokens' bounds the whole answer"),
	"repetition_detection":       refused("repetition is not watched"),
	"kv_transfer_params":         refused("key/value transfer is not available"),
	"vllm_xargs":                 refusedUnlessEmpty("arguments of one engine cannot be carried to another"),
	"lora":                       refused("an adapter is chosen by its model name"),
}

var chatFields = map[string]reader{
	"messages":            keep(func(r *request) **value { return &r.messages }, "an array"),
	"logprobs":            boolean(func(r *request) *bool { return &r.logprobs }),
	"top_logprobs":        readTopLogprobs,
	"tools":               keep(func(r *request) **value { return &r.tools }, "an array"),
	"tool_choice":         keep(func(r *request) **value { return &r.toolChoice }, ""),
	"parallel_tool_calls": ignored,
	"reasoning_effort":    keep(func(r *request) **value { return &r.reasoningEffort }, "a string"),
	"prediction":          ignored, // a hint that makes nothing but speed

	"documents":              keep(func(r *request) **value { return &r.documents }, "an array"),
	"chat_template_kwargs":   readKwargs,
	"add_generation_prompt":  boolean(func(r *request) *bool { v := new(bool); r.addGenerationPrompt = v; return v }),
	"continue_final_message": boolean(func(r *request) *bool { return &r.continueFinalMessage }),

	"echo":                refusedIfTrue("it is for completions"), // vLLM repeats the last message
	"functions":           refusedUnlessEmpty("it is the old name of 'tools', and tool calls are not available yet"),
	"function_call":       readFunctionCall,
	"modalities":          readModalities,
	"audio":               refused("the answer is text only"),
	"web_search_options":  refused("there is no web search"),
	"chat_template":       refused("the model's own template is used"),
	"mm_processor_kwargs": refusedUnlessEmpty("images, audio and video are not available"),
}

var completionFields = map[string]reader{
	"prompt":        keep(func(r *request) **value { return &r.prompt }, ""),
	"echo":          boolean(func(r *request) *bool { return &r.echo }),
	"logprobs":      readCompletionLogprobs,
	"suffix":        readSuffix,
	"prompt_embeds": refused("a prompt is text or token ids"),
}

// Readers for fields of one plain type.

func boolean(at func(*request) *bool) reader {
	return func(r *request, v *value) *openai.Error {
		b, err := v.boolean()
		if err == nil {
			*at(r) = b
		}
		return err
	}
}

func integer(at func(*request) *int, low, high int64) reader {
	return func(r *request, v *value) *openai.Error {
		n, err := v.integer(low, high)
		if err == nil {
			*at(r) = int(n)
		}
		return err
	}
}

// limit reads a number of tokens that there may be at most.
func limit(at func(*request) **int) reader {
	return func(r *request, v *value) *openai.Error {
		n, err := v.integer(1, math.MaxInt64)
		if err == nil {
			bounded := int(min(n, math.MaxInt32))
			*at(r) = &bounded
		}
		return err
	}
}

func number(at func(*request) *float64, low, high float64) reader {
	return func(r *request, v *value) *openai.Error {
		f, err := v.number(low, high)
		if err == nil {
			*at(r) = f
		}
		return err
	}
}

// fraction reads a share that is more than nothing.
func fraction(at func(*request) *float64) reader {
	return func(r *request, v *value) *openai.Error {
		f, err := v.number(0, 1)
		if err == nil && f == 0 {
			err = v.invalid("must be greater than 0 and at most 1.")
		}
		if err == nil {
			*at(r) = f
		}
		return err
	}
}

// keep leaves a value for later, when its type is right ("" = any).
func keep(at func(*request) **value, kind string) reader {
	return func(r *request, v *value) *openai.Error {
		if kind != "" && v.kind() != kind {
			return v.wrongType(kind)
		}
		*at(r) = v
		return nil
	}
}

// Readers for what changes nothing, or cannot be honoured.

func ignored(*request, *value) *openai.Error { return nil }

// readKwargs keeps the variables that the client gives to the template. Those
// that the request has fields of its own for are not among them.
func readKwargs(r *request, v *value) *openai.Error {
	if !v.isObject() {
		return v.wrongType("an object")
	}
	for key, m := range v.members() {
		switch key {
		case "messages", "tools", "documents", "add_generation_prompt", "continue_final_message":
			return m.invalid("it is a field of the request itself.")
		case "chat_template", "tokenize":
			return openai.Unsupported(m.param(), "the model's own template is used")
		}
	}
	r.kwargs = v
	return nil
}

func readModalities(_ *request, v *value) *openai.Error {
	if !v.isArray() {
		return v.wrongType("an array of strings")
	}
	for _, e := range v.elements() {
		kind, err := e.text()
		if err != nil {
			return err
		}
		if kind != "text" {
			return openai.Unsupported(e.param(), "the answer is text only")
		}
	}
	return nil
}

// readFunctionCall reads the old name of tool_choice.
func readFunctionCall(_ *request, v *value) *openai.Error {
	if v.isText() && string(v.raw()) == `"none"` {
		return nil
	}
	return openai.Unsupported("function_call", "it is the old name of 'tool_choice', and tool calls are not available yet")
}

func guided(_ *request, v *value) *openai.Error {
	return openai.Unsupported(v.param(), "structured output is not available yet")
}

func refused(why string) reader {
	return func(_ *request, v *value) *openai.Error { return openai.Unsupported(v.param(), why) }
}

func refusedIfTrue(why string) reader {
	return func(_ *request, v *value) *openai.Error {
		if on, err := v.boolean(); err != nil || !on {
			return err
		}
		return openai.Unsupported(v.param(), why)
	}
}

func refusedUnlessEmpty(why string) reader {
	return func(_ *request, v *value) *openai.Error {
		if (v.isArray() || v.isObject()) && v.isEmpty() {
			return nil
		}
		return openai.Unsupported(v.param(), why)
	}
}

// Readers for fields with a rule of their own.

func readSeed(r *request, v *value) *openai.Error {
	n, err := v.integer(math.MinInt64, math.MaxInt64)
	if err == nil {
		r.sampling.Seed = &n
	}
	return err
}

func readTopK(r *request, v *value) *openai.Error {
	n, err := v.integer(-1, math.MaxInt32)
	if err == nil {
		r.sampling.TopK = int(max(n, 0)) // -1 is off, as 0 is
	}
	return err
}

func readRepetitionPenalty(r *request, v *value) *openai.Error {
	f, err := v.number(0, math.MaxFloat64)
	if err == nil && f == 0 {
		err = v.invalid("must be greater than 0.")
	}
	if err == nil {
		r.sampling.RepetitionPenalty = f
	}
	return err
}

func readLogitBias(r *request, v *value) *openai.Error {
	if !v.isObject() {
		return v.wrongType("an object")
	}
	bias := make(map[engine.TokenID]float64)
	for key, m := range v.members() {
		id, err := strconv.ParseUint(key, 10, 31)
		if err != nil || int(id) >= r.model.VocabSize {
			return openai.InvalidRequest("logit_bias", "Invalid value for 'logit_bias': '%s' is no token id; ids are integers from 0 to %d.",
				printable(key), r.model.VocabSize-1)
		}
		value, apiErr := m.number(-100, 100)
		if apiErr != nil {
			return apiErr
		}
		bias[engine.TokenID(id)] = value
	}
	if len(bias) > 0 {
		r.sampling.LogitBias = bias
	}
	return nil
}

func readStop(r *request, v *value) *openai.Error {
	if v.isText() {
		return r.addStop(v)
	}
	if !v.isArray() {
		return v.wrongType("a string or an array of strings")
	}
	for i, e := range v.elements() {
		if i == maxStopStrings {
			return v.invalid("at most %d stop strings are allowed.", maxStopStrings)
		}
		if err := r.addStop(e); err != nil {
			return err
		}
	}
	return nil
}

func (r *request) addStop(v *value) *openai.Error {
	s, err := v.text()
	switch {
	case err != nil:
		return err
	case s == "":
		return v.invalid("a stop string must not be empty.")
	case len(s) > maxStopBytes:
		return v.invalid("a stop string may have at most %d bytes.", maxStopBytes)
	}
	r.stop = append(r.stop, s)
	return nil
}

func readStopIDs(r *request, v *value) *openai.Error {
	if !v.isArray() {
		return v.wrongType("an array of integers")
	}
	for i, e := range v.elements() {
		if i == maxStopIDs {
			return v.invalid("at most %d ids are allowed.", maxStopIDs)
		}
		id, err := r.tokenID(e)
		if err != nil {
			return err
		}
		r.stopIDs = append(r.stopIDs, id)
	}
	return nil
}

// tokenID reads one id of the model's vocabulary. Ids outside go no further: an
// engine may crash on one.
func (r *request) tokenID(v *value) (engine.TokenID, *openai.Error) {
	n, err := v.integer(0, int64(r.model.VocabSize)-1)
	return engine.TokenID(n), err
}

func readStreamOptions(r *request, v *value) *openai.Error {
	if !v.isObject() {
		return v.wrongType("an object")
	}
	r.streamOptions = v
	for key, m := range v.members() {
		var at *bool
		switch key {
		case "include_usage":
			at = &r.includeUsage
		case "continuous_usage_stats":
			at = &r.continuousUsage
		default:
			continue
		}
		if m.isNull() {
			continue
		}
		on, err := m.boolean()
		if err != nil {
			return err
		}
		*at = on
	}
	return nil
}

func readCacheSalt(r *request, v *value) *openai.Error {
	s, err := v.text()
	switch {
	case err != nil:
		return err
	case s == "" || len(s) > maxCacheSaltBytes:
		return v.invalid("must have 1 to %d bytes.", maxCacheSaltBytes)
	}
	r.cacheSalt = s
	return nil
}

func readTopLogprobs(r *request, v *value) *openai.Error {
	n, err := v.integer(0, maxLogprobs)
	if err == nil {
		top := int(n)
		r.topLogprobs = &top
	}
	return err
}

// readCompletionLogprobs reads the old form: one number that means both that
// log-probabilities are wanted and how many alternatives.
func readCompletionLogprobs(r *request, v *value) *openai.Error {
	err := readTopLogprobs(r, v)
	r.logprobs = err == nil
	return err
}

func readBestOf(_ *request, v *value) *openai.Error {
	n, err := v.integer(1, math.MaxInt32)
	if err == nil && n > 1 {
		err = openai.Unsupported("best_of", "answers are not ranked; 'n' gives several")
	}
	return err
}

func readSuffix(_ *request, v *value) *openai.Error {
	s, err := v.text()
	if err == nil && s != "" {
		err = openai.Unsupported("suffix", "text cannot be inserted before a suffix")
	}
	return err
}

func readResponseFormat(_ *request, v *value) *openai.Error {
	if !v.isObject() {
		return v.wrongType("an object")
	}
	kind := ""
	for key, m := range v.members() {
		if key != "type" {
			continue
		}
		var err *openai.Error
		if kind, err = m.text(); err != nil {
			return err
		}
	}
	switch kind {
	case "text":
		return nil
	case "json_object", "json_schema", "structural_tag":
		return openai.Unsupported("response_format", "structured output is not available yet")
	}
	return v.invalid("'type' must be text, json_object, json_schema or structural_tag.")
}

// readExtension looks into the reference frontend's own object. It is an unknown
// field in all but one respect: guided decoding must not be lost in it.
func readExtension(r *request, v *value) *openai.Error {
	if v.isObject() {
		for key, m := range v.members() {
			if _, isGuided := guidedExtensions[key]; isGuided && !m.isNull() {
				return guided(r, m)
			}
		}
	}
	r.unknown = append(r.unknown, v.key)
	return nil
}

var guidedExtensions = map[string]struct{}{
	"guided_json":               {},
	"guided_regex":              {},
	"guided_choice":             {},
	"guided_grammar":            {},
	"guided_decoding_backend":   {},
	"guided_whitespace_pattern": {},
}
