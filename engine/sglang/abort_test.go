package sglang

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/stream"
	"baton/engine/transport"
)

// A fleet of one: it writes one token and waits, and notes which ids it is to
// abort. answer is what it says to an abort.
type abortable struct {
	answer func(w http.ResponseWriter, r *http.Request)

	mu      sync.Mutex // guards aborted
	aborted []string
}

func (a *abortable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == abortPath {
		a.mu.Lock()
		a.aborted = append(a.aborted, string(body))
		a.mu.Unlock()
		a.answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %s\n\n", event([]engine.TokenID{5}, 1, nil))
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func (a *abortable) ids() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(slices.Values(a.aborted))
}

// run leaves requests that run on the worker, all at once, before or after their
// first token.
func (a *abortable) run(t *testing.T, requests int, after time.Duration) *enginetest.Network {
	network := &enginetest.Network{}
	stop := network.Serve("worker:80", a)
	t.Cleanup(stop)
	client := newClient(t, transport.Options{URL: "http://worker:80", DialContext: network.DialContext})
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
	time.Sleep(after)
	synctest.Wait()
	return network
}

// Requests that are left are named to the engine, by their whole ids.
func TestAbandonedRequestsAreAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &abortable{answer: func(http.ResponseWriter, *http.Request) {}}
		a.run(t, 3, 2*stream.AbortGather)
		if want := []string{`{"rid":"r-000"}`, `{"rid":"r-001"}`, `{"rid":"r-002"}`}; !slices.Equal(a.ids(), want) {
			t.Errorf("aborted %q, want %q", a.ids(), want)
		}
	})
}

// A server that does not take one message is not sent the others: a stuck one
// would be busy with them for minutes, one that wants another key refuses all.
func TestAServerThatDoesNotListen(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"stuck":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"refuses": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) },
		"dead":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &abortable{answer: answer}
				network := a.run(t, 50, 2*stream.AbortTimeout)
				if n := len(a.ids()); n == 0 || n > 2 { // net/http may repeat one on a new connection
					t.Errorf("%d messages: %q", n, a.ids())
				}
				time.Sleep(time.Minute)
				if open := network.Open(); open != 0 {
					t.Errorf("%d connections are open after the end", open)
				}
			})
		})
	}
}

// An answer that is complete, or that failed by itself, is not aborted.
func TestFinishedRequestsAreNotAborted(t *testing.T) {
	for name, events := range map[string][]string{
		"finished": {event([]engine.TokenID{2}, 1, map[string]any{"type": "stop", "matched": 2})},
		"failed":   {event([]engine.TokenID{5}, 1, nil), errorObject(500, "broken")},
	} {
		synctest.Test(t, func(t *testing.T) {
			var aborts sync.Map
			mux := http.NewServeMux()
			mux.HandleFunc("POST "+abortPath, func(_ http.ResponseWriter, r *http.Request) { aborts.Store(name, r.URL.Path) })
			mux.HandleFunc("/", streaming(events...))
			var network enginetest.Network
			defer network.Serve("worker:80", mux)()
			client := newClient(t, transport.Options{URL: "http://worker:80", DialContext: network.DialContext})
			for range client.Generate(t.Context(), enginetest.NewRequest()) {
			}
			time.Sleep(time.Minute)
			if _, aborted := aborts.Load(name); aborted {
				t.Errorf("%s: the request was aborted", name)
			}
		})
	}
}

// Told to ignore its end ids the engine ignores the client's stop ids, too: the
// answer is ended here, and the engine is told.
func TestStopIDsWithIgnoreEOS(t *testing.T) {
	for _, test := range []struct {
		name      string
		stop      engine.StopConditions
		events    []string
		want      []engine.TokenID
		finish    engine.FinishReason
		isAborted bool
	}{
		{"a stop id", engine.StopConditions{IgnoreEOS: true, TokenIDs: []engine.TokenID{7}}, []string{event([]engine.TokenID{5}, 1, nil), event([]engine.TokenID{5, 6, 7, 8}, 4, nil)}, []engine.TokenID{5, 6, 7}, engine.FinishStop, true},
		{"a stop id behind others that arrived with it", engine.StopConditions{IgnoreEOS: true, TokenIDs: []engine.TokenID{7}}, []string{event([]engine.TokenID{5}, 1, nil), event([]engine.TokenID{5, 6}, 2, nil), event([]engine.TokenID{5, 6, 7}, 3, nil), event([]engine.TokenID{5, 6, 7, 8}, 4, nil)}, []engine.TokenID{5, 6, 7}, engine.FinishStop, true},
		{"the last one", engine.StopConditions{IgnoreEOS: true, TokenIDs: []engine.TokenID{7}}, []string{event([]engine.TokenID{5, 7}, 2, map[string]any{"type": "length", "length": 2})}, []engine.TokenID{5, 7}, engine.FinishStop, false},
		{"before the minimum", engine.StopConditions{IgnoreEOS: true, TokenIDs: []engine.TokenID{7}, MinTokens: 3}, []string{event([]engine.TokenID{5, 7, 8, 7, 9}, 5, map[string]any{"type": "length", "length": 5})}, []engine.TokenID{5, 7, 8, 7}, engine.FinishStop, false},
		{"an end id", engine.StopConditions{IgnoreEOS: true, EOS: []engine.TokenID{7}}, []string{event([]engine.TokenID{5, 7, 8}, 3, map[string]any{"type": "length", "length": 3})}, []engine.TokenID{5, 7, 8}, engine.FinishLength, false},
		{"where the engine ends it", engine.StopConditions{TokenIDs: []engine.TokenID{7}}, []string{event([]engine.TokenID{5, 7, 8}, 3, map[string]any{"type": "length", "length": 3})}, []engine.TokenID{5, 7, 8}, engine.FinishLength, false},
	} {
		ends := func(t *testing.T, logprobs bool) {
			var aborted sync.Map
			mux := http.NewServeMux()
			mux.HandleFunc("POST "+abortPath, func(_ http.ResponseWriter, r *http.Request) { aborted.Store("yes", true) })
			mux.HandleFunc("/", streaming(test.events...))
			var network enginetest.Network
			defer network.Serve("worker:80", mux)()
			client := newClient(t, transport.Options{URL: "http://worker:80", DialContext: network.DialContext})
			req := enginetest.NewRequest()
			req.Stop, req.Output.Logprobs = test.stop, logprobs // with them no events are joined
			req.Stop.MaxTokens = 16
			var ids []engine.TokenID
			var finish engine.FinishReason
			for delta, err := range client.Generate(t.Context(), req) {
				if err != nil || logprobs && len(delta.Logprobs) != len(delta.TokenIDs) {
					t.Errorf("%s: %+v, %v", test.name, delta, err)
				}
				ids, finish = append(ids, delta.TokenIDs...), delta.FinishReason
			}
			time.Sleep(time.Second)
			if _, was := aborted.Load("yes"); !slices.Equal(ids, test.want) || finish != test.finish || was != test.isAborted {
				t.Errorf("%s: %v, %q, aborted: %v; want %v, %q, %v", test.name, ids, finish, was, test.want, test.finish, test.isAborted)
			}
		}
		synctest.Test(t, func(t *testing.T) { ends(t, true) })
		synctest.Test(t, func(t *testing.T) { ends(t, false) })
	}
}
