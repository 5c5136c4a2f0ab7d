package preprocess

import (
	"baton/engine"
	"baton/model"
	"baton/openai"
	"baton/responsestore"
)

// An api is what differs between the endpoints.
type api struct {
	fields        map[string]reader // every known field
	defaultTokens int               // budget of a request that gives none
	addSpecial    bool              // the tokenizer adds its own ids, unless the body says otherwise
	flatTools     bool              // a tool describes its function itself
}

// A reader takes over the value of one field, which is not null.
type reader func(r *request, v *value) *openai.Error

// A request is a body that was read: each field checked by itself, the model's
// defaults where the body says nothing.
type request struct {
	model *model.Model

	sampling engine.SamplingParams
	n        int

	maxTokens           *int // nil = absent
	maxCompletionTokens *int // the newer name; the smaller of both counts
	minTokens           int
	stop                []string
	stopIDs             []engine.TokenID
	ignoreEOS           bool
	includeStop         bool
	skipSpecial         bool
	addSpecial          bool // the tokenizer adds its own ids around a text

	logprobs    bool
	topLogprobs *int // nil = absent
	echo        bool

	priority  int
	cacheSalt string

	constraint    *engine.Constraint // nil = none
	constrainedBy string             // the parameter that gave it
	ofMessages    bool               // it is for messages: an answer that must be calls has none
	thought       *engine.Thought    // before the constrained answer; nil = none

	stream          bool
	streamOptions   *value // nil = absent
	includeUsage    bool
	continuousUsage bool
	returnTokenIDs  bool

	// Of chat.
	messages, tools, documents, kwargs *value // nil = absent
	toolChoice                         *value // nil = absent
	flatTools                          bool   // see api
	tooling                            tooling
	parallelCalls                      bool
	includeReasoning                   bool
	reasoningEffort                    *value // nil = absent
	addGenerationPrompt                *bool  // nil = absent
	continueFinalMessage               bool

	prompt *value // of completions; nil = absent

	// Of responses. What is nil is absent.
	input, instructions, textFormat, verbosity, reasoningSummary, metadata, maxToolCalls, previousID *value

	store  bool                 // the response may be kept
	toKeep *responsestore.Items // the conversation that is to be kept with it; nil = it is not

	unknown []string
}

// maxReportedUnknown bounds how many unknown fields of one request are told.
const maxReportedUnknown = 32

// read scans a body and reads its fields. The first thing that is wrong, in the
// order of the body, is the error; the model comes before everything else,
// because defaults and vocabulary are its.
func (p *Preprocessor) read(a *api, body []byte) (*request, *openai.Error) {
	fields, err := scan(body)
	if err != nil {
		return nil, err
	}
	m, err := p.findModel(fields)
	if err != nil {
		return nil, err
	}
	r := newRequest(m, a)
	for i := range fields {
		v := &fields[i]
		field, known := a.fields[v.key]
		switch {
		case !known && len(r.unknown) < maxReportedUnknown:
			r.unknown = append(r.unknown, printable(v.key))
		case !known || v.isNull():
		default:
			if err := field(r, v); err != nil {
				return nil, err
			}
		}
	}
	p.unknown.report(r.unknown)
	return r, r.checkTogether(a)
}

func (p *Preprocessor) findModel(fields []value) (*model.Model, *openai.Error) {
	for i := range fields {
		v := &fields[i]
		if v.key != "model" || v.isNull() {
			continue
		}
		name, err := v.text()
		if err != nil {
			return nil, err
		}
		if name == "" {
			return nil, v.invalid("must be the name of a model.")
		}
		if m, ok := p.models.Get(name); ok {
			return m, nil
		}
		if p.models.Known(name) {
			return nil, openai.ModelNotReady(name, notReadyRetrySeconds)
		}
		return nil, openai.ModelNotFound(name, p.options.Served())
	}
	return nil, openai.Missing("model")
}

// notReadyRetrySeconds is when to ask again for a model that no worker has shown
// yet: workers are looked for every few seconds.
const notReadyRetrySeconds = 5

// newRequest returns a request with the defaults: the model's own, then OpenAI's.
func newRequest(m *model.Model, a *api) *request {
	d := m.Defaults
	return &request{
		model: m,
		sampling: engine.SamplingParams{
			Temperature:       or(d.Temperature, 1),
			TopP:              or(d.TopP, 1),
			TopK:              or(d.TopK, 0),
			MinP:              or(d.MinP, 0),
			RepetitionPenalty: or(d.RepetitionPenalty, 1),
		},
		n:                1,
		skipSpecial:      true,
		addSpecial:       a.addSpecial,
		flatTools:        a.flatTools,
		parallelCalls:    true,
		includeReasoning: true,
		store:            true,
	}
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// checkTogether looks at fields that depend on each other.
func (r *request) checkTogether(a *api) *openai.Error {
	if r.streamOptions != nil && !r.stream {
		return openai.InvalidRequest("stream_options", "'stream_options' is only allowed when 'stream' is true.")
	}
	if limit := or(r.outputLimit(), a.defaultTokens); r.minTokens > limit {
		return openai.InvalidRequest("min_tokens", "'min_tokens' (%d) must not be greater than the maximum number of tokens (%d).", r.minTokens, limit)
	}
	if r.topLogprobs != nil && *r.topLogprobs > 0 && !r.logprobs {
		return openai.InvalidRequest("top_logprobs", "'top_logprobs' is only allowed when 'logprobs' is true.")
	}
	if r.echo && r.logprobs {
		return openai.Unsupported("echo", "log-probabilities of the prompt cannot be given, so 'echo' and 'logprobs' exclude each other")
	}
	if r.continueFinalMessage && r.addGenerationPrompt != nil && *r.addGenerationPrompt {
		return openai.InvalidRequest("continue_final_message", "'continue_final_message' and 'add_generation_prompt' cannot both be true.")
	}
	return r.checkTools()
}

// outputLimit is the smaller of the two limits that the body gives, nil if it
// gives none.
func (r *request) outputLimit() *int {
	switch {
	case r.maxTokens == nil:
		return r.maxCompletionTokens
	case r.maxCompletionTokens == nil || *r.maxTokens < *r.maxCompletionTokens:
		return r.maxTokens
	}
	return r.maxCompletionTokens
}
