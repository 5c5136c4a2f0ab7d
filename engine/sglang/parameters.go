package sglang

import (
	"maps"

	"baton/engine"
)

// Parameters is what SGLang makes of the parameters of a request, on a server that
// was started with all that they need.
var Parameters = engine.Parameters{
	engine.RepetitionPenalty: {Fidelity: engine.Forgotten, Meaning: "output",
		Note: "tokens of before the move are not counted after it; at most 2"},
	engine.PresencePenalty: {Fidelity: engine.Compensated, Meaning: "output",
		Note: "by a bias, until a token of before the move comes again: then it counts twice"},
	engine.FrequencyPenalty: {Fidelity: engine.Compensated, Meaning: "output",
		Note: "by a bias: exact, but with a repetition_penalty, which scales the engine's part and not the bias"},
	engine.Seed: {Meaning: "SGLang's generator",
		Note: "with --enable-deterministic-inference, which keys the noise by position; without it a seed has no effect"},
	engine.MinTokens: {Note: "not with --skip-tokenizer-init"},
	engine.IgnoreEOS: {Meaning: "end ids are written"},
	engine.Priority:  {Note: "only with --enable-priority-scheduling"},

	engine.JSONSchema:    {Fidelity: engine.Restarts},
	engine.JSONObject:    {Fidelity: engine.Restarts},
	engine.Regex:         {Fidelity: engine.Restarts},
	engine.Choice:        {Fidelity: engine.Restarts},
	engine.Grammar:       {Fidelity: engine.Restarts, Note: "in the notation of the server's backend: EBNF, or Lark for llguidance"},
	engine.StructuralTag: {Fidelity: engine.Restarts},
}

// parametersOf is what a server with these settings makes of them.
func parametersOf(s *settings) engine.Parameters {
	p := maps.Clone(Parameters)
	without := func(name engine.Parameter, note string) {
		p[name] = engine.Support{Fidelity: engine.Unsupported, Note: note}
	}
	switch {
	case s.noSeeds:
		without(engine.Seed, "the server is too old to have one")
	case !s.deterministic: // a seed is a wish, as OpenAI has it, and many clients always send one
		p[engine.Seed] = engine.Support{Fidelity: engine.Redrawn, Meaning: Parameters[engine.Seed].Meaning,
			Note: "without effect: the server was started without --enable-deterministic-inference"}
	}
	if !s.priorities {
		without(engine.Priority, "the server was started without --enable-priority-scheduling")
	}
	if s.noTokenizer {
		without(engine.MinTokens, "the server was started with --skip-tokenizer-init")
		for _, name := range engine.Constraints {
			without(name, "the server was started with --skip-tokenizer-init")
		}
	}
	return p
}

// maxRepetitionPenalty is the largest that the server takes.
const maxRepetitionPenalty = 2
