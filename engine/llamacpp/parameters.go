package llamacpp

import "baton/engine"

// Parameters is what llama.cpp makes of the parameters of a request.
var Parameters = engine.Parameters{
	engine.RepetitionPenalty: {Meaning: "prompt and output"},
	engine.PresencePenalty:   {Meaning: "prompt and output"},
	engine.FrequencyPenalty:  {Meaning: "prompt and output"},
	engine.Seed: {Fidelity: engine.Redrawn, Meaning: "llamacpp",
		Note: "another seed is derived from it, so that the first draws are not those of the first attempt again"},
	engine.MinTokens: {Note: "asked for in two halves, the first without an end"},
	engine.IgnoreEOS: {Meaning: "end ids are never chosen", Note: "not together with an end id among stop_token_ids"},
	engine.Logprobs:  {Note: "-9999 for ids that the server does not show"},
	engine.Priority:  {Fidelity: engine.Unsupported},
	engine.CacheSalt: {Fidelity: engine.Unsupported},
}
