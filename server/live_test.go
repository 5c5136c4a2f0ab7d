package server

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"baton/backend"
	"baton/engine"
)

// What others see of a request follows it from its first byte to its end.
func TestRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		s := quietServer(fakeText(func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
			trace := req.Tokens.Trace
			<-step
			trace.Begin(req.Tokens.ID+"-m00-r000", "w1:8000")
			<-step
			yield(token(1, "one"), nil)
			yield(token(2, "two"), nil)
			<-step
			trace.Ended()
			trace.SetMoving(true)
			<-step
			trace.Begin(req.Tokens.ID+"-m01-r000", "w2:8000")
			trace.Moved(engine.OngoingRequest, 2)
			trace.SetMoving(false)
			yield(token(3, "three"), nil)
			<-step
			yield(finish(4), nil)
		}))
		body, rest := io.Pipe()
		req := httptest.NewRequest("POST", chatPath, body)
		req.Header.Set(requestIDHeader, "mine")
		go s.Handler().ServeHTTP(&nullWriter{header: http.Header{}}, req)

		synctest.Wait()
		all, total := s.Requests(10)
		if total != 1 || len(all) != 1 || all[0].ClientID != "mine" || !strings.HasPrefix(all[0].ID, "chatcmpl-") ||
			all[0].Endpoint != "chat_completions" || all[0].Model != "" || all[0].Choices != nil || all[0].Start.IsZero() {
			t.Fatalf("before its body: %d, %+v", total, all)
		}
		io.WriteString(rest, `{"model":"m","stream":true}`)
		rest.Close()
		for _, want := range []ChoiceStatus{
			{},
			{WorkerID: "w1:8000", Attempts: 1},
			{WorkerID: "w1:8000", Attempts: 1, Tokens: 2},
			{Attempts: 1, Tokens: 2, Moving: true},
			{WorkerID: "w2:8000", Attempts: 2, Tokens: 3, Migrations: 1},
		} {
			synctest.Wait()
			all, _ := s.Requests(10)
			if len(all) != 1 || all[0].Model != "m" || len(all[0].Choices) != 1 || all[0].Choices[0] != want {
				t.Fatalf("got %+v, want %+v", all, want)
			}
			if all, total := s.Requests(0); len(all) != 0 || total != 1 {
				t.Errorf("with limit 0: %d of %d", len(all), total)
			}
			step <- struct{}{}
		}
		synctest.Wait()
		if _, total := s.Requests(1); total != 0 {
			t.Errorf("%d requests run after the end", total)
		}
	})
}

// Looking at a request does not disturb it (run it with -race).
func TestRequestsWhileTheyChange(t *testing.T) {
	s := quietServer(thousandTokens())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			req := httptest.NewRequest("POST", chatPath, strings.NewReader(`{"model":"m","stream":true,"n":3}`))
			s.Handler().ServeHTTP(&nullWriter{header: http.Header{}}, req)
		}
	}()
	for {
		for _, r := range first(s.Requests(10)) {
			for _, c := range r.Choices {
				if c.Tokens < 0 || c.Tokens > 1000 {
					t.Fatalf("%d tokens of 1000", c.Tokens)
				}
			}
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

func first(all []RequestStatus, _ int) []RequestStatus { return all }
