package router

import (
	"strings"
	"testing"

	"baton/engine"
)

// TestLacking: a client that sent a schema is told of its keyword as such, and a
// parameter that only a constraint rules out is not said to be missing altogether.
func TestLacking(t *testing.T) {
	free := &engine.Request{Model: "m"}
	bound := &engine.Request{Model: "m", Constraint: &engine.Constraint{JSONSchema: []byte(`{"not":{}}`), Keywords: []string{"not"}}}
	for _, test := range []struct {
		req        *engine.Request
		what, want string
	}{
		{free, "priority", "'priority' is not supported: no worker of the model 'm' has it."},
		{free, "min_tokens", "'min_tokens' is not supported: no"},
		{bound, "priority", "'priority' is not supported: no"},
		{bound, "not", "keyword 'not' in the JSON schema"},
		{bound, "min_tokens", "together with structured output"},
	} {
		if got := lacking(test.req, test.what); !strings.Contains(got, test.want) {
			t.Errorf("%s: %s", test.what, got)
		}
	}
}
