package vllm

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	"baton/engine/enginetest"
	"baton/engine/transport"
)

// A request that is left is named to the engine's abort endpoint, on servers
// that have it.
func TestAbandonedRequestsAreAborted(t *testing.T) {
	for _, test := range []struct {
		name  string
		route route
		want  string
	}{
		{"generate", useGenerate, `{"request_ids":["generate-tokens-r-000"]}`},
		{"completions", useCompletions, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var aborted string
				mux := http.NewServeMux()
				mux.HandleFunc("POST "+abortPath, func(_ http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					aborted = string(body)
				})
				mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, `data: {"choices":[{"index":0,"finish_reason":null,"token_ids":[5]}]}`+"\n\n")
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				})
				var network enginetest.Network
				stop := network.Serve("worker:80", mux)
				defer stop()
				client := newClient(t, transport.Options{URL: "http://worker:80", DialContext: network.DialContext}, test.route)
				req := enginetest.NewRequest()
				req.ID = "r-000"
				for range client.Generate(t.Context(), req) {
					break
				}
				synctest.Wait()
				if aborted != test.want {
					t.Errorf("aborted %q, want %q", aborted, test.want)
				}
			})
		})
	}
}
