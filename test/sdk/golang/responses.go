package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

type responseParams = responses.ResponseNewParams

// responseCases are those on the Responses API.
var responseCases = map[string]func(s sdk, question string) (any, error){
	"text.responses": func(s sdk, question string) (any, error) {
		r, deltas, err := s.responseStreamed(asked(question))
		return withDeltas(deltas)(textOfResponse(r, err))
	},
	"whole.responses": func(s sdk, question string) (any, error) {
		return textOfResponse(s.client.Responses.New(s.ctx, asked(question)))
	},
	"reasoning.responses": func(s sdk, question string) (any, error) {
		r, deltas, err := s.responseStreamed(asked(question))
		answer, err := withDeltas(deltas)(textOfResponse(r, err))
		if err != nil {
			return nil, err
		}
		thought := ""
		for _, item := range r.Output {
			if item.Type != "reasoning" {
				continue
			}
			for _, part := range item.AsReasoning().Content {
				thought += part.Text
			}
		}
		counted := r.Usage.OutputTokensDetails.ReasoningTokens
		answer["reasoning"], answer["counted"] = thought, 0 < counted && counted < r.Usage.OutputTokens
		return answer, nil
	},
	"schema.responses": func(s sdk, question string) (any, error) {
		p := asked(question)
		p.Text = responses.ResponseTextConfigParam{Format: responses.ResponseFormatTextConfigParamOfJSONSchema("report", object(reportSchema))}
		r, err := s.client.Responses.New(s.ctx, p)
		if err != nil {
			return nil, err
		}
		parsed, err := parse(r.OutputText())
		return map[string]any{"parsed": parsed, "status": r.Status}, err
	},
	"tools.responses": calledInResponse,
	"required.responses": func(s sdk, question string) (any, error) {
		p := askedWithTools(question)
		p.ToolChoice = responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: openai.Opt(responses.ToolChoiceOptionsRequired)}
		r, err := s.client.Responses.New(s.ctx, p)
		if err != nil {
			return nil, err
		}
		return callsOfResponse(r)
	},
	"loop.responses": func(s sdk, question string) (any, error) {
		p := askedWithTools(question)
		first, _, err := s.responseStreamed(p)
		if err != nil {
			return nil, err
		}
		answer, err := callsOfResponse(first)
		if err != nil {
			return nil, err
		}
		input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(question, responses.EasyInputMessageRoleUser)}
		for _, item := range first.Output {
			switch item.Type {
			case "message":
				message := item.AsMessage().ToParam()
				input = append(input, responses.ResponseInputItemUnionParam{OfOutputMessage: &message})
			case "function_call":
				call := item.AsFunctionCall()
				again := call.ToParam()
				result := responses.ResponseInputItemParamOfFunctionCallOutput(call.Name + call.Arguments)
				result.OfFunctionCallOutput.CallID = openai.String(call.CallID)
				input = append(input, responses.ResponseInputItemUnionParam{OfFunctionCall: &again}, result)
			}
		}
		p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: input}
		r, _, err := s.responseStreamed(p)
		text, err := textOfResponse(r, err)
		for key, value := range text {
			answer[key] = value
		}
		answer["requests"] = 2
		return answer, err
	},
}

func asked(question string) responseParams {
	return responseParams{
		Model:       job.Model,
		Input:       responses.ResponseNewParamsInputUnion{OfString: openai.String(question)},
		Temperature: openai.Float(0), MaxOutputTokens: openai.Int(400),
	}
}

func askedWithTools(question string) responseParams {
	p := asked(question)
	for _, tool := range tools {
		p.Tools = append(p.Tools, responses.ToolParamOfFunction(tool.name, object(tool.parameters), true))
	}
	return p
}

// responseStreamed returns the response that ends a stream, and all its deltas of text.
func (s sdk) responseStreamed(p responseParams) (r *responses.Response, deltas string, err error) {
	stream := s.client.Responses.NewStreaming(s.ctx, p)
	for stream.Next() {
		event := stream.Current()
		switch event.Type {
		case "response.output_text.delta":
			deltas += event.AsResponseOutputTextDelta().Delta
		case "response.completed":
			completed := event.AsResponseCompleted().Response
			r = &completed
		}
	}
	if err = stream.Err(); err == nil && r == nil {
		err = errors.New("the stream ended without response.completed")
	}
	return r, deltas, err
}

func textOfResponse(r *responses.Response, err error) (map[string]any, error) {
	if err != nil {
		return nil, err
	}
	role := ""
	for _, item := range r.Output {
		if item.Type == "message" {
			role = string(item.AsMessage().Role)
		}
	}
	return map[string]any{"text": r.OutputText(), "role": role, "status": r.Status, "tokens": r.Usage.OutputTokens}, nil
}

func withDeltas(deltas string) func(map[string]any, error) (map[string]any, error) {
	return func(answer map[string]any, err error) (map[string]any, error) {
		if err == nil {
			answer["deltas"] = deltas
		}
		return answer, err
	}
}

func calledInResponse(s sdk, question string) (any, error) {
	r, _, err := s.responseStreamed(askedWithTools(question))
	if err != nil {
		return nil, err
	}
	return callsOfResponse(r)
}

func callsOfResponse(r *responses.Response) (map[string]any, error) {
	calls, ids := []any{}, map[string]bool{}
	for _, item := range r.Output {
		if item.Type != "function_call" {
			continue
		}
		call := item.AsFunctionCall()
		var arguments map[string]any
		if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil {
			return nil, fmt.Errorf("arguments %q: %w", call.Arguments, err)
		}
		calls = append(calls, map[string]any{"name": call.Name, "arguments": arguments})
		ids[call.CallID] = call.CallID != ""
	}
	return map[string]any{"calls": calls, "ids": len(ids), "text": r.OutputText(), "status": r.Status}, nil
}
