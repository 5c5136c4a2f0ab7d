package preprocess

import (
	"slices"

	"baton/backend"
	"baton/engine"
	"baton/openai"
)

const (
	// maxChoices bounds prompts × n. Ids of choices have three digits, and
	// openai-go's accumulator gives up at 1,024.
	maxChoices = 1000

	defaultCompletionTokens = 16 // OpenAI's, of /v1/completions

	// unboundedTokens is the budget of a chat for which nobody knows the
	// context: more than any context there is.
	unboundedTokens = 16 << 20
)

func tooManyChoices(param string) *openai.Error {
	return openai.InvalidRequest(param, "At most %d answers may be asked for at once ('n' for each prompt).", maxChoices)
}

// prepare makes a request of the pipeline for each prompt and choice.
func (p *Preprocessor) prepare(requestID string, a *api, r *request, prompts []prompt) (*Prepared, *openai.Error) {
	if len(prompts)*r.n > maxChoices {
		return nil, tooManyChoices("n")
	}
	prepared := &Prepared{
		Model:           r.model.Name,
		Choices:         make([]Choice, 0, len(prompts)*r.n),
		Stream:          r.stream,
		IncludeUsage:    r.includeUsage,
		ContinuousUsage: r.continuousUsage,
		ReturnTokenIDs:  r.returnTokenIDs,
	}

	contextLength := p.options.ContextLength(r.model.Name)
	if contextLength <= 0 {
		contextLength = r.model.ContextLength
	}
	for _, prompt := range prompts {
		budget, err := a.budget(r, prompt, contextLength)
		if err != nil {
			return nil, err
		}
		prepared.PromptTokens += len(prompt.ids)
		prepared.Read = prompt.read // of chat, which has one prompt
		for i := range r.n {
			index := len(prepared.Choices)
			tokens := r.tokens(prompt, budget, i)
			tokens.ID = engine.SubID(requestID, "-", index, 3)
			tokens.ContextLength = contextLength
			prepared.Choices = append(prepared.Choices, Choice{
				Request: &backend.Request{
					Tokens:      tokens,
					Tokenizer:   r.model.Tokenizer,
					Stop:        r.stop,
					IncludeStop: r.includeStop,
					SkipSpecial: r.skipSpecial,
					KeepSpecial: prompt.read.keeps(),
				},
				Echo: prompt.echo,
			})
		}
	}
	return prepared, nil
}

// budget is how many tokens the answer may have: what the client asks for, as
// far as the context has room.
func (a *api) budget(r *request, prompt prompt, contextLength int) (int, *openai.Error) {
	room := unboundedTokens
	if contextLength > 0 {
		room = contextLength - len(prompt.ids)
	}
	if room < 1 {
		return 0, openai.ContextLengthExceeded(prompt.param, len(prompt.ids), contextLength)
	}
	return min(or(r.outputLimit(), a.defaultTokens), room), nil
}

// tokens is the request for choice i of a prompt. Choices share what is
// immutable in the pipeline anyway.
func (r *request) tokens(prompt prompt, budget, i int) *engine.Request {
	sampling := r.sampling
	if sampling.Seed != nil {
		seed := *sampling.Seed + int64(i) // may wrap around, which makes a seed like any other
		sampling.Seed = &seed
	}
	out := engine.OutputOptions{Logprobs: r.logprobs}
	if r.logprobs {
		out.TopLogprobs = or(r.topLogprobs, 0)
	}
	return &engine.Request{
		Model:     r.model.Name,
		TokenIDs:  slices.Clip(prompt.ids), // whoever appends to it gets a copy
		VocabSize: r.model.VocabSize,
		Sampling:  sampling,
		Stop: engine.StopConditions{
			MaxTokens: budget,
			MinTokens: min(r.minTokens, budget),
			TokenIDs:  r.stopIDs,
			EOS:       r.model.EOS,
			IgnoreEOS: r.ignoreEOS,
		},
		Output: out,

		Constraint: r.constraint,
		Thought:    r.thought,
		HoldBack:   r.constraint != nil && !r.stream, // nobody is shown a part of it
		Priority:   r.priority,
		CacheSalt:  r.cacheSalt,
	}
}
