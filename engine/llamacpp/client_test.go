package llamacpp

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

// collect consumes a generation.
func collect(t *testing.T, client engine.Client, req *engine.Request) (ids []engine.TokenID, finish engine.FinishReason, fault *engine.Error) {
	t.Helper()
	for delta, err := range client.Generate(t.Context(), req) {
		if err != nil {
			return ids, "", engine.AsError(err)
		}
		if req.Output.Logprobs && len(delta.Logprobs) != len(delta.TokenIDs) {
			t.Errorf("%d logprobs for %d ids", len(delta.Logprobs), len(delta.TokenIDs))
		}
		ids, finish = append(ids, delta.TokenIDs...), delta.FinishReason
	}
	return ids, finish, nil
}

func TestStreams(t *testing.T) {
	id := func(ids ...engine.TokenID) []engine.TokenID { return ids }
	// 15107 244 218 are the bytes of " 🚀", of which only the last is shown.
	rocket := partialEvent(" 🚀", id(218), 3)
	tests := []struct {
		name   string
		events []string
		change func(*engine.Request)
		ids    []engine.TokenID
		finish engine.FinishReason
		kind   engine.Kind
	}{
		{"limit", []string{partialEvent("a", id(5), 1), finalEvent("limit", 1)}, nil, id(5), engine.FinishLength, 0},
		{"end id that is not ours", []string{partialEvent("a", id(5), 1), partialEvent("", id(3), 2), finalEvent("eos", 2)}, nil, id(5, 3), engine.FinishStop, 0},
		{"end id that is not theirs", []string{partialEvent("a", id(5), 1), partialEvent("", id(2), 2), partialEvent("b", id(6), 3)}, nil, id(5, 2), engine.FinishStop, 0},
		{"ignored end id", []string{partialEvent("", id(2), 1), finalEvent("limit", 1)}, func(r *engine.Request) { r.Stop.IgnoreEOS = true }, id(2), engine.FinishLength, 0},
		{"stop id", []string{partialEvent("a", id(5), 1), partialEvent("b", id(7), 2), partialEvent("c", id(8), 3)}, func(r *engine.Request) { r.Stop.TokenIDs = id(9, 7) }, id(5, 7), engine.FinishStop, 0},
		{"stop id among several", []string{partialEvent("abc", id(5, 7, 8), 3)}, func(r *engine.Request) { r.Stop.TokenIDs = id(7) }, id(5, 7), engine.FinishStop, 0},
		{"lost ids", []string{rocket, finalEvent("limit", 3)}, nil, id(15107, 244, 218), engine.FinishLength, 0},
		{"lost ids, with logprobs", []string{rocket, finalEvent("limit", 3)}, func(r *engine.Request) { r.Output.Logprobs = true }, id(15107, 244, 218), engine.FinishLength, 0},
		{"a lost id that is a stop id", []string{rocket, finalEvent("limit", 3)}, func(r *engine.Request) { r.Stop.TokenIDs = id(244) }, id(15107, 244), engine.FinishStop, 0},
		{"text that does not fit", []string{partialEvent(" x", id(218), 3)}, nil, nil, "", engine.ProtocolError},
		{"absurdly many lost ids", []string{partialEvent(" 🚀", id(218), 30000)}, nil, nil, "", engine.ProtocolError},
		{"lost ids before the end id", []string{partialEvent("a", id(5), 1), finalEvent("eos", 3)}, nil, id(5), engine.FinishStop, 0},
		{"progress report", []string{partialEvent("", id(0), 0), partialEvent("a", id(5), 1), finalEvent("limit", 1)}, nil, id(5), engine.FinishLength, 0},
		{"empty events", []string{partialEvent("", id(), 0), partialEvent("a", id(5), 1), partialEvent("", id(), 1), finalEvent("limit", 1)}, nil, id(5), engine.FinishLength, 0},
		{"a loss announced before its text", []string{partialEvent("", id(), 2), rocket, finalEvent("limit", 3)}, nil, id(15107, 244, 218), engine.FinishLength, 0},
		{"counter stands still", []string{partialEvent("a", id(5), 1), partialEvent("a", id(5), 1)}, nil, id(5), "", engine.ProtocolError},
		{"counter goes back", []string{partialEvent("ab", id(5, 6), 2), partialEvent("a", id(), 1)}, nil, id(5, 6), "", engine.ProtocolError},
		{"final counter too low", []string{partialEvent("ab", id(5, 6), 2), finalEvent("limit", 1)}, nil, id(5, 6), "", engine.ProtocolError},
		{"stop string", []string{partialEvent("a", id(5), 1), finalEvent("word", 1)}, nil, id(5), "", engine.ProtocolError},
		{"no stop type", []string{partialEvent("a", id(5), 1), finalEvent("none", 1)}, nil, id(5), "", engine.EngineError},
		{"without counters", []string{`{"content":"a","tokens":[5],"stop":false}`, `{"content":"b","tokens":[6],"stop":false}`, `{"content":"","stop":true,"stopped_eos":false,"stopped_word":false,"stopped_limit":true}`}, nil, id(5, 6), engine.FinishLength, 0},
		{"text without ids", []string{`{"content":"Hi","stop":false}`, `{"content":"","stop":true,"stop_type":"eos","tokens_predicted":1}`}, nil, nil, "", engine.WorkerMisconfigured},
		{"counted text without ids", []string{`{"content":"Hi","stop":false,"tokens_predicted":1}`}, nil, nil, "", engine.ProtocolError},
		{"very many missing at the end", []string{finalEvent("eos", 200)}, nil, nil, "", engine.ProtocolError},
		{"no budget", nil, func(r *engine.Request) { r.Stop.MaxTokens = 0 }, nil, "", engine.Internal},
		{"broken character", []string{partialEvent("\ufffdb", id(6), 2), finalEvent("limit", 2)}, nil, id(15107, 6), engine.FinishLength, 0},
		{"broken character at the seam", []string{partialEvent("\ufffdb", id(6), 2), finalEvent("limit", 2)}, func(r *engine.Request) { r.Carried = 1 }, id(15107, 6), engine.FinishLength, 0},
		{"broken character after the seam", []string{partialEvent("b", id(6), 1), partialEvent("\ufffdb", id(6), 3), finalEvent("limit", 3)}, func(r *engine.Request) { r.Carried = 1 }, id(6, 15107, 6), engine.FinishLength, 0},
	}
	// The last cases need pieces that the transcripts' vocabulary does not have.
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			play(t, func(int, string) enginetest.Reply { return enginetest.Reply{Pieces: []string{events(test.events...)}} }, func(t *testing.T, client engine.Client) {
				if strings.HasPrefix(test.name, "broken character") {
					piece := map[engine.TokenID][]byte{6: []byte("b"), 15107: []byte("\xf0\x9f")}
					client.(*Client).lost.piece = func(id engine.TokenID) []byte { return piece[id] }
				}
				req := enginetest.NewRequest()
				if test.change != nil {
					test.change(req)
				}
				ids, finish, err := collect(t, client, req)
				if !slices.Equal(ids, test.ids) || finish != test.finish || (err != nil) != (test.finish == "") || err != nil && err.Kind != test.kind {
					t.Errorf("got %v, %q, %v; want %v, %q, %v", ids, finish, err, test.ids, test.finish, test.kind)
				}
			})
		})
	}
}

