package sglang

import (
	"testing"

	"baton/engine"
)

func TestConstraint(t *testing.T) {
	for _, test := range []struct {
		in   *engine.Constraint
		want grammar
	}{
		{nil, grammar{}},
		{&engine.Constraint{JSONSchema: []byte(`{"a":1}`)}, grammar{JSONSchema: `{"a":1}`}},
		{&engine.Constraint{JSONObject: true}, grammar{JSONSchema: `{"type":"object"}`}},
		{&engine.Constraint{Regex: "a+"}, grammar{Regex: "a+"}},
		{&engine.Constraint{Choice: []string{"a.b", "c"}}, grammar{Regex: `(a\.b|c)`}},
		{&engine.Constraint{Grammar: "root ::= x"}, grammar{EBNF: "root ::= x"}},
		{&engine.Constraint{StructuralTag: []byte(`{"type":"structural_tag"}`)}, grammar{StructuralTag: `{"type":"structural_tag"}`}},
	} {
		if got := grammarOf(test.in); got != test.want {
			t.Errorf("%+v: %+v", test.in, got)
		}
	}
}
