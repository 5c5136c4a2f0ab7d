package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func serveText(t *testing.T, status int, body string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestAskStream(t *testing.T) {
	url := serveText(t, 200, `data: {"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":{"completion_tokens":0}}

: comment
data: {"choices":[{"delta":{"content":"Hello"},"finish_reason":null}],"usage":{"completion_tokens":1}}

data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"completion_tokens":2}}

data: {"choices":[],"usage":{"completion_tokens":2}}

data: [DONE]

`)
	var text, finish string
	tokens := 0
	err := askStream(t.Context(), url, question{}, func(c chunk) error {
		text, tokens = text+c.text, max(tokens, c.tokens)
		if c.finish != "" {
			finish = c.finish
		}
		return nil
	})
	if err != nil || text != "Hello" || tokens != 2 || finish != "stop" {
		t.Errorf("%q, %d, %q, %v", text, tokens, finish, err)
	}
}

func TestAskStreamSaysWhatWentWrong(t *testing.T) {
	for want, reply := range map[string]struct {
		status int
		body   string
	}{
		"the stream ended without [DONE]":        {200, "data: {\"choices\":[]}\n\n"},
		"the worker died":                        {200, "data: {\"error\":{\"message\":\"the worker died\"}}\n\n"},
		"status 503: no worker":                  {503, `{"error":{"message":"no worker"}}`},
		"status 404":                             {404, "nothing"},
		"read an event: unexpected end of JSON ": {200, "data: {\"choices\"\n\n"},
	} {
		err := askStream(t.Context(), serveText(t, reply.status, reply.body), question{}, func(chunk) error { return nil })
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestAskWhole(t *testing.T) {
	url := serveText(t, 200, `{"choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"length"}],"usage":{"completion_tokens":3}}`)
	c, err := askWhole(t.Context(), url, question{})
	if err != nil || c != (chunk{"Hi", 3, "length"}) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestReadLog(t *testing.T) {
	f := &fleet{seams: make(chan seam, 1)}
	f.readLog("no JSON")
	f.readLog(`{"level":"INFO","msg":"something else","from":"x"}`)
	f.readLog(`{"level":"WARN","msg":"request migrated","from":"a:1","to":"b:2","kind":"ongoing_request","tokens_carried":34,"gap_ms":4.5}`)
	f.readLog(`{"level":"WARN","msg":"request migrated","from":"c:1"}`) // nobody takes it: it must not block
	if s := <-f.seams; s != (seam{"a:1", "b:2", "ongoing_request", 34, 4.5}) {
		t.Errorf("%+v", s)
	}
}
