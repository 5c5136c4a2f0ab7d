package llamacpp

import (
	"strconv"

	"baton/engine"
)

// counted are the tokens over which all three penalties count.
var counted = "the last " + strconv.Itoa(penaltyWindow) + " tokens, prompt included"

// Parameters is what llama.cpp makes of the parameters of a request.
var Parameters = engine.Parameters{
	engine.RepetitionPenalty: {Meaning: counted},
	engine.PresencePenalty:   {Meaning: counted},
	engine.FrequencyPenalty:  {Meaning: counted},
	engine.Seed: {Fidelity: engine.Redrawn, Meaning: "llama.cpp's generator",
		Note: "another seed is derived from it, so that the first draws are not those of the first attempt again"},
	engine.MinTokens: {Note: "asked for in two halves, the first without an end"},
	engine.IgnoreEOS: {Meaning: "end ids are never chosen", Note: "not together with an end id among stop_token_ids"},
	engine.Logprobs:  {Note: "-9999 for ids that the server does not show"},
	engine.Priority:  {Fidelity: engine.Unsupported},
	engine.CacheSalt: {Fidelity: engine.Unsupported},

	engine.JSONSchema: {Fidelity: engine.Restarts, Note: "like all constraints not with min_tokens"},
	engine.JSONObject: {Fidelity: engine.Restarts},
	engine.Regex:      {Fidelity: engine.Unsupported},
	engine.Choice:     {Fidelity: engine.Restarts, Note: "as a grammar"},
	engine.Grammar:    {Fidelity: engine.Restarts, Note: "GBNF"},

	engine.StructuralTag: {Fidelity: engine.Unsupported},
}
