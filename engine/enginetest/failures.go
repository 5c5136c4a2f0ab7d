package enginetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/engine"
)

// refusals: HTTP statuses before the stream.
func (s suite) refusals(t *testing.T) {
	tests := []struct {
		status int
		body   string
		kind   engine.Kind
	}{
		{400, s.d.ErrorBody(400, "too hot"), engine.InvalidRequest},
		{413, s.d.ErrorBody(413, "too hot"), engine.InvalidRequest},
		{422, s.d.ErrorBody(422, "too hot"), engine.InvalidRequest},
		{400, "", engine.InvalidRequest},
		{400, "<html>", engine.InvalidRequest},
		{400, strings.Repeat("x", 1<<20), engine.InvalidRequest},
		{401, `{"error":"Unauthorized"}`, engine.WorkerMisconfigured},
		{403, s.d.ErrorBody(403, "no"), engine.WorkerMisconfigured},
		{404, s.d.ErrorBody(404, "no"), engine.WorkerMisconfigured},
		{302, "", engine.WorkerMisconfigured},
		{429, s.d.ErrorBody(429, "busy"), engine.Overloaded},
		{503, s.d.ErrorBody(503, "busy"), engine.Overloaded},
		{500, s.d.ErrorBody(500, "broken"), engine.EngineError},
		{500, "", engine.EngineError},
		{502, "<html>", engine.EngineError},
		{504, "", engine.EngineError},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.status, " ", len(test.body)), func(t *testing.T) {
			header := http.Header{"Retry-After": {"7"}, "Location": {"http://worker:8000/elsewhere"}}
			inBubble(t, s.newClient, Reply{Status: test.status, Header: header, Pieces: []string{test.body}}, func(w *worker) {
				o := w.generate(w.Context(), NewRequest())
				wantKind(t, o, test.kind)
				if o.err == nil {
					return
				}
				if o.err.Status != test.status || o.err.WorkerID != "w1" {
					t.Errorf("status %d of worker %q; want %d of w1", o.err.Status, o.err.WorkerID, test.status)
				}
				if test.kind == engine.Overloaded && o.err.RetryAfter != 7*time.Second {
					t.Errorf("retry after %v, want 7s", o.err.RetryAfter)
				}
				if test.kind == engine.InvalidRequest && (o.err.Message == "" || strings.HasPrefix(test.body, "{") && o.err.Message != "too hot") {
					t.Errorf("message %q", o.err.Message)
				}
				if test.kind != engine.InvalidRequest && o.err.Message != "" {
					t.Errorf("message %q is not the client's business", o.err.Message)
				}
			})
		})
	}
	t.Run("an error body that hangs", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Status: 400, Pieces: []string{`{"error":`}, End: Silent}, func(w *worker) {
			if o := w.generate(w.Context(), NewRequest()); o.took > 10*time.Second {
				t.Errorf("it took %v", o.took)
			} else {
				wantKind(t, o, engine.InvalidRequest)
			}
		})
	})
	t.Run("JSON instead of a stream", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{ContentType: "application/json", Pieces: []string{`{"choices":[]}`}}, func(w *worker) {
			wantKind(t, w.generate(w.Context(), NewRequest()), engine.ProtocolError)
		})
	})
}

func wantKind(t testing.TB, o outcome, kind engine.Kind) {
	t.Helper()
	if o.err == nil || o.err.Kind != kind {
		t.Errorf("got %v; want error %v", o, kind)
	}
}

