package engine

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// A Constraint is what the text of an answer must be. Exactly one of the sorts is
// set.
//
// Engines enforce it from the first token of a generation on, and take a prompt
// for something that was there before: an answer under a constraint cannot be
// continued elsewhere, only begun anew (see Request.Constraint).
type Constraint struct {
	JSONSchema    json.RawMessage // an object: the text is a JSON value by this schema
	JSONObject    bool            // the text is any JSON object
	Regex         string          // the whole text matches
	Choice        []string        // the text is one of these
	Grammar       string          // in the notation of the engine: EBNF, Lark, GBNF
	StructuralTag json.RawMessage // parts of the text are constrained; an object with its type, as xgrammar defines it

	// Keywords are those of JSONSchema that some engines do not enforce, each
	// once. An engine that would let one go without a word is not asked.
	Keywords []string
}

// AnyObject is the schema of a JSON object, for engines that have no other word
// for it, or whose word for it means any value.
var AnyObject = json.RawMessage(`{"type":"object"}`)

// Parameter is the name under which Parameters says whether an engine can do it.
func (c *Constraint) Parameter() Parameter {
	switch {
	case c.JSONSchema != nil:
		return JSONSchema
	case c.JSONObject:
		return JSONObject
	case c.Regex != "":
		return Regex
	case c.Choice != nil:
		return Choice
	case c.StructuralTag != nil:
		return StructuralTag
	}
	return Grammar
}

// IsJSON reports whether the text is JSON.
func (c *Constraint) IsJSON() bool { return c.JSONSchema != nil || c.JSONObject }

// Constraints are the sorts of a Constraint.
var Constraints = []Parameter{JSONSchema, JSONObject, Regex, Choice, Grammar, StructuralTag}

// ChoiceRegex is a regular expression of exactly the texts of Choice, for engines
// that have no word for that.
func (c *Constraint) ChoiceRegex() string {
	quoted := make([]string, len(c.Choice))
	for i, text := range c.Choice {
		quoted[i] = regexp.QuoteMeta(text)
	}
	return "(" + strings.Join(quoted, "|") + ")"
}

// UnenforcedByXGrammar are the keywords of a schema that xgrammar, the usual backend of
// SGLang and TensorRT-LLM, lets go without a word.
var UnenforcedByXGrammar = []string{"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "$dynamicRef",
	"multipleOf", "uniqueItems", "contains", "minContains", "maxContains"}

// Unenforced returns the first of c's keywords that is among those which an
// engine does not enforce, or "". A nil Constraint has none.
func (c *Constraint) Unenforced(ignored []string) string {
	if c != nil {
		for _, keyword := range c.Keywords {
			if slices.Contains(ignored, keyword) {
				return keyword
			}
		}
	}
	return ""
}
