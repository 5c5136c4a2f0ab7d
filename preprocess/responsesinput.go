package preprocess

import (
	"baton/openai"
	"baton/responsestore"
)

// maxInputItems bounds the items of an input, with those that it only refers to.
const maxInputItems = 1 << 16

// conversation makes of instructions and input the messages of a chat, as templates
// take them. Texts are moved as they are quoted, so the result is JSON if the body
// was.
//
//   - Instructions, and what the system or a developer says before anybody else, are
//     one system message: many templates allow one, and only at the beginning.
//     Developers are the system here: few templates know them, and those that do not
//     would drop in silence what they say.
//   - What a model gives out at once, its reasoning, text and calls, is one message
//     of the assistant, as a model's own template writes it.
//   - The output of a function is a message of the tool.
//
// What was said up to the end of an earlier response goes before the input; its
// instructions do not. What is to be kept with the response, whose id this is, becomes
// r.toKeep. recall may be nil.
func (r *request) conversation(responseID string, recall Recall) (*value, *openai.Error) {
	c := items{out: []byte{'['}, recall: recall}
	if r.instructions != nil {
		c.system = append(c.system, r.instructions.raw())
	}
	if r.previousID != nil {
		if err := c.previous(r.previousID); err != nil {
			return nil, err
		}
	}
	if recall != nil && r.store {
		c.kept = newKeptInput(responseID, recall.Room(c.before))
	}
	switch v := r.input; {
	case v == nil:
		return nil, openai.Missing("input")
	case v.isText():
		c.message("user", [][]byte{v.raw()})
		c.kept.addText(v.raw())
	case !v.isArray():
		return nil, v.wrongType("a string or an array of items")
	case v.isEmpty():
		return nil, v.invalid("there must be at least one item.")
	default:
		for _, e := range v.elements() {
			if err := c.add(e); err != nil {
				return nil, err
			}
		}
	}
	c.endAssistant()
	c.endSystem()
	c.out = append(c.out, ']')
	r.toKeep = c.kept.items(c.before)
	return &value{data: c.out, end: len(c.out), key: "input"}, nil
}

// items is a conversation while it is put together.
type items struct {
	out    []byte   // a JSON array of messages, open
	begun  bool     // a message is in out
	count  int      // of items
	system [][]byte // quoted texts that were said before all others

	// The message of the assistant that is being put together.
	assistant      bool
	reasoning, say [][]byte // quoted texts
	calls          []byte   // JSON objects

	recall        Recall               // nil = nothing is kept
	before        *responsestore.Items // what was said up to the end of the previous response
	recalledBytes int                  // of all that the input only refers to
	referred      map[string]bool      // items, by their ids
	kept          *keptInput           // nil = the input is not kept
}

// An item is an element of the input, its members found.
type item struct {
	*value
	kind, role, id, status, content, summary, callID, name, namespace, arguments, output value
}

// add adds an item of the input or, as v that stands for itself, of an earlier response.
func (c *items) add(v *value) *openai.Error {
	if c.count++; c.count > maxInputItems {
		return openai.InvalidRequest("input", "Invalid value for 'input': at most %d items are allowed.", maxInputItems)
	}
	if !v.isObject() {
		return v.wrongType("an object")
	}
	it := item{value: v}
	it.find()
	kind, err := it.is()
	if err != nil {
		return err
	}
	switch kind {
	case "message":
		err = c.addMessage(&it)
	case "function_call":
		err = c.addCall(&it)
	case "function_call_output":
		err = c.addOutput(&it)
	case "reasoning":
		err = c.addReasoning(&it)
	case "item_reference":
		return c.reference(&it)
	default:
		return openai.Unsupported(it.kind.param(), "only message, function_call, function_call_output and reasoning are")
	}
	if err == nil && v.parent != nil {
		c.kept.addItem(&it, kind)
	}
	return err
}

// find finds the members.
func (it *item) find() {
	for key, m := range it.members() {
		switch key {
		case "type":
			it.kind = *m
		case "role":
			it.role = *m
		case "id":
			it.id = *m
		case "status":
			it.status = *m
		case "content":
			it.content = *m
		case "summary":
			it.summary = *m
		case "call_id":
			it.callID = *m
		case "name":
			it.name = *m
		case "namespace":
			it.namespace = *m
		case "arguments":
			it.arguments = *m
		case "output":
			it.output = *m
		}
	}
}

// is returns what the item is. A message need not say that it is one, and neither need
// an id that stands for an item.
func (it *item) is() (kind string, err *openai.Error) {
	switch {
	case given(it.kind):
		return it.kind.text()
	case !given(it.role) && given(it.id):
		return "item_reference", nil
	}
	return "message", nil
}

func given(v value) bool { return v.data != nil && !v.isNull() }

func (c *items) addMessage(it *item) *openai.Error {
	if !given(it.role) {
		return openai.Missing(it.param() + ".role")
	}
	role, err := it.role.text()
	if err != nil {
		return err
	}
	if !given(it.content) {
		return openai.Missing(it.param() + ".content")
	}
	texts, err := readTexts(&it.content)
	if err != nil {
		return err
	}
	switch role {
	case "user":
		c.message(role, texts)
	case "assistant":
		c.assistant = true
		c.say = append(c.say, texts...)
	case "system", "developer":
		if !c.begun && !c.assistant {
			c.system = append(c.system, joinTexts(texts))
			return nil
		}
		c.message("system", texts)
	default:
		return it.role.invalid("must be user, assistant, system or developer.")
	}
	return nil
}

