package vllm

import "baton/engine"

// Parameters is what vLLM makes of the parameters of a request.
var Parameters = engine.Parameters{
	engine.RepetitionPenalty: {Meaning: "prompt and output"},
	engine.PresencePenalty: {Fidelity: engine.Compensated, Meaning: "output",
		Note: "by a bias, until a token of before the move comes again: then it counts twice"},
	engine.FrequencyPenalty: {Fidelity: engine.Compensated, Meaning: "output",
		Note: "by a bias: exact, but for the clamp to ±100 and with a repetition_penalty, which scales a biased token"},
	engine.Seed: {Fidelity: engine.Redrawn, Meaning: "vLLM's generator",
		Note: "kept: the same answer where the engine keys its noise by position, which cannot be told from outside"},
	engine.IgnoreEOS: {Meaning: "end ids are written"},

	engine.JSONSchema:    {Fidelity: engine.Restarts},
	engine.JSONObject:    {Fidelity: engine.Restarts},
	engine.Regex:         {Fidelity: engine.Restarts},
	engine.Choice:        {Fidelity: engine.Restarts},
	engine.Grammar:       {Fidelity: engine.Restarts, Note: "in the notation of the server's backend: EBNF or Lark"},
	engine.StructuralTag: {Fidelity: engine.Restarts},
}