func TestOldErrorLines(t *testing.T) {
	const object = `{"code":400,"message":"too hot","type":"invalid_request_error"}`
	for _, line := range []string{"error: " + object + "\n\n", `error: {"error":` + object + "}\n\n"} {
		for before, kind := range map[string]engine.Kind{"": engine.InvalidRequest, events(partialEvent("a", []engine.TokenID{5}, 1)): engine.EngineError} {
			play(t, func(int, string) enginetest.Reply { return enginetest.Reply{Pieces: []string{before + line}} }, func(t *testing.T, client engine.Client) {
				_, _, err := collect(t, client, enginetest.NewRequest())
				if err == nil || err.Kind != kind || kind == engine.InvalidRequest && err.Message != "too hot" {
					t.Errorf("%q: %v, want %v", before+line, err, kind)
				}
			})
		}
	}
}

func TestErrorTypes(t *testing.T) {
	tests := map[string]engine.Kind{
		"invalid_request_error":     engine.InvalidRequest,
		"exceed_context_size_error": engine.InvalidRequest,
		"authentication_error":      engine.WorkerMisconfigured,
		"permission_error":          engine.WorkerMisconfigured,
		"not_found_error":           engine.WorkerMisconfigured,
		"server_error":              engine.EngineError,
		"not_supported_error":       engine.InvalidRequest,
		"unavailable_error":         engine.Overloaded,
		"something_new":             engine.EngineError,
	}
	for kind, want := range tests {
		body := fmt.Sprintf(`{"error":{"message":"m","type":%q}}`, kind)
		replies := map[string]enginetest.Reply{"in the stream": {Pieces: []string{events(body)}}}
		if status := statusOf[kind]; status != 0 {
			replies["as a status"] = enginetest.Reply{Status: status, Pieces: []string{body}}
		}
		for name, reply := range replies {
			play(t, func(int, string) enginetest.Reply { return reply }, func(t *testing.T, client engine.Client) {
				if _, _, err := collect(t, client, enginetest.NewRequest()); err == nil || err.Kind != want {
					t.Errorf("%s %s: %v, want %v", kind, name, err, want)
				}
			})
		}
	}
}

