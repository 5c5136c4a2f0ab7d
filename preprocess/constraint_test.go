package preprocess

import (
	"reflect"
	"strings"
	"testing"

	"baton/engine"
)

func TestConstraints(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	object := `{"type":"object","properties":{"n":{"type":"number","minimum":1},"i":{"type":"integer","minimum":1},"l":{"uniqueItems":false}}}`
	for members, want := range map[string]*engine.Constraint{
		`"n":1`: nil,
		`"response_format":{"type":"text"},"guided_json":null,"structured_outputs":null`: nil,
		`"guided_decoding_backend":"outlines"`:                                           nil,
		`"response_format":{"type":"json_object"}`:                                       {JSONObject: true},
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":` + object + `}}`: {
			JSONSchema: []byte(object), Keywords: []string{"minimum"}},
		`"response_format":{"type":"json_object","schema":null}`:                                   {JSONObject: true},
		`"response_format":{"type":"json_object","schema":{"not":{}}}`:                             {JSONSchema: []byte(`{"not":{}}`), Keywords: []string{"not"}},
		`"response_format":{"type":"json_schema","schema":{"type":"integer"}}`:                     {JSONSchema: []byte(`{"type":"integer"}`)},
		`"structured_outputs":{"json":"{\"not\":{}}","regex":null,"disable_any_whitespace":false}`: {JSONSchema: []byte(`{"not":{}}`), Keywords: []string{"not"}},
		`"structured_outputs":{"json_object":true}`:                                                {JSONObject: true},
		`"guided_json":true`:                                        {JSONSchema: []byte(`{}`)},
		`"guided_regex":"a+"`:                                       {Regex: "a+"},
		`"structured_outputs":{"choice":["a","b"]}`:                 {Choice: []string{"a", "b"}},
		`"nvext":{"guided_choice":["a"]}`:                           {Choice: []string{"a"}},
		`"guided_grammar":"root ::= x"`:                             {Grammar: "root ::= x"},
		`"structured_outputs":{"structural_tag":"{\"format\":{}}"}`: {StructuralTag: []byte(`{"type":"structural_tag","format":{}}`)},
	} {
		for stream, held := range map[string]bool{`"stream":true`: false, `"stream":false`: want != nil} {
			for _, prepared := range []*Prepared{mustChat(t, p, members+","+stream), mustComplete(t, p, members+","+stream)} {
				req := prepared.Choices[0].Request.Tokens
				if !reflect.DeepEqual(req.Constraint, want) || req.HoldBack != held {
					t.Errorf("%s: %+v, held back: %v", members, req.Constraint, req.HoldBack)
				}
			}
		}
	}
}

func TestForcedCalls(t *testing.T) {
	body := []byte(`{"tools":[
		{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"x":{"$ref":"#/$defs/X"}},"$defs":{"X":{"type":"string"}}}}},
		{"type":"function","function":{"name":"b\""}}]}`)
	fields, err := scan(body)
	if err != nil {
		t.Fatal(err)
	}
	r := &request{}
	var functions []function
	for i, tool := range fields[0].elements() {
		described, err := r.functionOf(tool)
		if err != nil {
			t.Fatal(err)
		}
		functions = append(functions, function{value: described, name: []string{"a", "b\""}[i]})
	}
	a := `{"type":"object","properties":{"x":{"$ref":"#/$defs/X"}},"$defs":{"X":{"type":"string"}}}`
	moved := `{"type":"object","properties":{"x":{"$ref":"#/$defs/X"}}}`
	call := func(name, parameters string) string {
		return `{"type":"object","properties":{"name":{"enum":[` + name + `]},"parameters":` + parameters + `},"required":["name","parameters"],"additionalProperties":false}`
	}
	all := `"items":{"anyOf":[` + call(`"a"`, moved) + "," + call(`"b\""`, `{"type":"object","properties":{}}`) + `]},"$defs":{"X":{"type":"string"}}}`
	for _, test := range []struct {
		name     string
		parallel bool
		want     string
	}{
		{"a", true, a},
		{"b\"", true, `{"type":"object","properties":{}}`},
		{"", true, `{"type":"array","minItems":1,` + all},
		{"", false, `{"type":"array","minItems":1,"maxItems":1,` + all},
		{"c", true, ""},
	} {
		c, err := forcedCalls(functions, test.name, test.parallel)
		if (err != nil) != (test.want == "") || err == nil && string(c.JSONSchema) != test.want {
			t.Errorf("%q: %+v, %v", test.name, c, err)
		}
	}
}

// A client's schema beside tools leaves room for calls.
func TestSchemaBesideTools(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{"tokenizer.json": unmarked(t), "chat_template.jinja": toolTemplate})
	tools := `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"x":{"$ref":"#/$defs/X"}},"$defs":{"X":{"type":"string"}}}}}]`
	calls := `{"type":"array","minItems":1,"items":{"anyOf":[{"type":"object","properties":{"name":{"enum":["f"]},"parameters":{"type":"object","properties":{"x":{"$ref":"#/$defs/X"}}}},"required":["name","parameters"],"additionalProperties":false}]}}`
	for own, want := range map[string]string{
		`"response_format":{"type":"json_object"}`: `{"anyOf":[` + calls + `,{"type":"object"}],"$defs":{"X":{"type":"string"}}}`,
		`"guided_json":{"$defs":{"Y":{"type":"null"}},"$ref":"#/$defs/Y"}`: `{"anyOf":[` + calls +
			`,{"$ref":"#/$defs/Y"}],"$defs":{"X":{"type":"string"},"Y":{"type":"null"}}}`,
	} {
		prepared := mustChat(t, p, own+","+tools)
		c := prepared.Choices[0].Request.Tokens.Constraint
		if c == nil || string(c.JSONSchema) != want {
			t.Errorf("%s: %+v\nwant %s", own, c, want)
		}
		if o := prepared.Read.Options; o.Tool != jsonCalls || !o.Constrained {
			t.Errorf("%s: read as %+v", own, o)
		}
	}
}

// A format is for messages: an answer that must be calls has none.
func TestFormatBesideForcedCalls(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{"tokenizer.json": unmarked(t), "chat_template.jinja": toolTemplate})
	const own, calls = `{"type":"object","required":["own"]}`, `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","required":["x"]}}}]`
	for members, want := range map[string]string{
		`"tool_choice":"required","response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + own + `}}`: `{"type":"array","minItems":1,"items":{"anyOf":[{"type":"object",` +
			`"properties":{"name":{"enum":["f"]},"parameters":{"type":"object","required":["x"]}},"required":["name","parameters"],"additionalProperties":false}]}}`,
		`"tool_choice":{"type":"function","function":{"name":"f"}},"response_format":{"type":"json_object"}`: `{"type":"object","required":["x"]}`,
	} {
		if c := mustChat(t, p, members+calls).Choices[0].Request.Tokens.Constraint; c == nil || string(c.JSONSchema) != want {
			t.Errorf("%s: %+v, want %s", members, c, want)
		}
	}
	const flat = `,"tool_choice":"required","tools":[{"type":"function","name":"f"}]}`
	prepared, err := p.Responses("r", []byte(`{"model":"m","input":"Hi","text":{"format":{"type":"json_schema","name":"x","schema":`+own+`}}`+flat), nil)
	if err != nil || strings.Contains(string(prepared.Choices[0].Request.Tokens.Constraint.JSONSchema), "own") {
		t.Errorf("a response: %+v, %v", prepared, err)
	}
}
