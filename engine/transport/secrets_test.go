package transport_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/transport"
)

// A worker that repeats the key it was sent does not get it into an error, also
// if the key file has changed meanwhile.
func TestErrorsHoldNoKey(t *testing.T) {
	key := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if r.URL.Path == "/nonsense" {
			conn, _, _ := http.NewResponseController(w).Hijack()
			fmt.Fprintf(conn, "%s\r\n\r\n", sent)
			conn.Close()
			return
		}
		w.WriteHeader(map[string]int{"/400": 400, "/401": 401, "/500": 500}[r.URL.Path])
		json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{
			"message": fmt.Sprintf("%s, %s, %q?%s", sent, "0ld", sent, strings.Repeat("x", 2010)+sent), "type": sent, "param": sent,
		}})
	}))
	defer s.Close()
	link, err := transport.New(transport.Options{URL: s.URL, APIKey: func() string { return key }})
	if err != nil {
		t.Fatal(err)
	}
	for _, key = range []string{"0ld", `s3cr"t\k`} {
		for path, kind := range map[string]engine.Kind{
			"/400": engine.InvalidRequest, "/401": engine.WorkerMisconfigured, "/500": engine.EngineError, "/nonsense": engine.ProtocolError,
		} {
			_, err := link.Get(t.Context(), path)
			e := engine.AsError(err)
			for _, text := range []string{e.Error(), e.Message + e.Param, fmt.Sprint(e.Err)} {
				if strings.Contains(text, "s3cr") || strings.Contains(text, "0ld") && key != "0ld" {
					t.Errorf("%s: %s", path, text)
				}
			}
			if e.Kind != kind || !strings.Contains(e.Error(), "[key]") {
				t.Errorf("%s: %v, want kind %v", path, e, kind)
			}
			if kind == engine.InvalidRequest && e.Param != "[key]" {
				t.Errorf("param %q", e.Param)
			}
		}
	}
	e := link.Error(engine.EngineError, "finish reason %q: %w", key, io.EOF)
	if strings.Contains(e.Error(), "s3cr") || !errors.Is(e, io.EOF) {
		t.Errorf("%v", e)
	}
	if e := link.Error(engine.EngineError, "nothing: %w", io.EOF); e.Error() != strings.TrimPrefix(s.URL, "http://")+": engine_error: nothing: EOF" {
		t.Errorf("%v", e)
	}
}

// A worker's words are bounded, and cannot play with a terminal.
func TestWordsOfWorkersArePlain(t *testing.T) {
	l, err := transport.New(transport.Options{URL: "http://w:1"})
	if err != nil {
		t.Fatal(err)
	}
	for said, want := range map[string]string{
		"all is well":                    "all is well",
		"two\nlines\tand \x1b[31mcolour": "two lines and \ufffd[31mcolour",
		"\u202eback":                     "\ufffdback",
		"broken \xff":                    "broken \ufffd",
		strings.Repeat("ä", 5000):        strings.Repeat("ä", 500) + "…",
		"x" + strings.Repeat("ä", 5000):  "x" + strings.Repeat("ä", 499) + "…",
	} {
		e := l.Error(engine.EngineError, "%s", said)
		if got := e.Err.Error(); got != want {
			t.Errorf("%.40q became %.80q (%d bytes)", said, got, len(got))
		}
	}
}