// A tail that cannot be had is a failure of the attempt, never a short answer.
func TestTail(t *testing.T) {
	first := events(partialEvent("a", []engine.TokenID{5}, 1), finalEvent("limit", 3))
	answer := func(body string) enginetest.Reply {
		return enginetest.Reply{ContentType: "application/json", Pieces: []string{body}}
	}
	tests := []struct {
		name   string
		reply  enginetest.Reply
		ids    []engine.TokenID
		finish engine.FinishReason
		kind   engine.Kind
	}{
		{"all", answer(`{"tokens":[6,7],"stop":true,"stop_type":"limit","tokens_predicted":2}`), []engine.TokenID{5, 6, 7}, engine.FinishLength, 0},
		{"an end id this time", answer(`{"tokens":[2],"stop":true,"stop_type":"eos","tokens_predicted":1}`), []engine.TokenID{5, 2}, engine.FinishStop, 0},
		{"none", answer(`{"tokens":[],"stop":true,"stop_type":"limit"}`), []engine.TokenID{5}, "", engine.ProtocolError},
		{"too many", answer(`{"tokens":[6,7,8],"stop":true,"stop_type":"limit"}`), []engine.TokenID{5}, "", engine.ProtocolError},
		{"half", answer(`{"tokens":[6,7`), []engine.TokenID{5}, "", engine.ProtocolError},
		{"cut", enginetest.Reply{ContentType: "application/json", Pieces: []string{`{"tokens":[6,7`}, End: enginetest.Cut}, []engine.TokenID{5}, "", engine.Disconnected},
		{"busy", enginetest.Reply{Status: 500}, []engine.TokenID{5}, "", engine.EngineError},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			play(t, func(n int, _ string) enginetest.Reply {
				if n == 0 {
					return enginetest.Reply{Pieces: []string{first}}
				}
				return test.reply
			}, func(t *testing.T, client engine.Client) {
				ids, finish, err := collect(t, client, enginetest.NewRequest())
				if !slices.Equal(ids, test.ids) || finish != test.finish || (err != nil) != (test.finish == "") || err != nil && err.Kind != test.kind {
					t.Errorf("got %v, %q, %v; want %v, %q, %v", ids, finish, err, test.ids, test.finish, test.kind)
				}
			})
		})
	}
}

func TestUnsupported(t *testing.T) {
	tests := map[string]func(*engine.Request){
		"": func(r *engine.Request) {
			r.Stop.TokenIDs = []engine.TokenID{7}
			r.Sampling.FrequencyPenalty = 1
			r.Stop.MinTokens = 3
		},
		"cache_salt":     func(r *engine.Request) { r.CacheSalt = "x" },
		"priority":       func(r *engine.Request) { r.Priority = -1 },
		"stop_token_ids": func(r *engine.Request) { r.Stop.IgnoreEOS = true; r.Stop.TokenIDs = r.Stop.EOS },
	}
	for want, change := range tests {
		req := enginetest.NewRequest()
		change(req)
		if got := New(nil, Options{}).Unsupported(req); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
