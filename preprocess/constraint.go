package preprocess

import (
	"bytes"

	"baton/engine"
	"baton/openai"
)

// Limits of a constraint. A schema has at most so many bytes so that a worker can
// compile it in a time that others wait for.
const (
	maxGrammarBytes = 1 << 20 // of a schema, a grammar or a structural tag
	maxRegexBytes   = 64 << 10
	maxChoiceTexts  = 4096
	maxChoiceBytes  = 4096 // each of them
)

// constrain takes over a constraint. There may be one.
func (r *request) constrain(v *value, c *engine.Constraint) *openai.Error {
	if r.constraint != nil {
		return openai.InvalidRequest(v.param(), "Only one constraint of the answer is possible: '%s' and '%s' are both given.", r.constrainedBy, v.param())
	}
	r.constraint, r.constrainedBy = c, v.param()
	return nil
}

func readResponseFormat(r *request, v *value) *openai.Error {
	if !v.isObject() {
		return v.wrongType("an object")
	}
	kind := ""
	if m, ok := v.member("type"); ok {
		var err *openai.Error
		if kind, err = m.text(); err != nil {
			return err
		}
	}
	r.ofMessages = kind != "text"
	switch kind {
	case "text":
		return nil
	case "json_object":
		if schema, ok := schemaBesideType(v); ok {
			return readSchema(r, &schema)
		}
		return r.constrain(v, &engine.Constraint{JSONObject: true})
	case "json_schema":
		return r.readFormatSchema(v)
	case "structural_tag":
		return r.readTag(v)
	}
	return v.invalid("'type' must be text, json_object, json_schema or structural_tag.")
}

// schemaBesideType returns the schema of a format that has it where llama.cpp's server
// takes it, for both types of JSON. Without it such a request would be answered with
// any JSON at all.
func schemaBesideType(v *value) (value, bool) {
	schema, ok := v.member("schema")
	return schema, ok && !schema.isNull()
}

// readFormatSchema reads OpenAI's form of chat, and llama.cpp's.
func (r *request) readFormatSchema(v *value) *openai.Error {
	format, ok := v.member("json_schema")
	switch {
	case !ok || format.isNull():
		if schema, ok := schemaBesideType(v); ok {
			return readSchema(r, &schema)
		}
		return openai.Missing(v.param() + ".json_schema")
	case !format.isObject():
		return format.wrongType("an object")
	}
	return r.readNamedSchema(&format)
}

// readNamedSchema reads a schema with its name. What the name and the description say
// is for models that are shown them, and strict is what a constraint always is.
func (r *request) readNamedSchema(format *value) *openai.Error {
	var schema *value
	for key, m := range format.members() {
		if m.isNull() {
			continue
		}
		var err *openai.Error
		switch key {
		case "name", "description":
			_, err = m.text()
		case "strict":
			_, err = m.boolean()
		case "schema":
			found := *m
			schema = &found
		}
		if err != nil {
			return err
		}
	}
	if schema == nil {
		err := openai.Missing(format.param() + ".schema")
		if _, nested := format.member("json_schema"); nested {
			err.Message += " In responses it stands beside 'name', without 'json_schema' around them."
		}
		return err
	}
	return readSchema(r, schema)
}

// readStructuredOutputs reads vLLM's object, of whose sorts exactly one is given.
func readStructuredOutputs(r *request, v *value) *openai.Error {
	if !v.isObject() {
		return v.wrongType("an object")
	}
	for key, m := range v.members() {
		if m.isNull() {
			continue
		}
		read, known := structuredSorts[key]
		switch {
		case known:
			if err := read(r, m); err != nil {
				return err
			}
		case key == "disable_fallback", len(m.raw()) == len("false") && m.raw()[0] == 'f':
		default:
			return openai.Unsupported(m.param(), "it is an option of one engine's way to write an answer")
		}
	}
	if r.constraint == nil {
		return v.invalid("exactly one of json, json_object, regex, choice, grammar and structural_tag must be given.")
	}
	return nil
}

