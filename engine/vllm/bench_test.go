package vllm

import (
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

// BenchmarkStream is the cost of a token from the socket to the consumer, the
// server's part included.
func BenchmarkStream(b *testing.B) {
	const tokens = 1000
	event := `data: {"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":" of","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":[282]}]}` + "\n\n"
	last := strings.Replace(event, `"finish_reason":null`, `"finish_reason":"length"`, 1) + "data: [DONE]\n\n"
	enginetest.BenchmarkStream(b, clientOf(b, enginetest.Events(tokens, event, last)), tokens)
}

// BenchmarkBody is a request of 1,000 ids as the server reads it.
func BenchmarkBody(b *testing.B) {
	req := &engine.Request{ID: "chatcmpl-1-0-m000-r000", Model: "m", TokenIDs: make([]engine.TokenID, 1000)}
	for i := range req.TokenIDs {
		req.TokenIDs[i] = engine.TokenID(100 * i)
	}
	req.Stop.MaxTokens, req.Sampling.TopP, req.Sampling.RepetitionPenalty = 100, 1, 1
	b.ReportAllocs()
	for b.Loop() {
		if _, err := completionsBody(req); err != nil {
			b.Fatal(err)
		}
	}
}
