package sim

import (
	"encoding/json"
	"fmt"
	"regexp"
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

// What is said under a regular expression or a grammar fits it, and differs from
// prompt to prompt; what is not understood is told by its sort.
func TestExpressionsAndGrammars(t *testing.T) {
	for _, c := range []struct {
		constraint engine.Constraint
		fits       string
	}{
		{engine.Constraint{Regex: `\d{3}-[A-F]+( or (yes|no))?`}, `^\d{3}-[A-F]+( or (yes|no))?$`},
		{engine.Constraint{Regex: `^[\w.]+@\w+\.(com|org)$`}, `^[\w.]+@\w+\.(com|org)$`},
		{engine.Constraint{Regex: `[^\S\n]x*?.{2,}`}, `^\sx*.{2,}$`},
		{engine.Constraint{Regex: `(?=lookahead)`}, `^guided_regex \d+$`},
		{engine.Constraint{Grammar: "root ::= greeting \", \" name+ end?\ngreeting ::= \"good \" (\"day\" | \"night\")\n  | 'hi'\nname ::= [A-Z] [a-z]{2,3}\n# the end\nend ::= \"\\\"!\\n\""},
			`^(good (day|night)|hi), ([A-Z][a-z]{2,3})+("!\n)?$`},
		{engine.Constraint{Grammar: "start: sum\nsum: NUMBER (\"+\" NUMBER)*\nNUMBER: /[0-9]{2}/\n"}, `^\d\d(\+\d\d)*$`},
		{engine.Constraint{Grammar: "root ::= \"(\" root \")\" | \"x\""}, `^\(*x\)*$`},
		{engine.Constraint{Grammar: "root ::= missing"}, `^guided_grammar \d+$`},
		{engine.Constraint{Grammar: "root ::= \"a\" root"}, `^guided_grammar \d+$`},
		{engine.Constraint{Grammar: "root ::= (\"a\""}, `^guided_grammar \d+$`},
		{engine.Constraint{Grammar: "nonsense"}, `^guided_grammar \d+$`},
		{engine.Constraint{StructuralTag: []byte(`{}`)}, `^structural_tag \d+$`},
	} {
		seen := map[string]bool{}
		for n := range 40 {
			req := &engine.Request{ID: "r", TokenIDs: Tokenize(fmt.Sprint("prompt ", n)), Stop: engine.StopConditions{MaxTokens: 500}, Constraint: &c.constraint}
			ids, finish := Reference(Config{}, req)
			text := Detokenize(ids[:len(ids)-1])
			if !regexp.MustCompile(c.fits).MatchString(text) || finish != engine.FinishStop {
				t.Fatalf("%+v: %q %s does not fit %s", c.constraint, text, finish, c.fits)
			}
			seen[text] = true
		}
		if len(seen) < 3 {
			t.Errorf("%+v: only %v", c.constraint, seen)
		}
	}
}
