package preprocess

import (
	"bytes"
	"encoding/json"

	"baton/engine"
	"baton/openai"
)

// forcedCalls is the constraint of an answer that must be tool calls. Of the tool
// with this name the answer is the arguments; without a name it is an array of
// objects {"name", "parameters"}, at least one, and not more unless calls may be
// parallel. The functions have been checked.
func forcedCalls(functions []function, name string, parallel bool) (*engine.Constraint, *openai.Error) {
	if name != "" {
		return argumentsOf(functions, name)
	}
	var m merged
	array, err := m.calls(functions, parallel)
	if err != nil {
		return nil, err
	}
	return m.constraint(array)
}

// callsOr is the constraint of an answer that is calls, as forcedCalls has them, or
// what c allows, which is JSON and was given by the parameter param.
func callsOr(functions []function, parallel bool, c *engine.Constraint, param string) (*engine.Constraint, *openai.Error) {
	var m merged
	array, err := m.calls(functions, parallel)
	if err != nil {
		return nil, err
	}
	own := []byte(c.JSONSchema)
	if c.JSONObject {
		own = engine.AnyObject
	}
	own, err = m.add(&value{data: own, end: len(own), key: param})
	if err != nil {
		return nil, err
	}
	either := append([]byte(`{"anyOf":[`), array...)
	return m.constraint(append(append(append(either, "},"...), own...), ']'))
}

// argumentsOf is the constraint of an answer that is the arguments of one tool.
func argumentsOf(functions []function, name string) (*engine.Constraint, *openai.Error) {
	for i := range functions {
		if functions[i].name != name {
			continue
		}
		var s schema
		parameters, ok := parametersOf(&functions[i].value)
		if !ok {
			return &engine.Constraint{JSONSchema: noArguments}, nil
		}
		if err := s.check(&parameters, 0); err != nil {
			return nil, err
		}
		if len(parameters.raw()) > maxGrammarBytes {
			return nil, parameters.invalid("it may have at most %d bytes.", maxGrammarBytes)
		}
		return &engine.Constraint{JSONSchema: bytes.Clone(parameters.raw()), Keywords: s.keywords}, nil
	}
	return nil, openai.InvalidRequest("tool_choice", "Invalid value for 'tool_choice': no tool has this name.")
}

// noArguments is the schema of a function that does not say what it takes.
var noArguments = json.RawMessage(`{"type":"object","properties":{}}`)

// parametersOf returns the schema of a function's arguments, if it has one.
func parametersOf(function *value) (parameters value, ok bool) {
	parameters, ok = function.member("parameters")
	return parameters, ok && !parameters.isNull() && !parameters.isEmpty()
}

// calls returns the schema of an array of calls, its closing brace left out.
func (m *merged) calls(functions []function, parallel bool) (array []byte, err *openai.Error) {
	out := []byte(`{"type":"array","minItems":1,`)
	if !parallel {
		out = append(out, `"maxItems":1,`...)
	}
	out = append(out, `"items":{"anyOf":[`...)
	for i := range functions {
		raw := []byte(noArguments)
		if parameters, ok := parametersOf(&functions[i].value); ok {
			if raw, err = m.add(&parameters); err != nil {
				return nil, err
			}
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = appendQuoted(append(out, `{"type":"object","properties":{"name":{"enum":[`...), functions[i].name)
		out = append(append(out, `]},"parameters":`...), raw...)
		out = append(out, `},"required":["name","parameters"],"additionalProperties":false}`...)
	}
	return append(out, "]}"...), nil
}
