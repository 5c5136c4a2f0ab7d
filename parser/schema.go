package parser

import (
	"bytes"
	"encoding/json"
	"strings"
)

// parameter is what a tool's schema says of one parameter, as far as is needed
// to read a value that is written without quotes.
type parameter struct {
	kind     string // string, integer, number, boolean, object, array; "" if it does not say
	nullable bool
	quoted   bool // a string that may stand in quotes
}

// isString reports whether every value is a string, so that it can flow.
func (t parameter) isString() bool { return t.kind == "string" && !t.nullable && !t.quoted }

// parametersOf returns the parameters of a tool, whose schema is read once.
func (p *Parser) parametersOf(tool string) map[string]parameter {
	types, read := p.types[tool]
	if !read {
		if p.types == nil {
			p.types = map[string]map[string]parameter{}
		}
		types = parametersOf(p.known[tool])
		p.types[tool] = types
	}
	return types
}

// parametersOf reads a schema. What cannot be read says nothing.
func parametersOf(schema json.RawMessage) map[string]parameter {
	var root struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &root) != nil {
		return nil
	}
	all := make(map[string]parameter, len(root.Properties))
	for name, raw := range root.Properties {
		var t parameter
		t.read(raw)
		all[name] = t
	}
	return all
}

// read takes the first type that is not null, of a list of types or of alternatives.
func (t *parameter) read(raw json.RawMessage) {
	var s struct {
		Type  json.RawMessage   `json:"type"`
		AnyOf []json.RawMessage `json:"anyOf"`
		OneOf []json.RawMessage `json:"oneOf"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return
	}
	var one string
	var several []string
	if json.Unmarshal(s.Type, &one) == nil {
		several = []string{one}
	} else {
		_ = json.Unmarshal(s.Type, &several) // a type that is neither says nothing
	}
	for _, name := range several {
		t.add(name)
	}
	for _, alternative := range append(s.AnyOf, s.OneOf...) {
		t.read(alternative)
	}
}

func (t *parameter) add(name string) {
	name = strings.ToLower(strings.TrimSpace(name))
	has := func(prefixes ...string) bool {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return false
	}
	switch {
	case name == "null":
		t.nullable = true
		return
	case t.kind != "":
		return
	case has("str", "text", "varchar", "char", "enum"):
		name = "string"
	case has("int", "uint", "long", "short", "unsigned"):
		name = "integer"
	case has("num", "float"):
		name = "number"
	case has("bool", "binary"):
		name = "boolean"
	}
	t.kind = name
}

// said adds what a model says of its value: that it is a string ("true"), or JSON
// ("false"). The schema knows better, as in vLLM; but a string may then be written as
// JSON, too.
func (t parameter) said(isString string) parameter {
	switch {
	case isString == "true" && t.kind == "":
		t.kind = "string"
	case isString == "false" && t.kind == "":
		t.kind = "json"
	case isString == "false" && t.kind == "string":
		t.quoted = true
	}
	return t
}

// appendCut appends a value that was cut off before its end: as the beginning of a
// string, or as it is.
func (t parameter) appendCut(dst, text []byte) []byte {
	if t.kind == "string" && len(text) > 0 {
		return appendAllEscaped(append(dst, '"'), text)
	}
	return append(dst, text...)
}

// appendValue appends the JSON of a value that was written without quotes. The rules are
// vLLM's: null and None are null where the type is no plain string, a boolean
// is true or else false, and what does not fit its type is a string. A parameter of which
// the schema says nothing is a string, or, if loose, whatever JSON or Python it is.
func (t parameter) appendValue(dst, text []byte, loose bool) []byte {
	word := strings.TrimSpace(string(text))
	lower := strings.ToLower(word)
	if (lower == "null" || lower == "none") && (t.nullable || t.kind != "string" && (t.kind != "" || loose)) {
		return append(dst, "null"...)
	}
	switch t.kind {
	case "string":
		if t.quoted && word != "" && word[0] == '"' && json.Valid([]byte(word)) {
			return append(dst, word...)
		}
		return appendQuoted(dst, text)
	case "integer":
		if number, ok := jsonNumber(word); ok && !strings.ContainsAny(number, ".eE") {
			return append(dst, number...)
		}
		return appendQuoted(dst, text)
	case "number":
		if number, ok := jsonNumber(word); ok {
			return append(dst, number...)
		}
		return appendQuoted(dst, text)
	case "boolean":
		if lower == "true" {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case "":
		if !loose {
			return appendQuoted(dst, text)
		}
	}
	if trimmed := bytes.TrimSpace(text); json.Valid(trimmed) {
		return append(dst, trimmed...)
	} else if literal, ok := pythonToJSON(trimmed); ok {
		return append(dst, literal...)
	} else if number, ok := jsonNumber(word); ok {
		return append(dst, number...)
	}
	if lower == "true" || lower == "false" {
		return append(dst, lower...)
	}
	return appendQuoted(dst, text)
}
