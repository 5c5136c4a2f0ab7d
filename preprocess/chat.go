package preprocess

import (
	"context"
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
	param := r.messages.param()
	messages, err := fitMessages(r.messages, m.Shape)
	if err != nil {
		return prompt{}, err
	}
	hasTools := r.tools != nil && !r.tools.isEmpty()
	template := m.TemplateFor(hasTools)
	if template == nil {
		return prompt{}, openai.Unsupported(param, "the model has no chat template; use /v1/completions")
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
		in.Tools = r.templateTools()
	}
	text, renderErr := template.Render(in)
	if renderErr != nil {
		return prompt{}, templateError(param, renderErr)
	}
	ids, _ := m.Tokenizer.EncodeConversation(context.Background(), text, r.addSpecial, r.cacheSalt) // it fails with its context only
	if len(ids) == 0 {
		return prompt{}, r.messages.invalid("the chat template makes an empty prompt of them.")
	}
	return prompt{param: param, ids: ids, read: r.reading(text)}, nil
}

func rawOrNil(v *value) json.RawMessage {
	if v == nil {
		return nil
	}
	return v.raw()
}

// templateKwargs are the variables for the template. reasoning_effort is one of
// them, as in vLLM, and none turns off what the families of models call thinking.
// What chat_template_kwargs has itself stands: of equal names the last one counts.
func (r *request) templateKwargs() json.RawMessage {
	if r.reasoningEffort == nil {
		return rawOrNil(r.kwargs)
	}
	effort := r.reasoningEffort.raw()
	merged := append([]byte(`{"reasoning_effort":`), effort...)
	if string(effort) == `"none"` {
		merged = append(merged, `,"enable_thinking":false,"thinking":false`...)
	}
	if r.kwargs != nil && !r.kwargs.isEmpty() {
		merged = append(merged, ',')
		return append(merged, r.kwargs.raw()[1:]...)
	}
	return append(merged, '}')
}

// maxTemplateMessageBytes bounds how much a template can say in an error.
const maxTemplateMessageBytes = 1024

// templateError says that template and conversation, which is param, do not fit. All such errors
// are the client's to repair; what the template itself raised is its makers'
// word to the client.
func templateError(param string, err error) *openai.Error {
	if raised, ok := errors.AsType[*chattemplate.RaisedError](err); ok {
		message := raised.Message
		if len(message) > maxTemplateMessageBytes {
			message = message[:maxTemplateMessageBytes] + "…"
		}
		return openai.InvalidRequest(param, "The model's chat template refused the messages: %s", message)
	}
	if over, ok := errors.AsType[*chattemplate.LimitError](err); ok {
		return openai.InvalidRequest(param, "Rendering the messages went over the limit of %d %s.", over.Max, over.Limit)
	}
	if input, ok := errors.AsType[*chattemplate.InputError](err); ok && input.Kind != "" {
		return openai.InvalidRequest(param, "The model's chat template cannot render these messages (%s).", input.Kind)
	}
	return openai.InvalidRequest(param, "The model's chat template cannot render these messages.")
}
