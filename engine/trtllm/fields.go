package trtllm

import (
	"encoding/json"

	"baton/engine"
)

// fields is which of the request's fields a server knows, of those that not every
// version has. It does not change.
type fields struct {
	ignoreLength bool // prompt_ignore_length
	priority     bool
	parameters   engine.Parameters // what follows from it
}

// unprobed is what is taken for granted of a server that does not describe its
// requests.
var unprobed = &fields{ignoreLength: true, parameters: Parameters}

func (c *Client) fields() *fields {
	if f := c.probed.Load(); f != nil {
		return f
	}
	return unprobed
}

// fieldsOf reads the description of the completions request in an OpenAPI
// document. It returns nil if there is none.
func fieldsOf(document []byte) *fields {
	var spec struct {
		Components struct {
			Schemas struct {
				Completion struct {
					Properties map[string]json.RawMessage `json:"properties"`
				} `json:"CompletionRequest"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if json.Unmarshal(document, &spec) != nil || len(spec.Components.Schemas.Completion.Properties) == 0 {
		return nil
	}
	known := spec.Components.Schemas.Completion.Properties
	_, ignoreLength := known["prompt_ignore_length"]
	_, priority := known["priority"]
	return &fields{ignoreLength: ignoreLength, priority: priority, parameters: parametersOf(ignoreLength, priority)}
}