// failures: what can go wrong inside a 200 stream, before and after tokens.
func (s suite) failures(t *testing.T) {
	tests := []struct {
		name          string
		reply         Reply
		before, after engine.Kind // before the first token, and after three
	}{
		{"cut", Reply{End: Cut}, engine.Disconnected, engine.Disconnected},
		{"clean end", Reply{}, engine.Disconnected, engine.Disconnected},
		{"clean end after DONE", Reply{Pieces: []string{events("[DONE]")}}, engine.Disconnected, engine.Disconnected},
		{"half an event", Reply{Pieces: []string{"data: {\"choi"}}, engine.Disconnected, engine.Disconnected},
		{"error frame 400", Reply{Pieces: []string{events(s.d.ErrorFrame(400, "too hot"))}}, engine.InvalidRequest, engine.EngineError},
		{"error frame 500", Reply{Pieces: []string{events(s.d.ErrorFrame(500, "broken"))}}, engine.EngineError, engine.EngineError},
		{"error frame 503", Reply{Pieces: []string{events(s.d.ErrorFrame(503, "busy"))}}, engine.Overloaded, engine.EngineError},
		{"error frame without a code", Reply{Pieces: []string{events(`{"error":{"message":"?"}}`)}}, engine.EngineError, engine.EngineError},
		{"error frame of a strange form", Reply{Pieces: []string{events(`{"error":[1]}`)}}, engine.EngineError, engine.EngineError},
		{"no JSON", Reply{Pieces: []string{events("oops")}}, engine.ProtocolError, engine.ProtocolError},
		{"no object", Reply{Pieces: []string{events("[1]")}}, engine.ProtocolError, engine.ProtocolError},
		{"null", Reply{Pieces: []string{events("null")}}, engine.ProtocolError, engine.ProtocolError},
		{"half a JSON object", Reply{Pieces: []string{events(strings.TrimRight(s.d.Events(script[0])[0], "}"))}}, engine.ProtocolError, engine.ProtocolError},
		{"negative id", Reply{Pieces: []string{events(s.d.NegativeID)}}, engine.ProtocolError, engine.ProtocolError},
	}
	if s.d.Aborted != "" {
		tests = append(tests, struct {
			name          string
			reply         Reply
			before, after engine.Kind
		}{"aborted", Reply{Pieces: []string{events(s.d.Aborted) + s.d.Tail}}, engine.EngineError, engine.EngineError})
	}
	for _, test := range tests {
		for steps, kind := range map[int]engine.Kind{0: test.before, 2: test.after} {
			t.Run(fmt.Sprintf("%s after %d steps", test.name, steps), func(t *testing.T) {
				reply := test.reply
				reply.Pieces = append([]string{s.steps(steps)}, reply.Pieces...)
				inBubble(t, s.newClient, reply, func(w *worker) {
					o := w.generate(w.Context(), NewRequest())
					wantKind(t, o, kind)
					if want := scriptIDs[:[]int{0, 1, 3}[steps]]; !slices.Equal(o.ids, want) {
						t.Errorf("ids %v, want %v", o.ids, want)
					}
					if kind == engine.InvalidRequest && o.err != nil && o.err.Message != "too hot" {
						t.Errorf("message %q", o.err.Message)
					}
					if o.err != nil && o.err.WorkerID != "w1" && o.err.Kind != engine.Cancelled {
						t.Errorf("worker %q", o.err.WorkerID)
					}
				})
			})
		}
	}
}

// afterFinish: a finished answer stays finished, whatever follows, and does not
// wait for it.
func (s suite) afterFinish(t *testing.T) {
	for name, reply := range map[string]Reply{
		"nothing":     {Pieces: []string{s.steps(3)}},
		"cut":         {Pieces: []string{s.steps(3)}, End: Cut},
		"junk":        {Pieces: []string{s.steps(3), "data: {broken\n\nfoo"}},
		"error frame": {Pieces: []string{s.steps(3), events(s.d.ErrorFrame(500, "late"))}},
		"more ids":    {Pieces: []string{s.steps(3), s.steps(1)}},
		"silence":     {Pieces: []string{s.steps(3)}, End: Silent},
		"endless":     {Pieces: append([]string{s.steps(3)}, slices.Repeat([]string{strings.Repeat(":\n", 1<<14)}, 64)...), End: Silent},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, s.newClient, reply, func(w *worker) {
				o := w.generate(w.Context(), NewRequest())
				wantScript(t, o)
				if o.took > 500*time.Millisecond {
					t.Errorf("the end came after %v", o.took)
				}
				if reply.End == Silent && w.network.Open() != 0 {
					t.Error("the connection stayed open though the worker had not ended its answer")
				}
			})
		})
	}
	t.Run("the connection is used again", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Pieces: []string{s.whole()}}, func(w *worker) {
			for range 3 {
				wantScript(t, w.generate(w.Context(), NewRequest()))
			}
			if n := w.network.Made(); n != 1 {
				t.Errorf("%d connections for 3 requests", n)
			}
		})
	})
}
