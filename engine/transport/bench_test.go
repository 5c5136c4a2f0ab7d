package transport_test

import (
	"io"
	"net/http"
	"testing"

	"baton/engine/enginetest"
)

// BenchmarkPost is a request and its short answer over a kept connection, the
// server's part included.
func BenchmarkPost(b *testing.B) {
	link := enginetest.LinkTo(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "{}")
	}))
	body := make([]byte, 1000)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := link.Post(b.Context(), "/", "r", body)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp); err != nil {
			b.Fatal(err)
		}
		resp.Finish()
	}
}

// BenchmarkRead is what a chunk of a body costs of which there is always more.
func BenchmarkRead(b *testing.B) {
	chunk := make([]byte, 240) // an event of a worker
	over := make(chan struct{})
	link := enginetest.LinkTo(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(over)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	resp, err := link.Post(b.Context(), "/", "r", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { resp.Abort(); <-over }()
	p := make([]byte, len(chunk))
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.ReadFull(resp, p); err != nil {
			b.Fatal(err)
		}
	}
}
