package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"baton/engine"
)

// A constrained answer fits its schema, ends, follows from the prompt, and begins
// anew where it is continued.
func TestConstrainedAnswers(t *testing.T) {
	schema := `{"type":"object","properties":{"a":{"$ref":"#/$defs/N"},"b":{"type":"array","minItems":1,"items":{"enum":["x","y"]}},"c":{"anyOf":[{"type":"boolean"},{"const":5}]}},"$defs":{"N":{"type":"integer","minimum":3,"maximum":9}}}`
	seen := map[string]bool{}
	for n := range 50 {
		req := &engine.Request{ID: "r", TokenIDs: Tokenize(fmt.Sprint("prompt ", n)), Stop: engine.StopConditions{MaxTokens: 500},
			Constraint: &engine.Constraint{JSONSchema: []byte(schema)}}
		ids, finish := Reference(Config{}, req)
		text := Detokenize(ids[:len(ids)-1])
		var v struct {
			A int
			B []string
			C any
		}
		if err := json.Unmarshal([]byte(text), &v); err != nil || finish != engine.FinishStop || v.A < 3 || v.A > 9 || len(v.B) == 0 || v.C == nil {
			t.Fatalf("%q %s: %v", text, finish, err)
		}
		seen[text] = true
		next := *req
		next.TokenIDs = slices.Concat(req.TokenIDs, ids[:3])
		if again, _ := Reference(Config{}, &next); Detokenize(again[:1]) != "{" {
			t.Fatalf("a continuation begins with %q", Detokenize(again))
		}
	}
	if len(seen) < 20 {
		t.Errorf("%d different answers of 50", len(seen))
	}
	req := &engine.Request{ID: "r", TokenIDs: Tokenize("x"), Stop: engine.StopConditions{MaxTokens: 50}, Constraint: &engine.Constraint{Choice: []string{"yes", "no"}}}
	if ids, _ := Reference(Config{}, req); !slices.Contains([]string{"yes", "no"}, Detokenize(ids[:len(ids)-1])) {
		t.Errorf("chose %q", Detokenize(ids))
	}
}
