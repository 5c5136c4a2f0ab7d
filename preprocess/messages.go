package preprocess

import (
	"bytes"
	"encoding/json"
	"slices"

	"baton/model"
	"baton/openai"
)

// fitMessages checks the messages as far as they must be alike for every
// template, and brings them into the form that this model's template takes. All
// else in them, known or not, in whatever order, reaches the template as it is.
//
// What is changed, and only where the template needs it:
//
//   - content as a list of text parts becomes one text, with line breaks
//     between the parts, as in vLLM; or the other way round;
//   - a developer's message becomes the system's;
//   - the arguments of tool calls, which the API spells as text, become the
//     object that they spell.
func fitMessages(messages *value, shape model.Shape) (json.RawMessage, *openai.Error) {
	if messages.isEmpty() {
		return nil, messages.invalid("there must be at least one message.")
	}
	e := editor{data: messages.data, done: messages.start}
	for _, message := range messages.elements() {
		if err := fitMessage(&e, message, shape); err != nil {
			return nil, err
		}
	}
	return e.finish(messages), nil
}

func fitMessage(e *editor, message *value, shape model.Shape) *openai.Error {
	if !message.isObject() {
		return message.wrongType("an object")
	}
	// The last of several members with one name counts, for the template too.
	var role string
	var roleValue, content, calls value
	for key, m := range message.members() {
		var err *openai.Error
		switch key {
		case "role":
			role, err = m.text()
			roleValue = *m
		case "content":
			content = *m
		case "tool_calls":
			calls = *m
		}
		if err != nil {
			return err
		}
	}
	if roleValue.data == nil {
		return openai.Missing(message.param() + ".role")
	}
	if role == "" {
		return openai.InvalidRequest(message.param()+".role", "A message must have a role.")
	}

	var newRole, newContent, newCalls []byte
	if role == "developer" && shape.SystemForDeveloper {
		role, newRole = "system", []byte(`"system"`)
	}
	if content.data != nil {
		var err *openai.Error
		if newContent, err = fitContent(&content, role, shape); err != nil {
			return err
		}
	}
	if calls.data != nil && shape.ObjectArguments {
		newCalls = fitToolCalls(&calls)
	}
	if newRole == nil && newContent == nil && newCalls == nil {
		return nil
	}
	edits := []edit{{&roleValue, newRole}, {&content, newContent}, {&calls, newCalls}}
	slices.SortFunc(edits, func(a, b edit) int { return a.of.start - b.of.start }) // the editor goes from front to back
	for _, change := range edits {
		e.replace(change.of, change.text)
	}
	return nil
}

// fitContent returns the content in the form that the template takes, nil if it
// has that form.
func fitContent(content *value, role string, shape model.Shape) ([]byte, *openai.Error) {
	switch {
	case content.isNull():
		return nil, nil
	case content.isText():
		if shape.TypedContent {
			return textParts([][]byte{content.raw()}), nil
		}
		return nil, nil
	case !content.isArray():
		return nil, content.wrongType("a string or an array of content parts")
	}

	var texts [][]byte // quoted
	other := false     // than parts of type text
	for _, part := range content.elements() {
		kind, text, err := readPart(part)
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
		other = other || kind != "text"
	}
	switch {
	case !shape.TakesParts(role):
		return joinTexts(texts), nil
	case other:
		return textParts(texts), nil
	}
	return nil, nil
}

// readPart returns the type of a content part and its text as it is quoted.
func readPart(part *value) (kind string, text []byte, err *openai.Error) {
	if !part.isObject() {
		return "", nil, part.wrongType("an object")
	}
	var textValue, refusal value
	for key, m := range part.members() {
		switch key {
		case "type":
			if kind, err = m.text(); err != nil {
				return "", nil, err
			}
		case "text":
			textValue = *m
		case "refusal":
			refusal = *m
		}
	}
	switch kind {
	case "text":
	case "refusal": // what a model said when it would not answer
		textValue = refusal
	case "":
		return "", nil, openai.Missing(part.param() + ".type")
	default:
		return "", nil, openai.Unsupported(part.param(), "only content parts of type text are; images, audio, video and files cannot be read")
	}
	if textValue.data == nil {
		return "", nil, openai.Missing(part.param() + "." + kind)
	}
	if !textValue.isText() {
		return "", nil, openai.InvalidType(part.param()+"."+kind, "a string", textValue.kind())
	}
	return kind, textValue.raw(), nil
}

// joinTexts makes one quoted text of several. It never looks into them: what is
// between the quotes may be joined as it is.
func joinTexts(texts [][]byte) []byte { return joinWith(texts, `\n`) }

// joinWith is joinTexts with what stands between the texts, as JSON spells it.
func joinWith(texts [][]byte, between string) []byte {
	joined := []byte{'"'}
	for i, text := range texts {
		if i > 0 {
			joined = append(joined, between...)
		}
		joined = append(joined, text[1:len(text)-1]...)
	}
	return append(joined, '"')
}

func textParts(texts [][]byte) []byte {
	list := []byte{'['}
	for i, text := range texts {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(append(list, `{"type":"text","text":`...), text...)
		list = append(list, '}')
	}
	return append(list, ']')
}

// fitToolCalls returns the calls with their arguments as objects, nil if there
// is nothing to change. Arguments that spell no object stay as they are: a model
// that wrote them must be able to read them again.
func fitToolCalls(calls *value) []byte {
	if !calls.isArray() {
		return nil
	}
	e := editor{data: calls.data, done: calls.start}
	for _, call := range calls.elements() {
		function, ok := call.member("function")
		if !ok {
			continue
		}
		if arguments, ok := function.member("arguments"); ok && arguments.isText() {
			e.replace(&arguments, spelledObject(unquote(arguments.raw())))
		}
	}
	if e.out == nil {
		return nil
	}
	return e.finish(calls)
}

// spelledObject returns the JSON object that text spells, nil if it spells none.
// No text at all means no arguments.
func spelledObject(text string) []byte {
	object := bytes.TrimSpace([]byte(text))
	if len(object) == 0 {
		return []byte("{}")
	}
	if _, err := scan(object); err != nil {
		return nil
	}
	return object
}

// An edit puts text in the place of a value, if it is not nil.
type edit struct {
	of   *value
	text []byte
}

// An editor copies JSON and replaces values on the way, from front to back.
type editor struct {
	data []byte
	done int // up to here data has been copied to out
	out  []byte
}

// replace puts text in the place of v; nil leaves v as it is.
func (e *editor) replace(v *value, text []byte) {
	if text == nil {
		return
	}
	e.out = append(e.out, e.data[e.done:v.start]...)
	e.out = append(e.out, text...)
	e.done = v.end
}

// finish returns whole, which began where the editor did, as it is now.
func (e *editor) finish(whole *value) []byte {
	if e.out == nil {
		return whole.raw()
	}
	return append(e.out, e.data[e.done:whole.end]...)
}
