package preprocess

import (
	"maps"
	"math"

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
	responsesAPI  = &api{fields: join(commonFields, responsesFields), defaultTokens: unboundedTokens, flatTools: true}
	completionAPI = &api{fields: join(commonFields, completionFields), defaultTokens: defaultCompletionTokens, addSpecial: true}
)

func join(parts ...map[string]reader) map[string]reader {
	all := make(map[string]reader)
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// commonFields are known to chat and completions, and to responses where it has no
// other name for them. OpenAI's names come first, then
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
	"structured_outputs":        readStructuredOutputs,
	"guided_json":               readSchema,
	"guided_regex":              readRegex,
	"guided_choice":             readChoice,
	"guided_grammar":            readGrammar,
	"guided_json_object":        readJSONObject,
	"guided_decoding_backend":   ignored, // how a constraint is enforced is the server's matter
	"guided_whitespace_pattern": whitespacePattern,
	"structural_tag":            guidedElsewhere, // SGLang's and llama.cpp's names
	"json_schema":               guidedElsewhere,
	"regex":                     guidedElsewhere,
	"ebnf":                      guidedElsewhere,
	"grammar":                   guidedElsewhere,

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
	"parallel_tool_calls": boolean(func(r *request) *bool { return &r.parallelCalls }),
	"include_reasoning":   boolean(func(r *request) *bool { return &r.includeReasoning }),
	"reasoning_effort":    keep(func(r *request) **value { return &r.reasoningEffort }, "a string"),
	"prediction":          ignored, // a hint that makes nothing but speed

	"documents":              keep(func(r *request) **value { return &r.documents }, "an array"),
	"chat_template_kwargs":   readKwargs,
	"add_generation_prompt":  boolean(func(r *request) *bool { v := new(bool); r.addGenerationPrompt = v; return v }),
	"continue_final_message": boolean(func(r *request) *bool { return &r.continueFinalMessage }),

	"max_output_tokens":    refused("here it is 'max_tokens'"),
	"instructions":         refused("here it is a message of the role 'system'"),
	"previous_response_id": refused("it is a parameter of /v1/responses; here 'messages' holds the whole conversation"),

	"echo":                refusedIfTrue("it is for completions"), // vLLM repeats the last message
	"functions":           refusedUnlessEmpty("it is the old form of 'tools'"),
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

var (
	whitespacePattern = refused("white space is the server's matter")
	guidedElsewhere   = refused("it is one engine's name; 'response_format' and 'structured_outputs' constrain an answer of every engine")
)

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
