package sglang

import (
	"regexp"
	"strings"

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
		return grammar{Regex: alternatives(c.Choice)}
	}
	return grammar{JSONSchema: string(c.JSONSchema), Regex: c.Regex, EBNF: c.Grammar, StructuralTag: string(c.StructuralTag)}
}

// alternatives is a regular expression of exactly these texts.
func alternatives(choice []string) string {
	quoted := make([]string, len(choice))
	for i, text := range choice {
		quoted[i] = regexp.QuoteMeta(text)
	}
	return "(" + strings.Join(quoted, "|") + ")"
}

// unenforced are the keywords of a schema that xgrammar, the server's usual
// backend, lets go without a word.
var unenforced = []string{"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "$dynamicRef",
	"multipleOf", "uniqueItems", "contains", "minContains", "maxContains"}

// constraints are the sorts of a constraint.
var constraints = []engine.Parameter{
	engine.JSONSchema, engine.JSONObject, engine.Regex, engine.Choice, engine.Grammar, engine.StructuralTag,
}
