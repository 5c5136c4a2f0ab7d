package preprocess

import (
	"encoding/json"
	"errors"

	"baton/chattemplate"
	"baton/openai"
)

// renderChat turns the conversation into a prompt.
func (p *Preprocessor) renderChat(r *request) (prompt, *openai.Error) {
	m := r.model
	if r.messages == nil {
		return prompt{}, openai.Missing("messages")
	}
	messages, err := fitMessages(r.messages, m.Shape)
	if err != nil {
		return prompt{}, err
	}
	hasTools := r.tools != nil && !r.tools.isEmpty()
	template := m.TemplateFor(hasTools)
	if template == nil {
		return prompt{}, openai.Unsupported("messages", "the model has no chat template; use /v1/completions")
	}

	in := chattemplate.Input{
		Messages:             messages,
		Documents:            rawOrNil(r.documents),
		ContinueFinalMessage: r.continueFinalMessage,
		AddGenerationPrompt:  or(r.addGenerationPrompt, !r.continueFinalMessage),
		Normalize:            true,
		Kwargs:               r.templateKwargs(),
		SpecialTokens:        m.SpecialTokens,
		Now:                  p.options.Now(),
	}
	if hasTools {
		in.Tools = r.tools.raw()
	}
	text, renderErr := template.Render(in)
	if renderErr != nil {
		return prompt{}, templateError(renderErr)
	}
	ids := m.Tokenizer.Encode(text, r.addSpecial)
	if len(ids) == 0 {
		return prompt{}, r.messages.invalid("the chat template makes an empty prompt of them.")
	}
	return prompt{param: "messages", ids: ids}, nil
}

func rawOrNil(v *value) json.RawMessage {
	if v == nil {
		return nil
	}
	return v.raw()
}

// templateKwargs are the variables for the template. reasoning_effort is one of
// them, as in vLLM, unless chat_template_kwargs has it itself.
func (r *request) templateKwargs() json.RawMessage {
	if r.reasoningEffort == nil {
		return rawOrNil(r.kwargs)
	}
	merged := append([]byte(`{"reasoning_effort":`), r.reasoningEffort.raw()...)
	if r.kwargs != nil && !r.kwargs.isEmpty() {
		for key := range r.kwargs.members() {
			if key == "reasoning_effort" {
				return r.kwargs.raw()
			}
		}
		merged = append(merged, ',')
		return append(merged, r.kwargs.raw()[1:]...)
	}
	return append(merged, '}')
}

// maxTemplateMessageBytes bounds how much a template can say in an error.
const maxTemplateMessageBytes = 1024

// templateError says that template and conversation do not fit. All such errors
// are the client's to repair; what the template itself raised is its makers'
// word to the client.
func templateError(err error) *openai.Error {
	if raised, ok := errors.AsType[*chattemplate.RaisedError](err); ok {
		message := raised.Message
		if len(message) > maxTemplateMessageBytes {
			message = message[:maxTemplateMessageBytes] + "…"
		}
		return openai.InvalidRequest("messages", "The model's chat template refused the messages: %s", message)
	}
	if over, ok := errors.AsType[*chattemplate.LimitError](err); ok {
		return openai.InvalidRequest("messages", "Rendering the messages went over the limit of %d %s.", over.Max, over.Limit)
	}
	if input, ok := errors.AsType[*chattemplate.InputError](err); ok && input.Kind != "" {
		return openai.InvalidRequest("messages", "The model's chat template cannot render these messages (%s).", input.Kind)
	}
	return openai.InvalidRequest("messages", "The model's chat template cannot render these messages.")
}

// checkTools refuses what would need tool calls to be read out of the answer.
// Tools that must not be called are only text for the template.
func (r *request) checkTools() *openai.Error {
	hasTools := r.tools != nil && !r.tools.isEmpty()
	choice := "auto"
	if r.toolChoice != nil {
		switch {
		case r.toolChoice.isObject():
			choice = "a named tool"
		case !r.toolChoice.isText():
			return r.toolChoice.wrongType("a string or an object")
		default:
			choice = unquote(r.toolChoice.raw())
		}
	}
	switch choice {
	case "none":
	case "auto":
		if hasTools && r.toolChoice == nil {
			return openai.Unsupported("tools", "tool calls are not available yet; with 'tool_choice' none the tools are only shown to the model")
		}
		if hasTools {
			return openai.Unsupported("tool_choice", "tool calls are not available yet; only none is")
		}
	case "required", "a named tool":
		return openai.Unsupported("tool_choice", "tool calls are not available yet; only none is")
	default:
		return r.toolChoice.invalid("must be none, auto, required or an object that names a tool.")
	}
	if !hasTools {
		return nil
	}
	for _, tool := range r.tools.elements() {
		if err := checkTool(tool); err != nil {
			return err
		}
	}
	return nil
}

func checkTool(tool *value) *openai.Error {
	if !tool.isObject() {
		return tool.wrongType("an object")
	}
	named := false
	for key, m := range tool.members() {
		switch key {
		case "type":
			if kind, err := m.text(); err != nil {
				return err
			} else if kind != "function" {
				return openai.Unsupported(m.param(), "only tools of type function are")
			}
		case "function":
			if !m.isObject() {
				return m.wrongType("an object")
			}
			for key, name := range m.members() {
				if key != "name" {
					continue
				}
				if _, err := name.text(); err != nil {
					return err
				}
				named = true
			}
		}
	}
	if !named {
		return openai.Missing(tool.param() + ".function.name")
	}
	return nil
}