var structuredSorts = map[string]reader{
	"json": readSchema, "json_object": readJSONObject, "regex": readRegex, "choice": readChoice, "grammar": readGrammar,
	"structural_tag": func(r *request, v *value) *openai.Error { return r.readTag(v) },
}

func readJSONObject(r *request, v *value) *openai.Error {
	on, err := v.boolean()
	if err != nil || !on {
		return err
	}
	return r.constrain(v, &engine.Constraint{JSONObject: true})
}

// readSchema reads a JSON schema: an object, true, or, as vLLM has it, a text that
// holds one.
func readSchema(r *request, v *value) *openai.Error {
	v, err := unwrapped(v)
	if err != nil {
		return err
	}
	var s schema
	if err := s.check(v, 0); err != nil {
		return err
	}
	raw := bytes.Clone(v.raw())
	switch v.first0() {
	case 't':
		raw = []byte("{}")
	case 'f':
		return v.invalid("no answer fits it.")
	}
	return r.constrain(v, &engine.Constraint{JSONSchema: raw, Keywords: s.keywords})
}

// readTag reads a structural tag, in either of xgrammar's forms.
func (r *request) readTag(v *value) *openai.Error {
	v, err := unwrapped(v)
	if err != nil {
		return err
	}
	if !v.isObject() {
		return v.wrongType("an object")
	}
	format, hasFormat := v.member("format")
	structures, hasStructures := v.member("structures")
	triggers, hasTriggers := v.member("triggers")
	switch {
	case hasFormat && !format.isObject():
		return format.wrongType("an object")
	case hasFormat:
	case !hasStructures || !hasTriggers:
		return v.invalid("it must have 'format', or 'structures' and 'triggers'.")
	case !structures.isArray():
		return structures.wrongType("an array")
	case !triggers.isArray():
		return triggers.wrongType("an array of strings")
	}
	raw := bytes.Clone(v.raw())
	if _, ok := v.member("type"); !ok {
		raw = append([]byte(`{"type":"structural_tag",`), raw[1:]...)
	}
	return r.constrain(v, &engine.Constraint{StructuralTag: raw})
}

// unwrapped returns the JSON in a text, or v if it is no text.
func unwrapped(v *value) (*value, *openai.Error) {
	if len(v.raw()) > maxGrammarBytes {
		return nil, v.invalid("it may have at most %d bytes.", maxGrammarBytes)
	}
	if !v.isText() {
		return v, nil
	}
	data := bytes.TrimSpace([]byte(unquote(v.raw())))
	if _, err := scan(data); err != nil {
		return nil, v.invalid("the text is no JSON object.")
	}
	return &value{data: data, end: len(data), key: v.param()}, nil
}

// first0 is the byte with which the value begins.
func (v *value) first0() byte { return v.data[v.start] }

func readRegex(r *request, v *value) *openai.Error {
	s, err := boundedText(v, maxRegexBytes)
	if err != nil {
		return err
	}
	return r.constrain(v, &engine.Constraint{Regex: s})
}

func readGrammar(r *request, v *value) *openai.Error {
	s, err := boundedText(v, maxGrammarBytes)
	if err != nil {
		return err
	}
	return r.constrain(v, &engine.Constraint{Grammar: s})
}

func readChoice(r *request, v *value) *openai.Error {
	switch {
	case !v.isArray():
		return v.wrongType("an array of strings")
	case v.isEmpty():
		return v.invalid("it must have at least one text.")
	}
	var texts []string
	for i, e := range v.elements() {
		if i == maxChoiceTexts {
			return v.invalid("at most %d texts are allowed.", maxChoiceTexts)
		}
		s, err := boundedText(e, maxChoiceBytes)
		if err != nil {
			return err
		}
		texts = append(texts, s)
	}
	return r.constrain(v, &engine.Constraint{Choice: texts})
}

func boundedText(v *value, most int) (string, *openai.Error) {
	s, err := v.text()
	if err == nil && (s == "" || len(s) > most) {
		err = v.invalid("must have 1 to %d bytes.", most)
	}
	return s, err
}
