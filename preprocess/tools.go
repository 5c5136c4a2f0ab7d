package preprocess

import (
	"bytes"

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
	choice string // one of the four above; none if there are no tools
	named  string // the tool's name, of toolsNamed
	tools  []parser.Tool
}

// checkTools checks the tools, and makes a constraint of a choice that leaves none.
func (r *request) checkTools() *openai.Error {
	hasTools := r.tools != nil && !r.tools.isEmpty()
	choice, named, err := readToolChoice(r.toolChoice)
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
		known, err := readTool(tool)
		if err != nil {
			return err
		}
		r.tooling.tools = append(r.tooling.tools, known)
	}
	switch choice {
	case toolsAuto:
		if !r.model.Shape.Tools {
			return openai.Unsupported("tools", "the model's chat template does not show tools to the model")
		}
		return r.allowCalls()
	case toolsNone:
		return nil
	}
	forced, err := forcedCalls(r.tools, named, r.parallelCalls)
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
	both, err := callsOr(r.tools, r.parallelCalls, r.constraint, r.constrainedBy)
	if err == nil {
		r.constraint = both
	}
	return err
}

// readToolChoice reads the four forms of a choice; v may be nil.
func readToolChoice(v *value) (choice, named string, err *openai.Error) {
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
	kind, ok := v.member("type")
	if !ok || kind.isNull() {
		return "", "", openai.Missing(v.param() + ".type")
	}
	if kind, err := kind.text(); err != nil {
		return "", "", err
	} else if kind != "function" {
		return "", "", openai.Unsupported(v.param()+".type", "only function is")
	}
	function, ok := v.member("function")
	if !ok || function.isNull() {
		return "", "", openai.Missing(v.param() + ".function")
	}
	if !function.isObject() {
		return "", "", function.wrongType("an object")
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

// readTool checks one tool. What else is in it is between the client and the template.
func readTool(tool *value) (parser.Tool, *openai.Error) {
	var known parser.Tool
	if !tool.isObject() {
		return known, tool.wrongType("an object")
	}
	if kind, ok := tool.member("type"); ok && !kind.isNull() {
		if text, err := kind.text(); err != nil {
			return known, err
		} else if text != "function" {
			return known, openai.Unsupported(kind.param(), "only tools of type function are")
		}
	}
	function, ok := tool.member("function")
	if !ok || function.isNull() {
		return known, openai.Missing(tool.param() + ".function")
	}
	if !function.isObject() {
		return known, function.wrongType("an object")
	}
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
