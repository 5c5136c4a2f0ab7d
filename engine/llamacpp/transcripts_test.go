package llamacpp

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/transport"
)

// The transcripts are of llama.cpp b11434.
func TestTranscripts(t *testing.T) {
	transcripts := []enginetest.Transcript{
		{File: "eos.sse", IDs: 25, Finish: engine.FinishStop},
		{File: "limit.sse", IDs: 3, Finish: engine.FinishLength},
		{File: "n-predict-0.sse", IDs: 1, Finish: engine.FinishLength},
		{File: "stop-word.sse", IDs: 12, Err: engine.ProtocolError}, // we never send stop strings
		{File: "logprobs.sse", IDs: 3, Finish: engine.FinishLength},
		{File: "grammar.sse", IDs: 3, Finish: engine.FinishStop},
		{File: "kill9.sse", End: enginetest.Cut, IDs: 8, Err: engine.Disconnected},
		{File: "sigterm.sse", End: enginetest.Cut, IDs: 9, Err: engine.Disconnected},
		{File: "sigterm-2.sse", End: enginetest.Cut, IDs: 8, Err: engine.Disconnected},
		{File: "sigterm-2.sse", End: enginetest.Silent, IDs: 8, Err: engine.Disconnected},
		{File: "over-long.json", Status: 400, Err: engine.InvalidRequest},
		{File: "bad-token-id.json", Status: 400, Err: engine.InvalidRequest},
		{File: "bad-grammar.json", Status: 400, Err: engine.InvalidRequest},
		{File: "loading.json", Status: 503, Err: engine.Overloaded},
	}
	enginetest.Replay(t, newClient, "testdata/transcripts", transcripts, func(file string) *engine.Request {
		req := enginetest.NewRequest()
		if file == "logprobs.sse" {
			req.Output = engine.OutputOptions{Logprobs: true, TopLogprobs: 2}
		}
		return req
	})
}

// The stream of an emoji and CJK text lost 13 of 24 ids; the same request
// unstreamed has them all. The client finds exactly those: 11 from the text, and
// the last two, which no text was sent for, by asking again.
func TestLostIDsOfRecordedServer(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile("testdata/transcripts/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var unstreamed struct{ Tokens []engine.TokenID }
	if err := json.Unmarshal([]byte(read("utf8-lost-ids.nonstream.json")), &unstreamed); err != nil {
		t.Fatal(err)
	}
	tail := fmt.Sprintf(`{"content":"","tokens":[%d,%d],"stop":true,"stop_type":"limit","tokens_predicted":2}`, unstreamed.Tokens[22], unstreamed.Tokens[23])
	var bodies []string
	play(t, func(n int, body string) enginetest.Reply {
		bodies = append(bodies, body)
		if n == 0 {
			return enginetest.Reply{Pieces: []string{read("utf8-lost-ids.sse")}}
		}
		return enginetest.Reply{ContentType: "application/json", Pieces: []string{tail}}
	}, func(t *testing.T, client engine.Client) {
		req := enginetest.NewRequest()
		req.Stop.MaxTokens = 24
		req.Output.Logprobs = true
		var ids []engine.TokenID
		var finish engine.FinishReason
		for delta, err := range client.Generate(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			if len(delta.Logprobs) != len(delta.TokenIDs) {
				t.Errorf("%d logprobs for %d ids", len(delta.Logprobs), len(delta.TokenIDs))
			}
			ids, finish = append(ids, delta.TokenIDs...), delta.FinishReason
		}
		if !slices.Equal(ids, unstreamed.Tokens) || finish != engine.FinishLength {
			t.Errorf("got  %v, %q\nwant %v, length", ids, finish, unstreamed.Tokens)
		}
	})
	if len(bodies) != 2 {
		t.Fatalf("%d requests", len(bodies))
	}
	var second struct {
		Prompt  []engine.TokenID
		Predict int `json:"n_predict"`
		Stream  bool
	}
	if err := json.Unmarshal([]byte(bodies[1]), &second); err != nil {
		t.Fatal(err)
	}
	if want := slices.Concat(enginetest.NewRequest().TokenIDs, unstreamed.Tokens[:22]); !slices.Equal(second.Prompt, want) || second.Predict != 2 || second.Stream {
		t.Errorf("the tail was asked for with %s", bodies[1])
	}
}

// play runs test with a client of a server that answers with replies.
func play(t *testing.T, replies func(n int, body string) enginetest.Reply, test func(*testing.T, engine.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var network enginetest.Network
		n := -1
		stop := network.Serve("llama:8080", enginetest.Handler(func(body string) enginetest.Reply {
			n++
			return replies(n, body)
		}))
		defer stop()
		test(t, newClient(t, transport.Options{URL: "http://llama:8080", DialContext: network.DialContext}))
	})
}

func events(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }
