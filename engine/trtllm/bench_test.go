package trtllm

import (
	"io"
	"net/http"
	"testing"

	"baton/engine/enginetest"
)

// BenchmarkStream is the cost of a token from the socket to the consumer, the
// server's part included.
func BenchmarkStream(b *testing.B) {
	const tokens = 1000
	next, last := "data: "+event([]int{282}, "", nil)+"\n\n", "data: "+event([]int{282}, "length", nil)+"\n\ndata: [DONE]\n\n"
	c := clientOf(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range tokens - 1 {
			io.WriteString(w, next)
		}
		io.WriteString(w, last)
	}))
	enginetest.BenchmarkStream(b, c, tokens)
}
