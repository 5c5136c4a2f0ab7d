package vllm

import (
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

// The transcripts are of vLLM 0.32.0.
func TestTranscripts(t *testing.T) {
	const (
		stop, length = engine.FinishStop, engine.FinishLength
		cut, silent  = enginetest.Cut, enginetest.Silent
	)
	completions := []enginetest.Transcript{
		{File: "completions-limit.sse", IDs: 4, Finish: length},
		{File: "completions-eos.sse", IDs: 4, Finish: stop},
		{File: "completions-stop-id.sse", IDs: 3, Finish: stop},
		{File: "completions-stop-string.sse", IDs: 3, Finish: stop},
		{File: "completions-logprobs.sse", IDs: 3, Finish: length},
		{File: "completions-utf8.sse", IDs: 16, Finish: length},
		{File: "completions-n2.sse", IDs: 2, Finish: length}, // the second choice comes after the first one's end
		{File: "completions-continuous-usage.sse", IDs: 2, Finish: length},
		{File: "completions-term-drain.sse", IDs: 60, Finish: length},
		{File: "completions-abort-endpoint.sse", IDs: 52, Err: engine.EngineError},
		{File: "completions-kill9-engine-core.sse", IDs: 67, Err: engine.EngineShutdown},
		{File: "completions-kill9-api-server.sse", End: cut, IDs: 43, Err: engine.Disconnected},
		{File: "completions-sigterm-silent.sse", End: silent, IDs: 32, Err: engine.Cancelled},
		{File: "completions-sigstop-api-server.sse", End: silent, IDs: 50, Err: engine.Cancelled},
		{File: "completions-sigstop-engine-core.sse", End: silent, IDs: 66, Err: engine.Cancelled},
		{File: "completions-during-drain.sse", Err: engine.Disconnected},
		{File: "completions-over-long.json", Status: 400, Err: engine.InvalidRequest},
		{File: "completions-prompt-fills-context.json", Status: 400, Err: engine.InvalidRequest},
		{File: "completions-unknown-model.json", Status: 404, Err: engine.WorkerMisconfigured},
		{File: "completions-queue-full.json", Status: 503, Err: engine.Overloaded},
	}
	generate := []enginetest.Transcript{
		{File: "generate-limit.sse", IDs: 4, Finish: length},
		{File: "generate-eos.sse", IDs: 4, Finish: stop},
		{File: "generate-stop-id.sse", IDs: 3, Finish: stop},
		{File: "generate-logprobs.sse", IDs: 3, Finish: length},
		{File: "generate-abort-endpoint.sse", IDs: 53, Err: engine.EngineError},
		{File: "generate-kill9-engine-core.sse", IDs: 68, Err: engine.EngineShutdown},
		{File: "generate-sigterm-silent.sse", End: silent, IDs: 33, Err: engine.Cancelled},
		{File: "generate-sigstop-api-server.sse", End: silent, IDs: 51, Err: engine.Cancelled},
		{File: "generate-sigstop-engine-core.sse", End: silent, IDs: 67, Err: engine.Cancelled},
		{File: "generate-over-long.sse", Err: engine.InvalidRequest},
		{File: "generate-id-out-of-vocabulary.sse", Err: engine.InvalidRequest},
		{File: "generate-queue-full.json", Status: 503, Err: engine.Overloaded},
	}
	request := func(file string) *engine.Request {
		req := enginetest.NewRequest()
		if strings.Contains(file, "logprobs") {
			req.Output = engine.OutputOptions{Logprobs: true, TopLogprobs: 2}
		}
		return req
	}
	enginetest.Replay(t, completionsClient, "testdata/transcripts", completions, request)
	enginetest.Replay(t, generateClient, "testdata/transcripts", generate, request)
}
