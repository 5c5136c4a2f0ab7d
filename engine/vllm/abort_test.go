package vllm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine/enginetest"
	"baton/engine/stream"
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
				time.Sleep(2 * stream.AbortGather)
				synctest.Wait()
				if aborted != test.want {
					t.Errorf("aborted %q, want %q", aborted, test.want)
				}
			})
		})
	}
}

// A stuck server loses all its requests at once, most of them before their first
// token. It takes one connection to name them.
func TestAStuckServerIsToldTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests = 100
		var mu sync.Mutex
		var named []int // how many ids each message has
		var ids []string
		mux := http.NewServeMux()
		mux.HandleFunc("POST "+abortPath, func(_ http.ResponseWriter, r *http.Request) {
			var body struct {
				IDs []string `json:"request_ids"`
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			mu.Lock()
			named, ids = append(named, len(body.IDs)), append(ids, body.IDs...)
			mu.Unlock()
			<-r.Context().Done()
		})
		mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		})
		var network enginetest.Network
		stop := network.Serve("worker:80", mux)
		defer stop()
		client := newClient(t, transport.Options{URL: "http://worker:80", DialContext: network.DialContext}, useGenerate)
		ctx, leave := context.WithCancel(t.Context())
		for i := range requests {
			go func() {
				req := enginetest.NewRequest()
				req.ID = fmt.Sprintf("r-%03d", i)
				for range client.Generate(ctx, req) {
				}
			}()
		}
		synctest.Wait()
		leave()
		time.Sleep(2 * stream.AbortGather)
		synctest.Wait()
		if open := network.Open(); open != 1 {
			t.Errorf("%d connections are open", open)
		}
		time.Sleep(3 * stream.AbortTimeout)
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(ids)
		if len(named) != 1 || len(slices.Compact(ids)) != requests {
			t.Errorf("%d requests were named, in messages of %d", len(ids), named)
		}
		if open := network.Open(); open != 0 {
			t.Errorf("%d connections are open after the end", open)
		}
	})
}
