package server

import (
	"bufio"
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/backend"
	"baton/engine"
)

// thousandTokens generates 1,000 tokens without allocating.
func thousandTokens() fakeText {
	word, ids := []byte(" token"), []engine.TokenID{42}
	return func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
		for i := range 999 {
			if !yield(backend.Delta{Text: word, TokenIDs: ids, CompletionTokens: i + 1, StopID: -1}, nil) {
				return
			}
		}
		yield(finish(1000), nil)
	}
}

func quietServer(text Generator) *Server {
	reg := prometheus.NewRegistry()
	cfg := Config{MetricsNamespace: "x", SSEKeepAliveInterval: 15 * time.Second, WriteTimeout: time.Minute}
	return New(&fakePreparer{}, text, oneModel, cfg, slog.New(slog.DiscardHandler), reg, reg)
}

// BenchmarkStream is one stream of 1,000 tokens through the handler, without a
// network: what the server itself costs.
func BenchmarkStream(b *testing.B) {
	h := quietServer(thousandTokens()).Handler()
	b.ReportAllocs()
	for b.Loop() {
		req := httptest.NewRequest("POST", chatPath, strings.NewReader(`{"model":"m","stream":true}`))
		h.ServeHTTP(&nullWriter{header: http.Header{}}, req)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/token")
}

// BenchmarkStreamLoopback is the same through net/http on both sides.
func BenchmarkStreamLoopback(b *testing.B) {
	ts := httptest.NewServer(quietServer(thousandTokens()).Handler())
	defer ts.Close()
	b.ReportAllocs()
	for b.Loop() {
		resp, err := request(ts, chatPath, `{"model":"m","stream":true}`)
		if err != nil {
			b.Fatal(err)
		}
		done := false
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			done = done || bytes.Equal(in.Bytes(), []byte("data: [DONE]"))
		}
		resp.Body.Close()
		if !done {
			b.Fatal("no [DONE]")
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/token")
}

// A token costs no allocation: the whole stream has few, whatever its length.
func TestStreamAllocations(t *testing.T) {
	h := quietServer(thousandTokens()).Handler()
	n := testing.AllocsPerRun(10, func() {
		req := httptest.NewRequest("POST", chatPath, strings.NewReader(`{"model":"m","stream":true}`))
		h.ServeHTTP(&nullWriter{header: http.Header{}}, req)
	})
	if n > 300 {
		t.Errorf("%v allocations for a stream of 1,000 tokens", n)
	}
}

type nullWriter struct{ header http.Header }

func (w *nullWriter) Header() http.Header            { return w.header }
func (*nullWriter) WriteHeader(int)                  {}
func (*nullWriter) Write(p []byte) (int, error)      { return len(p), nil }
func (*nullWriter) FlushError() error                { return nil }
func (*nullWriter) SetWriteDeadline(time.Time) error { return nil }
func (*nullWriter) SetReadDeadline(time.Time) error  { return nil }
