package main

import (
	"encoding/json"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
)

func reasoning(s sdk, p params) (any, error) {
	thought := ""
	c, err := s.streamed(p, func(chunk openai.ChatCompletionChunk) {
		for _, choice := range chunk.Choices {
			var piece string // the SDK has no field of its own for it
			if json.Unmarshal([]byte(choice.Delta.JSON.ExtraFields["reasoning_content"].Raw()), &piece) == nil {
				thought += piece
			}
		}
	})
	if err != nil {
		return nil, err
	}
	counted := c.Usage.CompletionTokensDetails.ReasoningTokens
	answer, _ := textOf(c, nil)
	answer["reasoning"], answer["counted"] = thought, 0 < counted && counted < c.Usage.CompletionTokens
	return answer, nil
}

// tools are those of every case with tools; a slice, so that the model always sees
// them in this order.
var tools = []struct{ name, parameters string }{
	{"get_weather", `{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city", "days"], "additionalProperties": false}`},
	{"get_time", `{"type": "object", "properties": {"zones": {"type": "array", "items": {"type": "string"}}}, "required": ["zones"], "additionalProperties": false}`},
}

func withTools(p params) params {
	for _, tool := range tools {
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: tool.name, Strict: openai.Bool(true), Parameters: object(tool.parameters),
		}))
	}
	return p
}

func required(p params) params {
	p.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")}
	return p
}

func named(p params) params {
	p.ToolChoice = openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "get_time"})
	p.ParallelToolCalls = openai.Bool(false)
	return p
}

// called is the answer of a case with calls.
func called(c *openai.ChatCompletion, err error) (map[string]any, error) {
	if err != nil {
		return nil, err
	}
	calls, ids := []any{}, map[string]bool{}
	for _, call := range c.Choices[0].Message.ToolCalls {
		var arguments map[string]any
		if err := json.Unmarshal([]byte(call.Function.Arguments), &arguments); err != nil {
			return nil, fmt.Errorf("arguments %q: %w", call.Function.Arguments, err)
		}
		calls = append(calls, map[string]any{"name": call.Function.Name, "arguments": arguments})
		if call.ID != "" {
			ids[call.ID] = true
		}
	}
	return map[string]any{"calls": calls, "ids": len(ids), "text": c.Choices[0].Message.Content, "finish": c.Choices[0].FinishReason}, nil
}

// loop answers the model's calls and asks again.
func loop(s sdk, p params) (any, error) {
	p = withTools(p)
	first, err := s.streamed(p)
	answer, err := called(first, err)
	if err != nil {
		return nil, err
	}
	p.Messages = append(p.Messages, first.Choices[0].Message.ToParam())
	for _, call := range first.Choices[0].Message.ToolCalls {
		p.Messages = append(p.Messages, openai.ToolMessage(call.Function.Name+call.Function.Arguments, call.ID))
	}
	text, err := textOf(s.streamed(p))
	if err != nil {
		return nil, err
	}
	for key, value := range text {
		answer[key] = value
	}
	answer["requests"] = 2
	return answer, nil
}
