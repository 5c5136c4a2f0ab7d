package vllm

import (
	"encoding/json"
	"testing"

	"baton/engine"
)

func TestConstraint(t *testing.T) {
	for want, c := range map[string]*engine.Constraint{
		`null`:                                 nil,
		`{"json":{"a":1}}`:                     {JSONSchema: []byte(`{"a":1}`)},
		`{"json_object":true}`:                 {JSONObject: true},
		`{"regex":"a+"}`:                       {Regex: "a+"},
		`{"choice":["a","b"]}`:                 {Choice: []string{"a", "b"}},
		`{"grammar":"root ::= x"}`:             {Grammar: "root ::= x"},
		`{"structural_tag":"{\"format\":{}}"}`: {StructuralTag: []byte(`{"format":{}}`)},
	} {
		got, err := json.Marshal(structuredOf(c))
		if err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
