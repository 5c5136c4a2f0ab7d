package sglang

import (
	"baton/engine"
)

// A grammar is a constraint by SGLang's names, of which one may be set.
type grammar struct {
	JSONSchema    string `json:"json_schema,omitempty"`
	Regex         string `json:"regex,omitempty"`
	EBNF          string `json:"ebnf,omitempty"`
	StructuralTag string `json:"structural_tag,omitempty"`
}

func grammarOf(c *engine.Constraint) grammar {
	switch {
	case c == nil:
		return grammar{}
	case c.JSONObject:
		return grammar{JSONSchema: string(engine.AnyObject)}
	case c.Choice != nil:
		return grammar{Regex: c.ChoiceRegex()}
	}
	return grammar{JSONSchema: string(c.JSONSchema), Regex: c.Regex, EBNF: c.Grammar, StructuralTag: string(c.StructuralTag)}
}
