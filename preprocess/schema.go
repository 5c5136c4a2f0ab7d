package preprocess

import (
	"math"
	"slices"
	"strings"

	"baton/openai"
)

// maxSchemaDepth bounds how deep schemas are nested. The engines compile them
// recursively.
const maxSchemaDepth = 64

// A schema is what was found out of a JSON schema while it was checked.
type schema struct {
	keywords []string // see engine.Constraint

	collect    bool    // the references: it becomes a part of another, see merged
	references []value // in the order in which they stand
}

// How a keyword's value must look.
type form uint8

const (
	oneSchema form = iota + 1
	schemaList
	schemaMap
	schemaOrList
	count
	positive
	real
	flag
	texts
	list
	pattern
	reference
	types
	anything
)

// schemaForms are the keywords that are looked at. An engine that meets another
// form in one of them may fail at it, and be taken for a broken worker.
var schemaForms = map[string]form{
	"properties": schemaMap, "patternProperties": schemaMap, "$defs": schemaMap, "definitions": schemaMap, "dependentSchemas": schemaMap,
	"allOf": schemaList, "anyOf": schemaList, "oneOf": schemaList, "prefixItems": schemaList,
	"items": schemaOrList, "additionalProperties": oneSchema, "additionalItems": oneSchema, "not": oneSchema, "if": oneSchema,
	"then": oneSchema, "else": oneSchema, "contains": oneSchema, "propertyNames": oneSchema,
	"unevaluatedItems": oneSchema, "unevaluatedProperties": oneSchema,
	"minLength": count, "maxLength": count, "minItems": count, "maxItems": count, "minProperties": count, "maxProperties": count,
	"minContains": count, "maxContains": count,
	"minimum": real, "maximum": real, "exclusiveMinimum": real, "exclusiveMaximum": real, "multipleOf": positive,
	"uniqueItems": flag, "required": texts, "enum": list, "pattern": pattern, "format": pattern, "$ref": reference, "$dynamicRef": reference, "type": types,
	"dependentRequired": anything, "dependencies": anything,
}

// uneven are the keywords that some engines do not enforce.
var uneven = []string{
	"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "$dynamicRef",
	"multipleOf", "uniqueItems", "contains", "minContains", "maxContains",
	"patternProperties", "propertyNames", "minProperties", "maxProperties",
}

var schemaTypes = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// check finds what is wrong with a schema, and which of its keywords not every
// engine enforces.
func (s *schema) check(v *value, depth int) *openai.Error {
	switch {
	case depth > maxSchemaDepth:
		return v.invalid("schemas may be nested %d deep at most.", maxSchemaDepth)
	case v.first0() == 't' || v.first0() == 'f':
		return nil
	case !v.isObject():
		return v.wrongType("an object")
	}
	integers := false
	if m, ok := v.member("type"); ok {
		integers = !strings.Contains(string(m.raw()), `"number"`)
	}
	for key, m := range v.members() {
		if err := s.keyword(key, m, depth); err != nil {
			return err
		}
		off := key == "uniqueItems" && m.first0() == 'f'
		if slices.Contains(uneven, key) && !off || schemaForms[key] == real && !integers {
			if !slices.Contains(s.keywords, key) {
				s.keywords = append(s.keywords, key)
			}
		}
	}
	return nil
}

func (s *schema) keyword(key string, v *value, depth int) *openai.Error {
	form := schemaForms[key]
	if form == schemaOrList {
		form = oneSchema
		if v.isArray() {
			form = schemaList
		}
	}
	switch form {
	case oneSchema:
		return s.check(v, depth+1)
	case schemaList:
		if !v.isArray() || v.isEmpty() {
			return v.invalid("it must be an array of schemas, and not empty.")
		}
		for _, e := range v.elements() {
			if err := s.check(e, depth+1); err != nil {
				return err
			}
		}
	case schemaMap:
		if !v.isObject() {
			return v.wrongType("an object")
		}
		for _, m := range v.members() {
			if err := s.check(m, depth+1); err != nil {
				return err
			}
		}
	case count:
		_, err := v.integer(0, math.MaxInt32)
		return err
	case positive:
		n, err := v.number(0, math.MaxFloat64)
		if err == nil && n == 0 {
			return v.invalid("must be greater than 0.")
		}
		return err
	case real:
		_, err := v.number(-math.MaxFloat64, math.MaxFloat64)
		return err
	case flag:
		_, err := v.boolean()
		return err
	case list:
		if !v.isArray() || v.isEmpty() {
			return v.invalid("it must be an array, and not empty.")
		}
	case texts:
		if !v.isArray() {
			return v.wrongType("an array of strings")
		}
		for _, e := range v.elements() {
			if _, err := e.text(); err != nil {
				return err
			}
		}
	case pattern:
		_, err := v.text()
		return err
	case reference:
		to, err := v.text()
		if err == nil && !strings.HasPrefix(to, "#") {
			return v.invalid("it must refer to a part of the same schema (#/…): nothing is fetched.")
		}
		if err == nil && s.collect && to != "#" && !strings.HasPrefix(to, "#/") {
			return openai.Unsupported(v.param(), "where schemas are enforced together, a reference must be a path from the root (#/…)")
		}
		if err == nil && s.collect {
			s.references = append(s.references, *v)
		}
		return err
	case types:
		return checkTypes(v)
	}
	return nil
}

func checkTypes(v *value) *openai.Error {
	if v.isText() {
		if name, _ := v.text(); !slices.Contains(schemaTypes, name) {
			return v.invalid("it must be one of %s.", strings.Join(schemaTypes, ", "))
		}
		return nil
	}
	if !v.isArray() || v.isEmpty() {
		return v.wrongType("a string or an array of strings")
	}
	for _, e := range v.elements() {
		if !e.isText() {
			return e.wrongType("a string")
		}
		if err := checkTypes(e); err != nil {
			return err
		}
	}
	return nil
}
