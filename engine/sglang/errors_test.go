package sglang

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

func clientOf(t testing.TB, h http.Handler) *Client {
	t.Helper()
	return New(enginetest.LinkTo(t, h))
}

// streaming answers with these events and the terminator.
func streaming(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, e := range events {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

func responding(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// lastError runs a request to its end.
func lastError(t *testing.T, c *Client, req *engine.Request) *engine.Error {
	t.Helper()
	var last error
	for delta, err := range c.Generate(t.Context(), req) {
		if err == nil && delta.FinishReason != "" {
			return nil
		}
		last = err
	}
	return engine.AsError(last)
}

// What the server says means the same in each of its dialects, before the first
// token; after it, whatever it says is its own failure.
func TestWhatTheServerSays(t *testing.T) {
	for _, test := range []struct {
		status    int
		message   string
		kind      engine.Kind
		elsewhere bool
	}{
		{503, "The request queue is full.", engine.Overloaded, false},
		{503, "The request is aborted by a higher priority request.", engine.Overloaded, false},
		{503, "Request waiting timeout reached.", engine.Overloaded, false},
		{503, "Using priority is disabled for this server. Please send a new request without a priority.", engine.Overloaded, false},
		{500, "Out of memory even after retracting all other requests in the decode batch.", engine.EngineError, false},
		{400, "The input (3000 tokens) is longer than the model's context length (2048 tokens).", engine.InvalidRequest, true},
		{400, "temperature must be a non-negative finite number, got -1.0.", engine.InvalidRequest, false},
		{400, "Input length (2044 tokens) exceeds the maximum allowed length (2042 tokens). Use a shorter input or enable --allow-auto-truncate.", engine.InvalidRequest, true},
		{400, "Request prompt exceeds the KV memory budget: input_len=2000.", engine.InvalidRequest, true},
		{400, "Duplicate request ID detected: r-1", engine.Disconnected, false},
		{400, "Got LoRA adapter that has never been loaded: x\nAll loaded adapters: dict_keys([]).", engine.InvalidRequest, true},
	} {
		abort := func(tokens []engine.TokenID, total int) string {
			return event(tokens, total, map[string]any{"type": "abort", "message": test.message, "status_code": test.status, "err_type": "BadRequestError"})
		}
		for name, dialect := range map[string]struct {
			before, after http.HandlerFunc
		}{
			"status":                          {before: responding(test.status, errorBody(test.status, test.message))},
			"error event":                     {streaming(errorObject(test.status, test.message)), streaming(event([]engine.TokenID{5}, 1, nil), errorObject(test.status, test.message))},
			"abort":                           {streaming(abort(nil, 0)), streaming(event([]engine.TokenID{5}, 1, nil), abort([]engine.TokenID{5, 6}, 2))},
			"abort with ids of another place": {streaming(abort([]engine.TokenID{9}, 5)), streaming(event([]engine.TokenID{5}, 1, nil), abort([]engine.TokenID{9}, 0))},
		} {
			e := lastError(t, clientOf(t, dialect.before), enginetest.NewRequest())
			if e == nil || e.Kind != test.kind || e.Status != test.status || e.Elsewhere != test.elsewhere || (e.Message == test.message) != (test.kind == engine.InvalidRequest) || !strings.Contains(e.Error(), test.message[:20]) {
				t.Errorf("%s, %d %q: %v, want %v", name, test.status, test.message, e, test.kind)
			}
			if dialect.after == nil {
				continue
			}
			if e := lastError(t, clientOf(t, dialect.after), enginetest.NewRequest()); e == nil || e.Kind != engine.EngineError || e.Message != "" {
				t.Errorf("%s after a token, %d %q: %v, want an engine error", name, test.status, test.message, e)
			}
		}
	}
}

// Older servers give no code in an error event.
func TestErrorEventsWithoutACode(t *testing.T) {
	for message, kind := range map[string]engine.Kind{
		"The input (3000 tokens) is longer than the model's context length (2048 tokens).":                                engine.InvalidRequest,
		"Requested token count exceeds the model's maximum context length of 2048 tokens. You requested a total of 2100.": engine.InvalidRequest,
		"top_p must be in (0, 1], got 2.0.":             engine.InvalidRequest,
		"logit_bias must has keys in [0, 99], got 999.": engine.InvalidRequest,
		"Something broke":                               engine.EngineError,
	} {
		e := lastError(t, clientOf(t, streaming(fmt.Sprintf(`{"error":{"message":%q}}`, message))), enginetest.NewRequest())
		if e == nil || e.Kind != kind {
			t.Errorf("%q: %v, want %v", message, e, kind)
		}
	}
}

func TestEndsThatAreNone(t *testing.T) {
	one := event([]engine.TokenID{5}, 1, nil)
	for name, test := range map[string]struct {
		events []string
		kind   engine.Kind
	}{
		"no number came out": {[]string{one, event([]engine.TokenID{5, 2}, 2, map[string]any{"type": "stop", "matched": "NaN happened"})}, engine.EngineError},
		"an unknown word":    {[]string{one, event([]engine.TokenID{5, 6}, 2, map[string]any{"type": "bored"})}, engine.EngineError},
		"no word":            {[]string{one, event([]engine.TokenID{5, 6}, 2, map[string]any{})}, engine.EngineError},
		"text without ids":   {[]string{`{"text":"Hi","meta_info":{"finish_reason":null,"completion_tokens":1}}`}, engine.WorkerMisconfigured},
		"a cut prompt":       {[]string{strings.Replace(one, `"prompt_tokens":3`, `"prompt_tokens":2`, 1)}, engine.WorkerMisconfigured},
		"a wrong count":      {[]string{one, event([]engine.TokenID{5, 6}, 3, nil)}, engine.ProtocolError},
	} {
		n := 0
		var last error
		c := clientOf(t, streaming(test.events...))
		c.settings.Store(&settings{form: cumulative, parameters: Parameters})
		for delta, err := range c.Generate(t.Context(), enginetest.NewRequest()) {
			n, last = n+len(delta.TokenIDs), err
		}
		if e := engine.AsError(last); last == nil || e.Kind != test.kind || n != len(test.events)-1 {
			t.Errorf("%s: %d ids, %v; want %v", name, n, last, test.kind)
		}
	}
}
