package sglang

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

// ableClient is the client of a server that was started with every option.
func ableClient(t testing.TB, opts transport.Options) engine.Client {
	c := newClient(t, opts).(*Client)
	s := &settings{deterministic: true, priorities: true, lowFirst: true}
	s.parameters = parametersOf(s)
	c.settings.Store(s)
	return c
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// event is an event as the server sends it, but for what nobody reads.
func event(ids []engine.TokenID, total int, finish any) string {
	return encode(map[string]any{
		"text": "x", "output_ids": ids,
		"meta_info": map[string]any{"id": "req-7", "finish_reason": finish, "prompt_tokens": 3, "weight_version": "default", "completion_tokens": total, "cached_tokens": 0},
	})
}

// finishOf is how a step's finish reason looks.
func finishOf(step enginetest.Step) any {
	switch step.Finish {
	case engine.FinishStop:
		return map[string]any{"type": "stop", "matched": step.IDs[len(step.IDs)-1]}
	case engine.FinishLength:
		return map[string]any{"type": "length", "length": step.Total}
	}
	return nil
}

// errorObject is an error object within a stream.
func errorObject(code int, message string) string {
	return fmt.Sprintf(`{"error": {"message": %q, "type": "invalid_request_error", "code": %d, "retryable": false}}`, message, code)
}

// errorBody is the body of a refusal.
func errorBody(code int, message string) string {
	if code == 400 {
		return fmt.Sprintf(`{"error":{"message":%q}}`, message)
	}
	return fmt.Sprintf(`{"object":"error","message":%q,"type":"%d","param":null,"code":%d}`, message, code, code)
}

func TestConformance(t *testing.T) {
	said := []engine.TokenID{11, 12, 13, 2}
	for name, server := range map[string]struct {
		client enginetest.NewClient
		events func(enginetest.Step) []string
	}{
		"cumulative": {newClient, func(step enginetest.Step) []string {
			return []string{event(said[:step.Total], step.Total, finishOf(step))}
		}},
		"incremental, with every option": {ableClient, func(step enginetest.Step) []string {
			return []string{event(step.IDs, step.Total, finishOf(step))}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			enginetest.Run(t, server.client, enginetest.Dialect{
				Path:       generatePath,
				Events:     server.events,
				Tail:       "data: [DONE]\n\n",
				ErrorFrame: errorObject,
				ErrorBody:  errorBody,
				Aborted:    event([]engine.TokenID{11}, 7, map[string]any{"type": "abort", "message": "Aborted", "status_code": nil, "err_type": nil}),
				NegativeID: event([]engine.TokenID{-1}, 1, nil),
			})
		})
	}
}

func TestTokenize(t *testing.T) {
	enginetest.RunTokenize(t, newClient, `{"model":"m","prompt":"a b","add_special_tokens":false}`)
}
