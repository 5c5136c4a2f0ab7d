package trtllm

import (
	"encoding/json"

	"baton/engine"
)

// format is a constraint as response_format has it. The schema of a JSON object is
// given in full, because the server's json_object means any value.
type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Regex  string          `json:"regex,omitempty"`
	EBNF   string          `json:"ebnf,omitempty"`
}

func responseFormat(c *engine.Constraint) any {
	switch {
	case c.JSONSchema != nil:
		return format{Type: "json", Schema: c.JSONSchema}
	case c.JSONObject:
		return format{Type: "json", Schema: engine.AnyObject}
	case c.Regex != "":
		return format{Type: "regex", Regex: c.Regex}
	case c.Choice != nil:
		return format{Type: "regex", Regex: c.ChoiceRegex()}
	case c.StructuralTag != nil:
		return c.StructuralTag // has its type
	}
	return format{Type: "ebnf", EBNF: c.Grammar}
}
