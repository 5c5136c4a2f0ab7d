package vllm

import (
	"encoding/json"
	"fmt"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/transport"
)

func newClient(t testing.TB, opts transport.Options, r route) engine.Client {
	link, err := transport.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	c := New(link)
	c.route.Store(int32(r))
	return c
}

func completionsClient(t testing.TB, opts transport.Options) engine.Client {
	return newClient(t, opts, useCompletions)
}

func generateClient(t testing.TB, opts transport.Options) engine.Client {
	return newClient(t, opts, useGenerate)
}

func errorObject(code int, message string) string {
	return fmt.Sprintf(`{"error": {"message": %q, "type": "BadRequestError", "param": null, "code": %d}}`, message, code)
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestCompletionsConformance(t *testing.T) {
	event := func(ids any, finish any) string {
		return encode(map[string]any{
			"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m",
			"choices": []any{map[string]any{"index": 0, "text": "x", "logprobs": nil, "finish_reason": finish, "stop_reason": nil, "prompt_token_ids": []int{1, 5, 9}, "token_ids": ids}},
		})
	}
	enginetest.Run(t, completionsClient, enginetest.Dialect{
		Path: completionsPath,
		Events: func(step enginetest.Step) []string {
			var finish any
			if step.Finish != "" {
				finish = step.Finish
			}
			return []string{event(step.IDs, finish)}
		},
		Tail:       `data: {"id":"cmpl-1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}` + "\n\ndata: [DONE]\n\n",
		ErrorFrame: errorObject,
		ErrorBody:  errorObject,
		Aborted:    event([]int{}, "abort"),
		NegativeID: event([]int{-1}, nil),
	})
}

func TestGenerateConformance(t *testing.T) {
	event := func(ids any, finish any) string {
		return encode(map[string]any{
			"request_id": "generate-tokens-1", "usage": nil, "output_mode": "tokens",
			"choices": []any{map[string]any{"index": 0, "finish_reason": finish, "token_ids": ids, "routed_experts": nil, "logprobs": nil}},
		})
	}
	enginetest.Run(t, generateClient, enginetest.Dialect{
		Path: generatePath,
		Events: func(step enginetest.Step) []string {
			var finish any
			if step.Finish != "" {
				finish = step.Finish
			}
			return []string{event(step.IDs, finish)}
		},
		Tail:       `data: {"request_id":"generate-tokens-1","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7},"choices":[]}` + "\n\ndata: [DONE]\n\n",
		ErrorFrame: errorObject,
		ErrorBody:  errorObject,
		Aborted:    event([]int{}, "abort"),
		NegativeID: event([]int{-1}, nil),
	})
}

func TestTokenize(t *testing.T) {
	enginetest.RunTokenize(t, completionsClient, `{"model":"m","prompt":"a b","add_special_tokens":false}`)
}
