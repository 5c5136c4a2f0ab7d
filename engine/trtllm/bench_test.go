package trtllm

import (
	"testing"

	"baton/engine/enginetest"
)

// BenchmarkStream is the cost of a token from the socket to the consumer, the
// server's part included.
func BenchmarkStream(b *testing.B) {
	const tokens = 1000
	next, last := "data: "+event([]int{282}, "", nil)+"\n\n", "data: "+event([]int{282}, "length", nil)+"\n\ndata: [DONE]\n\n"
	enginetest.BenchmarkStream(b, clientOf(b, enginetest.Events(tokens, next, last)), tokens)
}
