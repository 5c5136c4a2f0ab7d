package preprocess

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestMergedReferences: what schemas refer to is found where they are enforced together.
func TestMergedReferences(t *testing.T) {
	for _, test := range []struct {
		name    string
		schemas []string
		left    []string // of each
		defs    string
	}{
		{"names", []string{`{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B/items"},"B":{"items":{}}}}`},
			[]string{`{"$ref":"#/$defs/A"}`}, `{"A":{"$ref":"#/$defs/B/items"},"B":{"items":{}}}`},
		{"older names", []string{`{ "items": { "$ref" : "#/definitions/A" }, "definitions":{"A":{}}}`},
			[]string{`{"items":{ "$ref" : "#/$defs/A" }}`}, `{"A":{}}`},
		{"the same twice", []string{`{"$ref":"#/$defs/A","$defs":{"A":{}}}`, `{"not":{"$ref":"#/$defs/A"},"$defs":{"A":{}}}`},
			[]string{`{"$ref":"#/$defs/A"}`, `{"not":{"$ref":"#/$defs/A"}}`}, `{"A":{}}`},
		{"two things under one name", []string{`{"$ref":"#/$defs/A","$defs":{"A":{}}}`, `{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/B"},"B":{}}}`},
			[]string{`{"$ref":"#/$defs/A"}`, `{"$ref":"#/$defs/A-2"}`}, `{"A":{},"A-2":{"$ref":"#/$defs/B-2"},"B-2":{}}`},
		{"two lists", []string{`{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/definitions/A"}],"$defs":{"A":{"minItems":1}},"definitions":{"A":{}}}`},
			[]string{`{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A-1"}]}`}, `{"A":{"minItems":1},"A-1":{}}`},
		{"itself", []string{`{"$id":"https://example.org/x","$schema":"y","properties":{"next":{"$ref":"#"}}}`},
			[]string{`{"properties":{"next":{"$ref":"#/$defs/schema-1"}}}`}, `{"schema-1":{"properties":{"next":{"$ref":"#/$defs/schema-1"}}}}`},
		{"a part of itself", []string{`{}`, `{"properties":{"a":{"type":"null"},"b":{"$ref":"#/properties/a"}}}`},
			[]string{`{}`, `{"properties":{"a":{"type":"null"},"b":{"$ref":"#/$defs/schema-2/properties/a"}}}`},
			`{"schema-2":{"properties":{"a":{"type":"null"},"b":{"$ref":"#/$defs/schema-2/properties/a"}}}}`},
		{"each itself, by the same name", []string{`{"$defs":{"A":{"$ref":"#"}},"minItems":1}`, `{"$defs":{"A":{"$ref":"#"}}}`},
			[]string{`{"minItems":1}`, `{}`}, `{"A":{"$ref":"#/$defs/schema-1"},"A-2":{"$ref":"#/$defs/schema-2"},"schema-1":{"minItems":1},"schema-2":{}}`},
		{"a name that is taken", []string{`{"$ref":"#/$defs/schema-1","items":{"$ref":"#"},"$defs":{"schema-1":{}}}`},
			[]string{`{"$ref":"#/$defs/schema-1","items":{"$ref":"#/$defs/schema-1-"}}`}, `{"schema-1":{},"schema-1-":{"$ref":"#/$defs/schema-1","items":{"$ref":"#/$defs/schema-1-"}}}`},
		{"no keyword", []string{`{"properties":{"$ref":{"type":"string"},"$defs":{"type":"null"}},"const":{"$ref":"#"}}`},
			[]string{`{"properties":{"$ref":{"type":"string"},"$defs":{"type":"null"}},"const":{"$ref":"#"}}`}, ``},
		{"odd names", []string{`{"$ref":"#/$defs/a~1b%20\"\u00e9","$defs":{"a/b \"é":{}}}`}, []string{`{"$ref":"#/$defs/a~1b%20\"é"}`}, `{"a/b \"é":{}}`},
	} {
		var m merged
		for i, schema := range test.schemas {
			left, err := m.add(&value{data: []byte(schema), end: len(schema), key: "x"})
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			if string(left) != test.left[i] {
				t.Errorf("%s: schema %d is %s, want %s", test.name, i, left, test.left[i])
			}
		}
		c, err := m.constraint([]byte(`{"a":1`))
		want := `{"a":1}`
		if test.defs != "" {
			want = `{"a":1,"$defs":` + test.defs + `}`
		}
		if err != nil || string(c.JSONSchema) != want || !json.Valid(c.JSONSchema) {
			t.Errorf("%s: %s, want %s (%v)", test.name, c.JSONSchema, want, err)
		}
	}
	var m merged
	anchor := `{"items":[{"$ref":"#b"}]}`
	if _, err := m.add(&value{data: []byte(anchor), end: len(anchor), key: "x"}); err == nil || err.Param != "x.items[0].$ref" {
		t.Errorf("an anchor: %v", err)
	}
}

// TestManyMergedSchemas: the time is linear in their size, and that is bounded.
func TestManyMergedSchemas(t *testing.T) {
	var m merged
	start := time.Now()
	for i := range maxTools {
		var defs, refs []string
		for j := range 20 {
			defs = append(defs, fmt.Sprintf(`"d%d":{"const":%d}`, j, i))
			refs = append(refs, fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, j))
		}
		schema := `{"anyOf":[` + strings.Join(refs, ",") + `],"$defs":{` + strings.Join(defs, ",") + `}}`
		if _, err := m.add(&value{data: []byte(schema), end: len(schema), key: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	if len(m.definitions) != maxTools*20 || time.Since(start) > 5*time.Second {
		t.Errorf("%d definitions after %v", len(m.definitions), time.Since(start))
	}
	large := make([]byte, maxGrammarBytes)
	if _, err := m.constraint(large); err == nil || err.Param != "tools" {
		t.Errorf("a schema of more than %d bytes: %v", len(large), err)
	}
}
