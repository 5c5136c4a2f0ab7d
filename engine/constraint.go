package engine

import "encoding/json"

// A Constraint is what the text of an answer must be. Exactly one field is set.
//
// Engines enforce it from the first token of a generation on, and take a prompt
// for something that was there before: an answer under a constraint cannot be
// continued elsewhere, only begun anew (see Request.Constraint).
type Constraint struct {
	JSONSchema    json.RawMessage // the text is a JSON value by this schema
	JSONObject    bool            // the text is any JSON object
	Regex         string          // the whole text matches
	Choice        []string        // the text is one of these
	Grammar       string          // in the notation of the engine: EBNF, Lark, GBNF
	StructuralTag json.RawMessage // parts of the text are constrained, as xgrammar defines it
}

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
