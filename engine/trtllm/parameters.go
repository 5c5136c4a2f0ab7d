package trtllm

import (
	"maps"

	"baton/engine"
)

// Parameters is what TensorRT-LLM makes of the parameters of a request, in the
// versions that have prompt_ignore_length (1.2 is the first that was seen with it).
var Parameters = engine.Parameters{
	engine.RepetitionPenalty: {Meaning: "prompt and output"},
	engine.PresencePenalty:   {Meaning: "output", Note: "the engine is told how much of the prompt not to count"},
	engine.FrequencyPenalty:  {Meaning: "output", Note: "the engine is told how much of the prompt not to count"},
	engine.Seed: {Fidelity: engine.Redrawn, Meaning: "TensorRT-LLM's generator",
		Note: "another seed is derived from it, so that the first draws are not those of the first attempt again"},
	engine.LogitBias: {Note: "the server needs its tokenizer for it"},
	engine.MinTokens: {Note: "asked for in two halves, the first without an end"},
	engine.IgnoreEOS: {Meaning: "end ids are written"},
	engine.Logprobs: {Fidelity: engine.Unsupported,
		Note: "but for the sampled token's own (top_logprobs 0): the server names the others by their text"},
	engine.Priority:  {Fidelity: engine.Unsupported, Note: "before the version that has the field"},
	engine.CacheSalt: {Fidelity: engine.Unsupported},

	engine.JSONSchema:    {Fidelity: engine.Restarts, Note: "like all constraints only where guided decoding was switched on, and not with min_tokens"},
	engine.JSONObject:    {Fidelity: engine.Restarts},
	engine.Regex:         {Fidelity: engine.Restarts},
	engine.Choice:        {Fidelity: engine.Restarts},
	engine.Grammar:       {Fidelity: engine.Restarts, Note: "in the notation of the server's backend: EBNF, or Lark for llguidance"},
	engine.StructuralTag: {Fidelity: engine.Restarts},
}

// parametersOf is the table of a server that knows these fields.
func parametersOf(ignoreLength, priority bool) engine.Parameters {
	if ignoreLength && !priority {
		return Parameters
	}
	of := maps.Clone(Parameters)
	if !ignoreLength {
		of[engine.PresencePenalty] = engine.Support{Meaning: "prompt and output"}
		of[engine.FrequencyPenalty] = engine.Support{Meaning: "prompt and output"}
	}
	if priority {
		of[engine.Priority] = engine.Support{Note: "where the engine was started with a waiting queue by priority"}
	}
	return of
}
