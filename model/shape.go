package model

import (
	"encoding/json"
	"fmt"
	"strings"

	"baton/chattemplate"
)

// A Shape says in which form a model's templates take what the API allows in
// several. It is found by rendering a few conversations once: what a template
// does with a form says more than any reading of its source.
type Shape struct {
	// TypedContent: a text must be given as a list with one part, because the
	// template would not show it otherwise.
	TypedContent bool
	// ObjectArguments: the arguments of a tool call must be given as the object
	// they spell, because as text they would be quoted twice.
	ObjectArguments bool

	// Tools: the template shows tools to the model.
	Tools bool
	// ShortCallIDs: ids of tool calls must have nine letters and digits, because the
	// template refuses others.
	ShortCallIDs bool

	// SystemForDeveloper: a developer's message must be given as the system's, because
	// the template would refuse it, or not show it.
	SystemForDeveloper bool

	partRoles map[string]bool
}

// TakesParts tells whether messages of this role may have a list of text parts
// as content. Where not, the texts must be joined first.
func (s Shape) TakesParts(role string) bool {
	if s.TypedContent {
		return true
	}
	takes, known := s.partRoles[role]
	if !known {
		return s.partRoles["user"]
	}
	return takes
}

// shapeOf tries the model's templates.
func shapeOf(m *Model) Shape {
	var shape Shape
	if m.Template == nil {
		return shape
	}
	shape.TypedContent = needsParts(m, m.Template)
	shape.partRoles = make(map[string]bool)
	for _, role := range []string{"user", "system", "developer", "assistant", "tool"} {
		shape.partRoles[role] = takesParts(m, m.Template, role) &&
			(m.ToolTemplate == nil || takesParts(m, m.ToolTemplate, role))
	}
	shape.ObjectArguments = needsObjectArguments(m, shape.TypedContent)
	shape.SystemForDeveloper = needsSystem(m, shape.TypedContent)
	shape.Tools = showsTools(m, shape.TypedContent)
	shape.ShortCallIDs = needsShortIDs(m, shape)
	return shape
}

// marker is a text that no template has of its own.
const marker = "kx7qzt"

// contentOf returns the content of a message: a text, or a list with one part.
func contentOf(text string, typed bool) string {
	if typed {
		return `[{"type":"text","text":"` + text + `"}]`
	}
	return `"` + text + `"`
}

func needsParts(m *Model, t *chattemplate.Template) bool {
	text, _ := render(m, t, conversation("user", contentOf(marker, false)))
	parts, err := render(m, t, conversation("user", contentOf(marker, true)))
	return err == nil && strings.Contains(parts, marker) && !strings.Contains(text, marker)
}

func takesParts(m *Model, t *chattemplate.Template, role string) bool {
	text, err := render(m, t, conversation(role, contentOf(marker, false)))
	if err != nil || !strings.Contains(text, marker) {
		return false
	}
	parts, err := render(m, t, conversation(role, contentOf(marker, true)))
	return err == nil && parts == text
}

func needsObjectArguments(m *Model, typed bool) bool {
	const object = `{"k": "` + marker + `"}`
	content := contentOf("c", typed)
	quoted, err := json.Marshal(object)
	if err != nil {
		panic(err) // a constant string always encodes
	}
	conversation := func(arguments string) string {
		return fmt.Sprintf(`[{"role":"user","content":%s},{"role":"assistant","content":%s,"tool_calls":[%s]}]`,
			content, content, toolCall(arguments))
	}
	t := m.TemplateFor(true)
	if text, err := render(m, t, conversation(string(quoted))); err == nil && strings.Contains(text, object) {
		return false
	}
	text, err := render(m, t, conversation(object))
	return err == nil && strings.Contains(text, marker)
}

func showsTools(m *Model, typed bool) bool {
	content := contentOf(marker, typed)
	const name = marker + "tool"
	text, err := m.TemplateFor(true).Render(chattemplate.Input{
		Messages:            json.RawMessage(conversation("user", content)),
		Tools:               json.RawMessage(`[{"type":"function","function":{"name":"` + name + `","description":"d","parameters":{"type":"object","properties":{}}}}]`),
		AddGenerationPrompt: true,
		Normalize:           true,
		SpecialTokens:       m.SpecialTokens,
	})
	return err == nil && strings.Contains(text, name)
}

func needsSystem(m *Model, typed bool) bool {
	content := contentOf(marker, typed)
	shows := func(role string) bool {
		text, err := render(m, m.Template, conversation(role, content))
		return err == nil && strings.Contains(text, marker)
	}
	return !shows("developer") && shows("system")
}

func needsShortIDs(m *Model, shape Shape) bool {
	content, arguments := contentOf(marker, shape.TypedContent), `"{}"`
	if shape.ObjectArguments {
		arguments = "{}"
	}
	messages := fmt.Sprintf(`[{"role":"user","content":%s},{"role":"assistant","content":%s,"tool_calls":[%s]},`+
		`{"role":"tool","tool_call_id":"abcdefghi","name":"f","content":%[1]s}]`, content, content, toolCall(arguments))
	t := m.TemplateFor(true)
	if _, err := render(m, t, messages); err != nil {
		return false
	}
	_, err := render(m, t, strings.ReplaceAll(messages, "abcdefghi", "call_0123456789abcdefghijkl"))
	return err != nil
}

// toolCall has an id of nine letters, because Mistral's templates insist on it.
func toolCall(arguments string) string {
	return `{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":` + arguments + `}}`
}

// conversation returns messages in which the one of this role has this content
// and everything else is as strict templates want it.
func conversation(role, content string) string {
	const question = `{"role":"user","content":"q"}`
	message := fmt.Sprintf(`{"role":%q,"content":%s}`, role, content)
	switch role {
	case "user":
		return "[" + message + "]"
	case "system", "developer":
		return "[" + message + "," + question + "]"
	case "assistant":
		return "[" + question + "," + message + "]"
	default:
		call := `{"role":"assistant","content":"","tool_calls":[` + toolCall(`{"k":"v"}`) + `]}`
		message = fmt.Sprintf(`{"role":%q,"tool_call_id":"abcdefghi","name":"f","content":%s}`, role, content)
		return "[" + question + "," + call + "," + message + "]"
	}
}

func render(m *Model, t *chattemplate.Template, messages string) (string, error) {
	return t.Render(chattemplate.Input{
		Messages:      json.RawMessage(messages),
		Normalize:     true,
		SpecialTokens: m.SpecialTokens,
	})
}
