package trtllm

import (
	"encoding/json"
	"testing"

	"baton/engine"
)

func TestConstraint(t *testing.T) {
	for want, c := range map[string]*engine.Constraint{
		`{"type":"json","schema":{"a":1}}`:           {JSONSchema: []byte(`{"a":1}`)},
		`{"type":"json","schema":{"type":"object"}}`: {JSONObject: true},
		`{"type":"regex","regex":"a+"}`:              {Regex: "a+"},
		`{"type":"regex","regex":"(a\\.b|c)"}`:       {Choice: []string{"a.b", "c"}},
		`{"type":"ebnf","ebnf":"root ::= x"}`:        {Grammar: "root ::= x"},
		`{"type":"structural_tag","format":{}}`:      {StructuralTag: []byte(`{"type":"structural_tag","format":{}}`)},
	} {
		got, err := json.Marshal(responseFormat(c))
		if err != nil || string(got) != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}
