package llamacpp

import (
	"reflect"
	"testing"

	"baton/engine"
)

func TestConstraint(t *testing.T) {
	for _, test := range []struct {
		in   *engine.Constraint
		want constraint
	}{
		{nil, constraint{}},
		{&engine.Constraint{JSONSchema: []byte(`{"a":1}`)}, constraint{JSONSchema: []byte(`{"a":1}`)}},
		{&engine.Constraint{JSONObject: true}, constraint{JSONSchema: []byte(`{"type":"object"}`)}},
		{&engine.Constraint{Grammar: "root ::= x"}, constraint{Grammar: "root ::= x"}},
		{&engine.Constraint{Choice: []string{"yes 1", `"\`, "é\n"}}, constraint{Grammar: `root ::= "yes\U000000201" | "\U00000022\U0000005C" | "\U000000E9\U0000000A"`}},
	} {
		if got := constraintOf(test.in); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%+v: %+v", test.in, got)
		}
	}
	c := &Client{}
	req := &engine.Request{Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1}, Constraint: &engine.Constraint{JSONSchema: []byte("{}"), Keywords: []string{"uniqueItems"}}}
	if got := c.Unsupported(req); got != "uniqueItems" {
		t.Errorf("a keyword that is not enforced: %q", got)
	}
	req.Constraint, req.Stop.MinTokens = &engine.Constraint{JSONObject: true}, 3
	if got := c.Unsupported(req); got != "min_tokens" {
		t.Errorf("min_tokens under a grammar: %q", got)
	}
}
