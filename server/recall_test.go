package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"baton/backend"
	"baton/engine"
	"baton/engine/sim"
	"baton/model"
	"baton/preprocess"
)

// A promptRecorder says what it is told to, and shows the prompts.
type promptRecorder struct {
	words   []string
	prompts [][]engine.TokenID
}

func (g *promptRecorder) Generate(ctx context.Context, req *backend.Request) backend.Stream {
	g.prompts = append(g.prompts, req.Tokens.TokenIDs)
	return says(g.words...).Generate(ctx, req)
}

// newRecallServer returns a server with the real preprocessor, and what it generates
// from.
func newRecallServer(t *testing.T) (*httptest.Server, *promptRecorder) {
	t.Helper()
	dir := t.TempDir()
	if err := sim.WriteModel(dir); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	models, err := model.NewSet(model.Options{Paths: map[string]string{"m": dir}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{MetricsNamespace: "baton_test"}
	keeping(1 << 20)(&cfg)
	g := &promptRecorder{}
	registry := prometheus.NewRegistry()
	ts := httptest.NewServer(New(preprocess.New(models, preprocess.Options{}, log), g, oneModel, cfg, log, registry, registry).Handler())
	t.Cleanup(ts.Close)
	return ts, g
}

// TestRecalledPrompts: a loop of calls goes on from the response before, or refers to
// its items, or has the whole conversation. What the model gets is the same.
func TestRecalledPrompts(t *testing.T) {
	const (
		tools    = `"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]`
		question = `{"role":"user","content":"What is it?"}`
		turns    = 4
	)
	ts, g := newRecallServer(t)
	g.words = []string{"<think>", "I should look: é\"\u2028", "</think>", `<tool_call>{"name": "f", "arguments": {"x": "\"1\""}}</tool_call>`}
	respond := func(members string, stream bool) *responseObject {
		t.Helper()
		_, raw := post(t, ts, responsesPath, fmt.Sprintf(`{"model":"m","metadata":{"a":"b"},"instructions":"Be brief.",%s,%s,"stream":%v}`, tools, members, stream))
		object, _ := responseOf(t, raw)
		return readReplyObject(t, object)
	}
	for _, stream := range []bool{false, true} {
		ways := map[string]string{"previous": question, "references": question, "whole": question} // the inputs
		last := map[string]*responseObject{}
		for turn := range turns {
			g.prompts = nil
			for _, way := range []string{"previous", "references", "whole"} {
				members := `"input":[` + ways[way] + `]`
				if before := last[way]; way == "previous" && before != nil {
					members += `,"previous_response_id":"` + before.ID + `"`
				}
				r := respond(members, stream)
				if len(r.Output) != 2 || r.Output[0].Type != "reasoning" || r.Output[1].Type != "function_call" {
					t.Fatalf("%s: %+v", way, r.Output)
				}
				last[way] = r
				result := fmt.Sprintf(`{"type":"function_call_output","call_id":"c%d","output":"result %d"}`, turn, turn)
				switch way {
				case "previous":
					ways[way] = result
				case "references":
					ways[way] += `,{"type":"item_reference","id":"` + r.Output[0].ID + `"},{"id":"` + r.Output[1].ID + `"},` + result
				case "whole":
					_, raw := get(t, ts, "/v1/responses/"+r.ID)
					var object struct{ Output []json.RawMessage }
					if err := json.Unmarshal(raw, &object); err != nil {
						t.Fatal(err)
					}
					ways[way] += "," + string(object.Output[0]) + "," + string(object.Output[1]) + "," + result
				}
			}
			if p := g.prompts; len(p) != 3 || !slices.Equal(p[0], p[1]) || !slices.Equal(p[1], p[2]) {
				t.Fatalf("turn %d: the prompts differ: %v", turn, p)
			}
		}
		if n := len(g.prompts[0]); n < 60 {
			t.Errorf("the last prompt has only %d tokens", n)
		}
		// The chain, as its client can look at it, ends before the last answer.
		_, raw := get(t, ts, "/v1/responses/"+last["previous"].ID+"/input_items?order=asc")
		var list struct{ Data []responseItem }
		if err := json.Unmarshal(raw, &list); err != nil || len(list.Data) != 1+3*(turns-1) || list.Data[0].Content[0].Text != "What is it?" {
			t.Errorf("%v in %s", err, raw)
		}
	}
}

// TestRecallErrors: what the API answers to those who refer to nothing.
func TestRecallErrors(t *testing.T) {
	ts, g := newRecallServer(t)
	g.words = []string{"a"}
	ask := func(members string) (status int, param, code string) {
		resp, raw := post(t, ts, responsesPath, `{"model":"m",`+members+`}`)
		var e envelope
		_ = json.Unmarshal(raw, &e) // of a success nothing is found
		if e.Error.Param != nil {
			param = *e.Error.Param
		}
		if e.Error.Code != nil {
			code = *e.Error.Code
		}
		return resp.StatusCode, param, code
	}
	_, raw := post(t, ts, responsesPath, `{"model":"m","metadata":{"a":"b"},"input":"q","store":false}`)
	unkept, id := responseOf(t, raw)
	if !strings.Contains(string(unkept), `"store":false`) {
		t.Errorf("%s", unkept)
	}
	item := readReplyObject(t, unkept).Output[0].ID
	if status, param, code := ask(`"input":"q","previous_response_id":"` + id + `"`); status != 400 || param != "previous_response_id" || code != "previous_response_not_found" {
		t.Errorf("previous: %d %s %s", status, param, code)
	}
	if status, param, code := ask(`"input":[{"role":"user","content":"q"},{"type":"item_reference","id":"` + item + `"}]`); status != 404 || param != "input[1].id" || code != "" {
		t.Errorf("reference: %d %s %s", status, param, code)
	}
	_, raw = post(t, ts, responsesPath, `{"model":"m","input":"q"}`)
	kept, id := responseOf(t, raw)
	if !strings.Contains(string(kept), `"store":true`) {
		t.Errorf("%s", kept)
	}
	if status, _, _ := ask(`"input":"q","previous_response_id":"` + id + `","instructions":"other","store":false`); status != 200 {
		t.Errorf("previous: %d", status)
	}
}