// readTexts returns the texts of a content as they are quoted.
func readTexts(content *value) ([][]byte, *openai.Error) {
	if content.isText() {
		return [][]byte{content.raw()}, nil
	}
	if !content.isArray() {
		return nil, content.wrongType("a string or an array of content parts")
	}
	var texts [][]byte
	for _, part := range content.elements() {
		if !part.isObject() {
			return nil, part.wrongType("an object")
		}
		var kindValue, text, refusal value
		for key, m := range part.members() {
			switch key {
			case "type":
				kindValue = *m
			case "text":
				text = *m
			case "refusal":
				refusal = *m
			}
		}
		if !given(kindValue) {
			return nil, openai.Missing(part.param() + ".type")
		}
		kind, err := kindValue.text()
		if err != nil {
			return nil, err
		}
		name := "text"
		switch kind {
		case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		case "refusal": // what a model said when it would not answer
			name, text = "refusal", refusal
		default:
			return nil, openai.Unsupported(kindValue.param(), "only content parts of text are; images, audio and files cannot be read")
		}
		if !given(text) {
			return nil, openai.Missing(part.param() + "." + name)
		}
		if !text.isText() {
			return nil, text.wrongType("a string")
		}
		texts = append(texts, text.raw())
	}
	return texts, nil
}

// addCall adds a call that the model made, in one message with what it said before.
func (c *items) addCall(it *item) *openai.Error {
	for _, m := range []struct {
		name string
		v    *value
	}{{"call_id", &it.callID}, {"name", &it.name}, {"arguments", &it.arguments}} {
		if !given(*m.v) {
			return openai.Missing(it.param() + "." + m.name)
		}
		if !m.v.isText() {
			return m.v.wrongType("a string")
		}
	}
	name := it.name.raw()
	if given(it.namespace) {
		if !it.namespace.isText() {
			return it.namespace.wrongType("a string")
		}
		name = joinWith([][]byte{it.namespace.raw(), name}, namespaceMark)
	}
	c.assistant = true
	if len(c.calls) > 0 {
		c.calls = append(c.calls, ',')
	}
	c.calls = append(append(c.calls, `{"id":`...), it.callID.raw()...)
	c.calls = append(append(c.calls, `,"type":"function","function":{"name":`...), name...)
	c.calls = append(append(c.calls, `,"arguments":`...), it.arguments.raw()...)
	c.calls = append(c.calls, "}}"...)
	return nil
}

func (c *items) addOutput(it *item) *openai.Error {
	if !given(it.callID) {
		return openai.Missing(it.param() + ".call_id")
	}
	if !it.callID.isText() {
		return it.callID.wrongType("a string")
	}
	if !given(it.output) {
		return openai.Missing(it.param() + ".output")
	}
	texts, err := readTexts(&it.output)
	if err != nil {
		return err
	}
	c.open("tool")
	c.out = append(append(c.out, `,"tool_call_id":`...), it.callID.raw()...)
	c.close(texts)
	return nil
}

// addReasoning gives a thought back to the model whose it was: its text, or its
// summary where there is no text. What is encrypted was so by another server; it
// cannot be read, and is passed over.
func (c *items) addReasoning(it *item) *openai.Error {
	for _, m := range []*value{&it.content, &it.summary} {
		if !given(*m) || m.isArray() && m.isEmpty() {
			continue
		}
		texts, err := readTexts(m)
		if err != nil {
			return err
		}
		c.assistant = true
		c.reasoning = append(c.reasoning, texts...)
		return nil
	}
	return nil
}

func (c *items) message(role string, texts [][]byte) {
	c.open(role)
	c.close(texts)
}

// open begins a message, up to its content, when all that was before it is out.
func (c *items) open(role string) {
	c.endAssistant()
	c.endSystem()
	c.comma()
	c.out = append(append(append(c.out, `{"role":"`...), role...), '"')
}

func (c *items) comma() {
	if c.begun {
		c.out = append(c.out, ',')
	}
	c.begun = true
}

// close ends a message with its content: one text, or a list of parts.
func (c *items) close(texts [][]byte) {
	c.out = append(c.out, `,"content":`...)
	switch len(texts) {
	case 0:
		c.out = append(c.out, `""`...)
	case 1:
		c.out = append(c.out, texts[0]...)
	default:
		c.out = append(c.out, textParts(texts)...)
	}
	c.out = append(c.out, '}')
}

func (c *items) endSystem() {
	if len(c.system) == 0 {
		return
	}
	system := joinWith(c.system, `\n\n`)
	c.system = nil
	c.comma()
	c.out = append(c.out, `{"role":"system"`...)
	c.close([][]byte{system})
}

// endAssistant ends the message of the assistant, if there is one. Without text the
// content of calls is null, as OpenAI has it and templates expect it.
func (c *items) endAssistant() {
	if !c.assistant {
		return
	}
	say, reasoning, calls := c.say, c.reasoning, c.calls
	c.assistant, c.say, c.reasoning, c.calls = false, nil, nil, nil
	c.open("assistant")
	if len(reasoning) > 0 {
		c.out = append(append(c.out, `,"reasoning_content":`...), joinTexts(reasoning)...)
	}
	if len(calls) > 0 {
		c.out = append(append(append(c.out, `,"tool_calls":[`...), calls...), ']')
		if len(say) == 0 {
			c.out = append(c.out, `,"content":null}`...)
			return
		}
	}
	c.close(say)
}
