package trtllm

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

func clientOf(t testing.TB, h http.Handler) *Client {
	t.Helper()
	return New(enginetest.LinkTo(t, h))
}

// streaming answers every request with these events and [DONE].
func streaming(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range append(events, "[DONE]") {
			fmt.Fprintf(w, "data: %s\n\n", e)
		}
	}
}

// ask returns what comes of one request.
func ask(t testing.TB, c *Client, req *engine.Request) (ids []engine.TokenID, logprobs []engine.TokenLogprob, finish engine.FinishReason, failure *engine.Error) {
	t.Helper()
	for d, err := range c.Generate(t.Context(), req) {
		if err != nil {
			return ids, logprobs, "", engine.AsError(err)
		}
		ids, logprobs, finish = append(ids, d.TokenIDs...), append(logprobs, d.Logprobs...), d.FinishReason
	}
	return ids, logprobs, finish, nil
}

// The id that ended an answer is its last one, whatever the server makes of it.
func TestTheEndIsPutBack(t *testing.T) {
	usual := engine.StopConditions{MaxTokens: 9, EOS: []engine.TokenID{2, 3}, TokenIDs: []engine.TokenID{7}}
	ignoring := usual
	ignoring.IgnoreEOS = true
	tests := []struct {
		name   string
		stop   engine.StopConditions
		events []string
		want   []engine.TokenID
	}{
		{"it is there", usual, []string{event([]int{5}, "", nil), event([]int{2}, "stop", nil)}, []engine.TokenID{5, 2}},
		{"it came before its finish reason", usual, []string{event([]int{5, 3}, "", nil), event([]int{}, "stop", nil)}, []engine.TokenID{5, 3}},
		{"stripped, null stands for the model's own", usual, []string{event([]int{5}, "", nil), event([]int{}, "stop", nil)}, []engine.TokenID{5, 2}},
		{"stripped with ids beside it", usual, []string{event([]int{5, 6}, "stop", nil)}, []engine.TokenID{5, 6, 2}},
		{"stripped, and named", usual, []string{event([]int{5}, "", nil), event([]int{}, "stop", 7)}, []engine.TokenID{5, 7}},
		{"named and there", usual, []string{event([]int{5, 7}, "stop", 7)}, []engine.TokenID{5, 7}},
		{"named in an event of its own", usual, []string{event([]int{5, 3}, "", nil), event([]int{}, "stop", 3)}, []engine.TokenID{5, 3}},
		{"the first token", usual, []string{event([]int{}, "stop", 3)}, []engine.TokenID{3}},
		{"ids are null", usual, []string{event([]int{5}, "", nil), event(nil, "stop", 7)}, []engine.TokenID{5, 7}},
		{"one that only the server knows", usual, []string{event([]int{5}, "", nil), event([]int{}, "stop", 99)}, []engine.TokenID{5}},
		{"end ids do not count", ignoring, []string{event([]int{5, 2}, "", nil), event([]int{6}, "stop", nil)}, []engine.TokenID{5, 2, 6}},
		{"end ids do not count, a stop id does", ignoring, []string{event([]int{2}, "", nil), event([]int{}, "stop", 7)}, []engine.TokenID{2, 7}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req := enginetest.NewRequest()
			req.Stop, req.Output.Logprobs = test.stop, true
			ids, logprobs, finish, err := ask(t, clientOf(t, streaming(test.events...)), req)
			if err != nil || finish != engine.FinishStop || !slices.Equal(ids, test.want) || len(logprobs) != len(ids) {
				t.Errorf("%v, %d logprobs, %q, %v; want %v", ids, len(logprobs), finish, err, test.want)
			}
		})
	}
	ids, _, finish, err := ask(t, clientOf(t, streaming(event([]int{5}, "length", nil))), enginetest.NewRequest())
	if err != nil || finish != engine.FinishLength || !slices.Equal(ids, []engine.TokenID{5}) {
		t.Errorf("an answer that its budget ended: %v, %q, %v", ids, finish, err)
	}
}

