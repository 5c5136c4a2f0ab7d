package preprocess

import (
	"math"
	"strconv"

	"baton/engine"
	"baton/openai"
)

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

// readExtension looks into the reference frontend's own object. It is an unknown
// field in all but one respect: guided decoding must not be lost in it.
func readExtension(r *request, v *value) *openai.Error {
	if v.isObject() {
		for key, m := range v.members() {
			if read := guidedExtensions[key]; read != nil && !m.isNull() {
				found := *m
				if err := read(r, &found); err != nil {
					return err
				}
			}
		}
	}
	r.unknown = append(r.unknown, v.key)
	return nil
}

var guidedExtensions = map[string]reader{
	"guided_json":               readSchema,
	"guided_regex":              readRegex,
	"guided_choice":             readChoice,
	"guided_grammar":            readGrammar,
	"guided_whitespace_pattern": whitespacePattern,
}

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
	return openai.Unsupported("function_call", "it is the old form of 'tool_choice'")
}
