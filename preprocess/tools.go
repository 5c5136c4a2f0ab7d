package preprocess

import (
	"bytes"
	"encoding/json"

	"baton/openai"
	"baton/parser"
)

// maxTools bounds how many tools a request may have.
const maxTools = 1024

// How tools may be called.
const (
	toolsNone     = "none"
	toolsAuto     = "auto"
	toolsRequired = "required"
	toolsNamed    = "function"
)

// tooling is what a request says of tools, after it was checked.
type tooling struct {
	choice    string // one of the four above; none if there are no tools
	named     string // the tool's name, of toolsNamed
	tools     []parser.Tool
	functions []value // what describes each of them
}

// checkTools checks the tools, and makes a constraint of a choice that leaves none.
func (r *request) checkTools() *openai.Error {
	hasTools := r.tools != nil && !r.tools.isEmpty()
	choice, named, err := r.readToolChoice(r.toolChoice)
	if err != nil {
		return err
	}
	if !hasTools {
		if choice == toolsRequired || choice == toolsNamed {
			return openai.InvalidRequest("tool_choice", "'tool_choice' asks for a call, but there are no 'tools'.")
		}
		r.tooling.choice = toolsNone
		return nil
	}
	r.tooling = tooling{choice: choice, named: named}
	for i, tool := range r.tools.elements() {
		if i == maxTools {
			return r.tools.invalid("at most %d tools are allowed.", maxTools)
		}
		function, err := r.functionOf(tool)
		if err != nil {
			return err
		}
		known, err := readFunction(&function)
		if err != nil {
			return err
		}
		r.tooling.tools = append(r.tooling.tools, known)
		r.tooling.functions = append(r.tooling.functions, function)
	}
	switch choice {
	case toolsAuto:
		if !r.model.Shape.Tools && !r.model.Formats.ToolByFlag {
			return openai.Unsupported("tools", "the model's chat template does not show tools to the model; "+
				"if a message describes them, the operator can say how the model writes calls with --tool-call-parser")
		}
		return r.allowCalls()
	case toolsNone:
		return nil
	}
	forced, err := forcedCalls(r.tooling.functions, named, r.parallelCalls)
	if err != nil {
		return err
	}
	if r.constraint != nil {
		return openai.InvalidRequest("tool_choice", "Only one constraint of the answer is possible: '%s' and a 'tool_choice' that asks for a call are both given.", r.constrainedBy)
	}
	r.constraint, r.constrainedBy = forced, "tool_choice"
	return nil
}

// allowCalls widens a constraint of the answer by calls, which would be impossible
// otherwise: the answer is then by the schema, or calls as forcedCalls has them.
func (r *request) allowCalls() *openai.Error {
	switch {
	case r.constraint == nil:
		return nil
	case !r.constraint.IsJSON():
		return openai.InvalidRequest(r.constrainedBy, "Under '%s' no tool could be called; 'tool_choice' none only shows the tools.", r.constrainedBy)
	}
	both, err := callsOr(r.tooling.functions, r.parallelCalls, r.constraint, r.constrainedBy)
	if err == nil {
		r.constraint = both
	}
	return err
}

// readToolChoice reads the four forms of a choice; v may be nil.
func (r *request) readToolChoice(v *value) (choice, named string, err *openai.Error) {
	switch {
	case v == nil:
		return toolsAuto, "", nil
	case v.isText():
		switch choice := unquote(v.raw()); choice {
		case toolsNone, toolsAuto, toolsRequired:
			return choice, "", nil
		}
		return "", "", v.invalid("must be none, auto, required or an object that names a function.")
	case !v.isObject():
		return "", "", v.wrongType("a string or an object")
	}
	if kind, ok := v.member("type"); !ok || kind.isNull() {
		return "", "", openai.Missing(v.param() + ".type")
	}
	function, err := r.functionOf(v)
	if err != nil {
		return "", "", err
	}
	name, ok := function.member("name")
	if !ok || name.isNull() {
		return "", "", openai.Missing(function.param() + ".name")
	}
	named, err = name.text()
	if err == nil && named == "" {
		err = name.invalid("must be the name of a tool.")
	}
	return toolsNamed, named, err
}

// functionOf returns what describes the function of a tool, or names that of a
// choice: in chat its member function, in responses itself.
func (r *request) functionOf(tool *value) (value, *openai.Error) {
	if !tool.isObject() {
		return value{}, tool.wrongType("an object")
	}
	whole := *tool
	if kind, ok := whole.member("type"); ok && !kind.isNull() {
		if text, err := kind.text(); err != nil {
			return value{}, err
		} else if text != "function" {
			return value{}, openai.Unsupported(kind.param(), "only tools of type function are")
		}
	}
	if r.flatTools {
		return whole, nil
	}
	function, ok := whole.member("function")
	switch {
	case !ok || function.isNull():
		return value{}, openai.Missing(whole.param() + ".function")
	case !function.isObject():
		return value{}, function.wrongType("an object")
	}
	return function, nil
}

// readFunction checks what describes a function. What else is in it is between the
// client and the template.
func readFunction(function *value) (parser.Tool, *openai.Error) {
	var known parser.Tool
	name, ok := function.member("name")
	if !ok || name.isNull() {
		return known, openai.Missing(function.param() + ".name")
	}
	var err *openai.Error
	if known.Name, err = name.text(); err != nil {
		return known, err
	}
	if !parser.Callable(known.Name) {
		return known, name.invalid("a name has 1 to %d letters, digits, or _ - . : /, and no spaces.", parser.MaxName)
	}
	if parameters, ok := function.member("parameters"); ok && !parameters.isNull() {
		if !parameters.isObject() {
			return known, parameters.wrongType("an object")
		}
		known.Parameters = bytes.Clone(parameters.raw())
	}
	return known, nil
}

// templateTools are the tools in the form that templates take, which is that of chat.
func (r *request) templateTools() json.RawMessage {
	if !r.flatTools {
		return r.tools.raw()
	}
	list := []byte{'['}
	for i := range r.tooling.functions {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, `{"type":"function","function":{`...)
		begun := len(list)
		for key, m := range r.tooling.functions[i].members() {
			if key == "type" || m.isNull() {
				continue
			}
			if len(list) > begun {
				list = append(list, ',')
			}
			list = append(append(appendQuoted(list, key), ':'), m.raw()...)
		}
		list = append(list, "}}"...)
	}
	return append(list, ']')
}

func appendQuoted(dst []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // a string always encodes
	return append(dst, quoted...)
}