func TestFinishReasonsThatAreFailures(t *testing.T) {
	for _, word := range []string{"cancelled", "timeout", "not_finished", "error"} {
		_, _, _, err := ask(t, clientOf(t, streaming(event([]int{5}, "", nil), event([]int{}, word, nil))), enginetest.NewRequest())
		if err == nil || err.Kind != engine.EngineError || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
}

// A server that sends text must not look like one that has nothing to say.
func TestTextWithoutIDs(t *testing.T) {
	_, _, _, err := ask(t, clientOf(t, streaming(`{"choices":[{"index":0,"text":"Hi","token_ids":null,"finish_reason":"stop"}]}`)), enginetest.NewRequest())
	if err == nil || err.Kind != engine.WorkerMisconfigured {
		t.Errorf("%v", err)
	}
}

func TestErrors(t *testing.T) {
	const (
		tooLong  = "The sum of prompt length (72417.0), query length (0) should not exceed max_num_tokens (69632)"
		dead     = "LLM is unavailable. Please check the server logs for more details."
		schema   = `{"error":"[{'type': 'less_than_equal', 'loc': ('body', 'priority'), 'msg': 'Input should be less than or equal to 1', 'input': 3.0}]"}`
		newField = `{"error":"[{'type': 'extra_forbidden', 'loc': ('body', 'min_q'), 'msg': 'Extra inputs are not permitted', 'input': 1}]"}`
	)
	respond := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	frame := func(message string) string {
		return fmt.Sprintf(`{"error": {"message": %q, "type": "server_error", "code": null, "param": null}}`, message)
	}
	token := event([]int{5}, "", nil)
	tests := []struct {
		name      string
		handler   http.Handler
		kind      engine.Kind
		elsewhere bool
	}{
		{"a limit of its own", respond(400, "application/json", flatError(400, tooLong)), engine.InvalidRequest, true},
		{"an exception that says nothing of the request", respond(400, "application/json", flatError(400, "list index out of range")), engine.InvalidRequest, true},
		{"the form is wrong", respond(400, "application/json", schema), engine.InvalidRequest, false},
		{"a field that this version does not have", respond(400, "application/json", newField), engine.InvalidRequest, true},
		{"dead, as /health says it", respond(503, "text/plain", dead), engine.EngineShutdown, false},
		{"dead, without a word", respond(503, "text/plain", ""), engine.EngineShutdown, false},
		{"dead, in an object", respond(503, "application/json", flatError(503, dead)), engine.EngineShutdown, false},
		{"dead, as a bad request", respond(400, "application/json", flatError(400, dead)), engine.EngineShutdown, false},
		{"a busy proxy", respond(503, "application/json", `{"error":{"message":"try later","type":"overloaded"}}`), engine.Overloaded, false},
		{"no such route", respond(404, "application/json", `{"detail":"Not Found"}`), engine.WorkerMisconfigured, false},
		{"exception before a token", streaming(frame("CUDA error")), engine.EngineError, false},
		{"exception before a token, of a limit", streaming(frame(tooLong)), engine.InvalidRequest, true},
		{"exception after a token", streaming(token, frame("CUDA error"), "[DONE]"), engine.EngineError, false},
		{"a limit after a token", streaming(token, frame(tooLong)), engine.EngineError, false},
		{"death before a token", streaming(frame(dead)), engine.EngineShutdown, false},
		{"death after a token", streaming(token, frame("Executor worker died during initialization.")), engine.EngineShutdown, false},
		{"DONE twice", streaming("[DONE]"), engine.Disconnected, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, _, _, err := ask(t, clientOf(t, test.handler), enginetest.NewRequest())
			if err == nil || err.Kind != test.kind || err.Elsewhere != test.elsewhere {
				t.Fatalf("%v, elsewhere %v; want %v, %v", err, err != nil && err.Elsewhere, test.kind, test.elsewhere)
			}
			if (err.Message != "") != (test.kind == engine.InvalidRequest) {
				t.Errorf("the client is told %q", err.Message)
			}
		})
	}
}
