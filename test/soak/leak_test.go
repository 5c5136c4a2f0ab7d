//go:build unix

package soak

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"baton/engine/sim"
	"baton/test/harness"
)

// What a worker sends beyond its answer is not logged, by whomever: net/http says
// such things to Go's standard logger.
func TestStrayBytesOfAWorkerAreNotLogged(t *testing.T) {
	w := sim.NewServer(sim.Config{Style: sim.StyleWhole, MeanLength: -1})
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.ServeHTTP(rw, r)
			return
		}
		whole := httptest.NewRecorder()
		w.ServeHTTP(whole, r)
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		events := strings.SplitAfter(whole.Body.String(), "\n\n")
		half := strings.Join(events[:len(events)/2], "")
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: "+strconv.Itoa(len(half))+"\r\n\r\n"+whole.Body.String())
	}))
	defer server.Close()
	url, p := harness.Serve(t, "--worker", server.URL, "--model-path", modelFolder(t), "--log-level", "debug")
	for range 3 {
		if _, err := harness.Stream(t.Context(), url, "/v1/chat/completions", fmt.Sprintf(story, 40), nil); err != nil {
			t.Fatal(err)
		}
	}
	p.Kill()
	if strings.Contains(p.Output(), "token_ids") {
		t.Errorf("the log quotes an answer:\n%s", p.Output())
	}
}
