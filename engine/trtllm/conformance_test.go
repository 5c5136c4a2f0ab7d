package trtllm

import (
	"encoding/json"
	"fmt"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/transport"
)

func newClient(t testing.TB, opts transport.Options) engine.Client {
	link, err := transport.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return New(link)
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// event is an event of the stream; stop is the stop reason, finish the finish
// reason, "" for none.
func event(ids any, finish string, stop any) string {
	choice := map[string]any{
		"index": 0, "text": "", "token_ids": ids, "logprobs": nil, "finish_reason": nil, "stop_reason": stop, "avg_decoded_tokens_per_iter": 1.0,
	}
	if finish != "" {
		choice["finish_reason"] = finish
	}
	return encode(map[string]any{"id": "cmpl-42", "object": "text_completion", "created": 1, "model": "m", "choices": []any{choice}, "usage": nil})
}

// flatError is the body of a refusal.
func flatError(code int, message string) string {
	return fmt.Sprintf(`{"object":"error","message":%q,"type":"BadRequestError","param":null,"code":%d}`, message, code)
}

// errorEvent has a code, which the server's own has not, so that a proxy's is
// judged by it.
func errorEvent(code int, message string) string {
	return fmt.Sprintf(`{"error": {"message": %q, "type": "server_error", "code": %d, "param": null}}`, message, code)
}

func TestConformance(t *testing.T) {
	enginetest.Run(t, newClient, enginetest.Dialect{
		Path: completionsPath,
		Events: func(step enginetest.Step) []string {
			return []string{event(step.IDs, string(step.Finish), nil)}
		},
		Tail:       `data: {"id":"cmpl-42","choices":[],"usage":{"prompt_tokens":3,"total_tokens":7,"completion_tokens":4}}` + "\n\ndata: [DONE]\n\ndata: [DONE]\n\n",
		ErrorFrame: errorEvent,
		ErrorBody:  flatError,
		Aborted:    event([]int{}, "cancelled", nil),
		NegativeID: event([]int{-1}, "", nil),
	})
}
