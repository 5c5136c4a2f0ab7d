package sglang

import (
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

// The transcripts are of SGLang 0.5.23.
func TestTranscripts(t *testing.T) {
	const stop, length = engine.FinishStop, engine.FinishLength
	transcripts := []enginetest.Transcript{
		{File: "generate-cumulative-limit.sse", IDs: 4, Finish: length},
		{File: "generate-eos.sse", IDs: 4, Finish: stop},
		{File: "generate-stop-id.sse", IDs: 3, Finish: stop},
		{File: "generate-logprobs.sse", IDs: 2, Finish: length},
		{File: "generate-utf8.sse", IDs: 6, Finish: length},
		{File: "generate-min-tokens.sse", IDs: 6, Finish: length},
		{File: "generate-ebnf.sse", IDs: 5, Finish: stop},
		{File: "generate-max-0.sse", Finish: length},
		{File: "generate-bad-topk.sse", IDs: 4, Finish: length}, // 0, which this version takes
		{File: "generate-abort-endpoint.sse", IDs: 27, Err: engine.EngineError},
		{File: "generate-bad-temperature.sse", Err: engine.InvalidRequest},
		{File: "generate-duplicate-rid.sse", Err: engine.Disconnected},
		{File: "generate-empty.sse", Err: engine.InvalidRequest},
		{File: "generate-over-long.sse", Err: engine.InvalidRequest},
		{File: "generate-prompt-plus-max-too-long.sse", Err: engine.InvalidRequest},
		{File: "generate-two-grammars.sse", Err: engine.InvalidRequest},
		{File: "generate-unknown-parameter.json", Status: 400, Err: engine.InvalidRequest},
		{File: "generate-incremental-limit.sse", IDs: 4, Finish: length},
		{File: "generate-incremental-logprobs.sse", IDs: 3, Finish: length},
		{File: "generate-incremental-utf8.sse", IDs: 6, Finish: length}, // two of them in one event
		{File: "generate-incremental-stop-id.sse", IDs: 3, Finish: stop},
		{File: "generate-incremental-ignore-eos-stop-id.sse", IDs: 3, Finish: stop}, // of five: the engine does not end it
		{File: "generate-incremental-abort-endpoint.sse", IDs: 17, Err: engine.EngineError},
		{File: "generate-incremental-own-limit.sse", Err: engine.InvalidRequest}, // with an id that is of no answer
		{File: "generate-incremental-sigkill.sse", End: enginetest.Cut, IDs: 27, Err: engine.Disconnected},
		{File: "generate-over-long.json", Status: 400, Err: engine.InvalidRequest},
	}
	enginetest.Replay(t, newClient, "testdata/transcripts", transcripts, func(file string) *engine.Request {
		req := enginetest.NewRequest()
		req.TokenIDs = req.TokenIDs[:2] // as in the recordings
		if strings.Contains(file, "own-limit") {
			req.TokenIDs = req.TokenIDs[:1] // put in place of the prompt
		}
		if strings.Contains(file, "ignore-eos") {
			req.Stop.IgnoreEOS, req.Stop.TokenIDs = true, []engine.TokenID{1774}
		}
		if strings.Contains(file, "logprobs") {
			req.Output = engine.OutputOptions{Logprobs: true, TopLogprobs: 2}
		}
		return req
	})
}
