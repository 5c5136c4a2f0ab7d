package chattemplate

import (
	"slices"
	"strings"
	"time"
)

// conversation is an Input as values: the variables of the template.
type conversation struct {
	messages *list
	names    []string
	values   []value
	size     int // bytes of JSON: the prompt will have about as many
	now      time.Time
}

// ownNames are the parameters of apply_chat_template and of what it calls. In
// transformers they cannot be given again as template variables.
var ownNames = []string{
	"messages", "conversation", "conversations", "tools", "documents", "chat_template", "add_generation_prompt",
	"continue_final_message", "tokenize", "padding", "truncation", "max_length", "return_tensors", "return_dict",
	"return_assistant_tokens_mask", "tokenizer_kwargs",
}

func readConversation(in Input) *conversation {
	c := &conversation{size: len(in.Messages) + len(in.Tools), now: in.Now}
	if c.now.IsZero() {
		c.now = time.Now()
	}
	c.messages = c.objects("messages", in.Messages)
	if c.messages == nil {
		typeError("messages must be an array")
	}
	if in.Normalize {
		normalize(c.messages)
	}
	c.set("messages", c.messages)
	c.setOptional("tools", c.objects("tools", in.Tools))
	c.setOptional("documents", c.objects("documents", in.Documents))
	c.set("add_generation_prompt", in.AddGenerationPrompt)
	for name, token := range in.SpecialTokens {
		c.set(name, token)
	}
	if len(in.Kwargs) > 0 {
		c.kwargs(readJSON("chat_template_kwargs", in.Kwargs))
	}
	return c
}

// objects reads an array whose elements must be objects. It is nil for null and
// for nothing.
func (c *conversation) objects(name string, raw []byte) *list {
	if len(raw) == 0 {
		return nil
	}
	v := readJSON(name, raw)
	if v == nil {
		return nil
	}
	l, ok := v.(*list)
	if !ok {
		typeError("%s must be an array, not %s", name, typeName(v))
	}
	for i, e := range l.items {
		if _, ok := e.(*dict); !ok {
			typeError("%s[%d] must be an object, not %s", name, i, typeName(e))
		}
	}
	return l
}

// kwargs come last, so that they hide special tokens of the same name.
func (c *conversation) kwargs(v value) {
	if v == nil {
		return
	}
	d, ok := v.(*dict)
	if !ok {
		typeError("chat_template_kwargs must be an object, not %s", typeName(v))
	}
	for i, k := range d.keys {
		name := k.(string)
		if slices.Contains(ownNames, name) {
			typeError("chat_template_kwargs cannot set %s", name)
		}
		c.set(name, d.vals[i])
	}
}

func (c *conversation) set(name string, v value) {
	c.names, c.values = append(c.names, name), append(c.values, v)
}

func (c *conversation) setOptional(name string, l *list) {
	if l == nil {
		c.set(name, nil)
		return
	}
	c.set(name, l)
}

var reasoningNames = []string{"reasoning_content", "thinking", "reasoning"}

// normalize does what transformers 5 does to messages before it renders them.
func normalize(messages *list) {
	for i, m := range messages.items {
		kept := &dict{}
		var reasoning value
		for k, v := range m.(*dict).vals {
			if v != nil {
				kept.set(m.(*dict).keys[k], v)
			}
		}
		for _, name := range reasoningNames {
			if v, ok := kept.get(name); ok && reasoning == nil {
				reasoning = v
			}
		}
		messages.items[i] = kept
		if reasoning == nil {
			continue
		}
		both := &dict{}
		both.set("thinking", reasoning)
		for k, v := range kept.vals {
			both.set(kept.keys[k], v)
		}
		both.set("reasoning_content", reasoning)
		messages.items[i] = both
	}
}

// finalMessageTag marks where the last message ends. It is transformers' own
// text, blank included: at least one template looks for it.
const finalMessageTag = "CONTINUE_FINAL_MESSAGE_TAG "

// renderOpen renders the conversation with a mark at the end of its last
// message, and cuts the prompt there.
func (t *Template) renderOpen(c *conversation, generationPrompt bool) string {
	if generationPrompt {
		fail("ValueError", "continue_final_message and add_generation_prompt are not compatible")
	}
	if len(c.messages.items) == 0 {
		fail("ValueError", "continue_final_message is set but the conversation is empty")
	}
	if !strings.Contains(t.source, "content") {
		fail("ValueError", "continue_final_message is set but the chat template does not use the content of messages")
	}
	final := markFinal(c.messages.items[len(c.messages.items)-1].(*dict))
	prompt := t.render(c)
	tag := strings.TrimSpace(finalMessageTag)
	at := strings.LastIndex(prompt, tag)
	if at < 0 || !strings.Contains(prompt, strings.TrimFunc(final, isSpace)) {
		fail("ValueError", "continue_final_message is set but the final message does not appear in the prompt: the chat template may delete parts of it")
	}
	if strings.HasPrefix(prompt[at:], finalMessageTag) {
		return prompt[:at]
	}
	// The template trimmed the message, and so must what replaces it.
	return strings.TrimRightFunc(prompt[:at], isSpace)
}

// markFinal puts the mark behind the message's text, or behind the last text
// among its parts, and returns that text.
func markFinal(message *dict) string {
	content, _ := message.get("content")
	if content == nil {
		fail("ValueError", `continue_final_message is set but the final message has no "content" to continue`)
	}
	parts, ok := content.(*list)
	if !ok {
		text := needText(content)
		message.set("content", text+finalMessageTag)
		return text
	}
	for _, e := range slices.Backward(parts.items) {
		part, ok := e.(*dict)
		if !ok {
			typeError("the parts of a message's content must be objects, not %s", typeName(e))
		}
		if v, ok := part.get("text"); ok {
			text := needText(v)
			part.set("text", text+finalMessageTag)
			return text
		}
	}
	fail("ValueError", "continue_final_message is set but there is no text to continue in the final message")
	return ""
}
