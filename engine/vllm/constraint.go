package vllm

import (
	"encoding/json"

	"baton/engine"
)

// A structured is a constraint by vLLM's names. The servers before 0.11 have others
// (guided_json, …), and ignore these without a word: see spec.parameters.
type structured struct {
	JSON          json.RawMessage `json:"json,omitempty"`
	JSONObject    bool            `json:"json_object,omitempty"`
	Regex         string          `json:"regex,omitempty"`
	Choice        []string        `json:"choice,omitempty"`
	Grammar       string          `json:"grammar,omitempty"`
	StructuralTag string          `json:"structural_tag,omitempty"` // JSON as a text
}

func structuredOf(c *engine.Constraint) *structured {
	if c == nil {
		return nil
	}
	return &structured{
		JSON: c.JSONSchema, JSONObject: c.JSONObject, Regex: c.Regex, Choice: c.Choice, Grammar: c.Grammar,
		StructuralTag: string(c.StructuralTag),
	}
}

// unenforced are the keywords of a schema that the server lets go without a word.
// Of others that its first backend does not know it takes another backend.
var unenforced = []string{"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "$dynamicRef"}
