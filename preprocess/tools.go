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
	functions []function // the same, as the request has them
	// namespaces are those of functions that have one, by their names in tools.
	namespaces map[string]string
}

// A function is what a tool is about.
type function struct {
	value        // what describes it
	name  string // by which the model knows it
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
	for _, tool := range r.tools.elements() {
		if err := r.addTool(tool); err != nil {
			return err
		}
	}
	switch choice {
	case toolsAuto:
		if !r.model.Shape.Tools && !r.model.Formats.ToolByFlag && r.model.TemplateFor(true) != nil { // without any it is told below
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
	if r.constraint != nil && !r.ofMessages {
		return openai.InvalidRequest("tool_choice", "Only one constraint of the answer is possible: '%s' and a 'tool_choice' that asks for a call are both given.", r.constrainedBy)
	}
	r.constraint, r.constrainedBy = forced, "tool_choice"
	return nil
}

// allowCalls widens a constraint of the answer by calls, which would be impossible
// otherwise: the answer is then by the schema, or calls as forcedCalls has them.
func (r *request) allowCalls() *openai.Error {
	switch {
	case r.constraint == nil, r.model.Formats.Final != nil: // there calls are messages of their own
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
	if kind, _ := v.member("type"); kind.isText() && unquote(kind.raw()) == "allowed_tools" {
		return "", "", openai.Unsupported(kind.param(), "which of the tools may be called is said by 'tools' themselves; send those only")
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
	if space, ok := function.member("namespace"); ok && r.flatTools && err == nil && !space.isNull() {
		var text string
		text, err = space.text()
		named = text + namespaceMark + named
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
			return value{}, openai.Unsupported(kind.param(), "only tools of type function are, as the server runs no tool by itself, such as a web search")
		}
	}
	if r.flatTools {
		_, named := whole.member("name")
		if _, nested := whole.member("function"); nested && !named {
			err := openai.Missing(whole.param() + ".name")
			err.Message += " In responses it stands beside 'type', without 'function' around it."
			return value{}, err
		}
		return whole, nil
	}
	function, ok := whole.member("function")
	switch {
	case !ok || function.isNull():
		err := openai.Missing(whole.param() + ".function")
		if _, flat := whole.member("name"); flat {
			err.Message += " In chat completions the name of a tool, its description and its parameters stand in there."
		}
		return value{}, err
	case !function.isObject():
		return value{}, function.wrongType("an object")
	}
	return function, nil
}

func (r *request) addTool(tool *value) *openai.Error {
	if space, ok := r.namespaceOf(tool); ok {
		return r.addNamespace(&space)
	}
	described, err := r.functionOf(tool)
	if err != nil {
		return err
	}
	return r.addFunction(&described, "")
}

// namespaceOf returns a tool if it is several functions that are called by one name
// and their own, as responses can have it.
func (r *request) namespaceOf(tool *value) (value, bool) {
	if !r.flatTools || !tool.isObject() {
		return value{}, false
	}
	kind, ok := tool.member("type")
	return *tool, ok && string(kind.raw()) == `"namespace"`
}

func (r *request) addNamespace(space *value) *openai.Error {
	name, ok := space.member("name")
	if !ok || name.isNull() {
		return openai.Missing(space.param() + ".name")
	}
	text, err := name.text()
	if err != nil {
		return err
	}
	if !parser.Callable(text) {
		return invalidName(&name)
	}
	tools, ok := space.member("tools")
	if !ok || tools.isNull() {
		return openai.Missing(space.param() + ".tools")
	}
	if !tools.isArray() {
		return tools.wrongType("an array")
	}
	for _, tool := range tools.elements() {
		described, err := r.functionOf(tool)
		if err != nil {
			return err
		}
		if err := r.addFunction(&described, text); err != nil {
			return err
		}
	}
	return nil
}

// namespaceMark stands between a namespace and a name where both are one word to the
// model. OpenAI allows none in either.
const namespaceMark = "."

// addFunction checks what describes a function, and adds it. What else is in it is
// between the client and the template.
func (r *request) addFunction(described *value, namespace string) *openai.Error {
	if len(r.tooling.tools) == maxTools {
		return r.tools.invalid("at most %d tools are allowed.", maxTools)
	}
	known, err := readFunction(described)
	if err != nil {
		return err
	}
	if namespace != "" {
		known.Name = namespace + namespaceMark + known.Name
		if r.tooling.namespaces == nil {
			r.tooling.namespaces = make(map[string]string)
		}
		r.tooling.namespaces[known.Name] = namespace
	}
	r.tooling.tools = append(r.tooling.tools, known)
	r.tooling.functions = append(r.tooling.functions, function{value: *described, name: known.Name})
	return nil
}

func invalidName(name *value) *openai.Error {
	return name.invalid("a name has 1 to %d letters, digits, or _ - . : /, and no spaces.", parser.MaxName)
}

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
		return known, invalidName(&name)
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
		f := &r.tooling.functions[i]
		for key, m := range f.members() {
			if key == "type" || m.isNull() {
				continue
			}
			if len(list) > begun {
				list = append(list, ',')
			}
			list = append(appendQuoted(list, key), ':')
			if key == "name" {
				list = appendQuoted(list, f.name)
			} else {
				list = append(list, m.raw()...)
			}
		}
		list = append(list, "}}"...)
	}
	return append(list, ']')
}

func appendQuoted(dst []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // a string always encodes
	return append(dst, quoted...)
}
