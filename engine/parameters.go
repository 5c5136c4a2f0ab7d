package engine

import "slices"

// A Parameter is a request parameter by its public name.
type Parameter string

// The parameters on which engines differ. [AllParameters] has them in this order.
const (
	Temperature       Parameter = "temperature"
	TopP              Parameter = "top_p"
	TopK              Parameter = "top_k"
	MinP              Parameter = "min_p"
	LogitBias         Parameter = "logit_bias"
	RepetitionPenalty Parameter = "repetition_penalty"
	PresencePenalty   Parameter = "presence_penalty"
	FrequencyPenalty  Parameter = "frequency_penalty"
	Seed              Parameter = "seed"
	MaxTokens         Parameter = "max_tokens"
	MinTokens         Parameter = "min_tokens"
	StopTokenIDs      Parameter = "stop_token_ids"
	IgnoreEOS         Parameter = "ignore_eos"
	Logprobs          Parameter = "logprobs"
	Priority          Parameter = "priority"
	CacheSalt         Parameter = "cache_salt"

	// The sorts of a Constraint.
	JSONSchema    Parameter = "json_schema"
	JSONObject    Parameter = "json_object"
	Regex         Parameter = "guided_regex"
	Choice        Parameter = "guided_choice"
	Grammar       Parameter = "guided_grammar"
	StructuralTag Parameter = "structural_tag"
)

// AllParameters lists them all, in the order in which people are shown them.
var AllParameters = []Parameter{
	Temperature, TopP, TopK, MinP, LogitBias, RepetitionPenalty, PresencePenalty, FrequencyPenalty, Seed,
	MaxTokens, MinTokens, StopTokenIDs, IgnoreEOS, Logprobs, Priority, CacheSalt,
	JSONSchema, JSONObject, Regex, Choice, Grammar, StructuralTag,
}

// Fidelity says how well a parameter survives a move between two workers of one
// engine.
type Fidelity uint8

const (
	Exact       Fidelity = iota // the next worker applies it as the lost one would have
	Compensated                 // the client corrects for what the engine forgets; the note names the limits
	Redrawn                     // a valid sample, but not the one that an uncut answer would have had
	Forgotten                   // what came before the move is not counted after it
	Unsupported                 // the engine has no such parameter: its workers are no candidates
	Restarts                    // an answer with it is not continued: it begins anew, while nothing of it was delivered
)

var fidelityNames = [...]string{"exact", "compensated", "redrawn", "forgotten", "unsupported", "restarts"}

// String is the fidelity's name in documents and logs.
func (f Fidelity) String() string { return fidelityNames[f] }

// Support says what an engine makes of a parameter.
type Support struct {
	Fidelity Fidelity
	// Meaning tells apart what engines understand by the same parameter, such as
	// which tokens a penalty counts: a move between two engines whose meanings
	// differ is not exact. Empty = what everybody understands.
	Meaning string
	Note    string // for people: limits, and how it is done; may be empty
}

// Parameters is what one engine, or one worker, makes of each parameter. What is
// not in it is exact. It is not changed once it is in use.
//
// The clients decide by it what to correct and what to refuse, and the documents
// are written from it, so that they cannot disagree.
type Parameters map[Parameter]Support

// Unsupported returns the first parameter that req uses and the engine does not
// have, or "".
func (p Parameters) Unsupported(req *Request) string {
	for _, name := range AllParameters {
		if p[name].Fidelity == Unsupported && req.Uses(name) {
			return string(name)
		}
	}
	return ""
}

// Drift lists the parameters that req uses and that are not exact, or not the
// same, when its answer moves from a worker with parameters p to one with to.
func (p Parameters) Drift(to Parameters, req *Request) []Parameter {
	return slices.DeleteFunc(slices.Clone(AllParameters), func(name Parameter) bool {
		return !req.Uses(name) || to[name].Fidelity == Exact && p[name].Meaning == to[name].Meaning
	})
}

// Differences lists the parameters that workers with p and workers with other
// both have and do not understand alike: an answer that uses one of them and moves
// between the two goes on under another rule.
func (p Parameters) Differences(other Parameters) []Parameter {
	return slices.DeleteFunc(slices.Clone(AllParameters), func(name Parameter) bool {
		a, b := p[name], other[name]
		return a.Fidelity == Unsupported || b.Fidelity == Unsupported || a.Meaning == b.Meaning
	})
}

// Uses reports whether req asks for something by the parameter: it is set, and
// not to the value that switches it off. A seed says nothing of a greedy answer.
func (r *Request) Uses(name Parameter) bool {
	s := &r.Sampling
	switch name {
	case Temperature:
		return s.Temperature != 0
	case TopP:
		return s.TopP != 1 && s.Temperature != 0
	case TopK:
		return s.TopK > 0 && s.Temperature != 0
	case MinP:
		return s.MinP != 0 && s.Temperature != 0
	case LogitBias:
		return len(s.LogitBias) > 0
	case RepetitionPenalty:
		return s.RepetitionPenalty != 1
	case PresencePenalty:
		return s.PresencePenalty != 0
	case FrequencyPenalty:
		return s.FrequencyPenalty != 0
	case Seed:
		return s.Seed != nil && s.Temperature != 0
	case MaxTokens:
		return r.Stop.MaxTokens > 0
	case MinTokens:
		return r.Stop.MinTokens > 0
	case StopTokenIDs:
		return len(r.Stop.TokenIDs) > 0
	case IgnoreEOS:
		return r.Stop.IgnoreEOS
	case Logprobs:
		return r.Output.Logprobs
	case Priority:
		return r.Priority != 0
	case CacheSalt:
		return r.CacheSalt != ""
	}
	return r.Constraint != nil && r.Constraint.Parameter() == name
}
