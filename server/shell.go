package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"

	"baton/openai"
)

// What surrounds every request: its id, and the net under a panic.

const (
	requestIDHeader     = "X-Request-Id"
	maxClientIDBytes    = 128 // a longer id of a client is not echoed
	maxPrintableBytes   = 128 // of a client's words within a message
	maxStackBytesLogged = 8 << 10
)

type requestIDKey struct{}

// requestIDs are the two names of a request: ours, which is new and random, and
// the one that the response and the log show, which is the client's if it gave one.
type requestIDs struct{ own, shown string }

// withRequestID names every request, in its response headers too. The client's
// id is echoed and logged but never used towards a worker: it need not be unique.
func (s *Server) withRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ids := requestIDs{own: idPrefix(r.URL.Path) + rand.Text()}
		ids.shown = ids.own
		if id := r.Header.Get(requestIDHeader); id != "" && len(id) <= maxClientIDBytes && isVisible(id) {
			ids.shown = strings.Clone(id) // which would keep the whole head
		}
		w.Header().Set(requestIDHeader, ids.shown)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestIDKey{}, ids)))
	})
}

func idPrefix(path string) string {
	switch path {
	case "/v1/chat/completions":
		return "chatcmpl-"
	case "/v1/completions":
		return "cmpl-"
	case "/v1/responses":
		return openai.ResponsePrefix
	}
	return "req-"
}

func requestIDsOf(ctx context.Context) requestIDs {
	ids, _ := ctx.Value(requestIDKey{}).(requestIDs)
	return ids
}

// recovering turns a panic into a 500. Our handlers set Content-Type right
// before they send headers and not earlier, so its presence tells that it is too
// late for a status; then the connection is aborted, which no client takes for
// an end.
func (s *Server) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v != nil && v != http.ErrAbortHandler {
				v = s.recovered(requestIDsOf(r.Context()), w, v)
			}
			if v != nil {
				panic(v)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// recovered answers a request after a panic with v. It returns nil, or
// http.ErrAbortHandler if it is too late for an answer.
func (s *Server) recovered(ids requestIDs, w http.ResponseWriter, v any) any {
	s.logPanic(ids, v)
	if w.Header().Get("Content-Type") != "" {
		return http.ErrAbortHandler
	}
	writeError(w, errInternal())
	return nil
}

// logPanic tells where it happened. The value itself is shown only if the
// runtime made it: any other may hold a piece of a prompt.
func (s *Server) logPanic(ids requestIDs, v any) {
	stack := debug.Stack()
	what := fmt.Sprintf("%T", v)
	if e, ok := v.(runtime.Error); ok {
		what = e.Error()
	}
	s.log.Error("panic in a request",
		slog.String("request_id", ids.own), slog.String("panic", what),
		slog.String("stack", string(stack[:min(len(stack), maxStackBytesLogged)])))
}

// isVisible reports whether s is visible ASCII, without blanks.
func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// printable is s as a message may repeat it.
func printable(s string) string { return bounded(s, maxPrintableBytes) }

// bounded is s with at most limit bytes, and without anything that does strange
// things to a terminal.
func bounded(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit] + "..."
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}
