package trtllm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

func TestMinTokensInTwoHalves(t *testing.T) {
	var bodies []map[string]any
	answers := []string{event([]int{11, 12}, "length", nil), event([]int{13, 2}, "stop", nil)}
	c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		data, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(data, &body); err != nil {
			t.Error(err)
		}
		bodies = append(bodies, body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", answers[len(bodies)-1])
	}))
	req := enginetest.NewRequest()
	req.Stop = engine.StopConditions{MaxTokens: 10, MinTokens: 2, EOS: []engine.TokenID{2}, TokenIDs: []engine.TokenID{4}}
	req.Sampling.PresencePenalty, req.Sampling.LogitBias = 1, map[engine.TokenID]float64{2: 5, 9: 1}
	ids, _, finish, err := ask(t, c, req)
	if err != nil || finish != engine.FinishStop || !slices.Equal(ids, []engine.TokenID{11, 12, 13, 2}) {
		t.Fatalf("%v, %q, %v", ids, finish, err)
	}
	want := []string{
		`[1,5,9] 2 true map[2:-100 4:-100 9:1] [] 3`,
		`[1,5,9,11,12] 8 false map[2:5 9:1] [4,2] 3`,
	}
	for i, b := range bodies {
		prompt, _ := json.Marshal(b["prompt"])
		stops, _ := json.Marshal(b["stop_token_ids"])
		if got := fmt.Sprintf("%s %v %v %v %s %v", prompt, b["max_tokens"], b["ignore_eos"], b["logit_bias"], stops, b["prompt_ignore_length"]); got != want[i] {
			t.Errorf("half %d: %s\nwant %s", i, got, want[i])
		}
		if _, sent := b["min_tokens"]; sent {
			t.Error("the engine's own min_tokens is sent")
		}
	}
	if len(req.Sampling.LogitBias) != 2 || req.Sampling.LogitBias[2] != 5 {
		t.Error("the request was changed")
	}
}

// The minimum that is the whole budget, and a context that is full before it, end
// the answer with the first half.
func TestMinTokensWithoutASecondHalf(t *testing.T) {
	for name, maxTokens := range map[string]int{"the whole budget": 2, "a full context": 10} {
		req := enginetest.NewRequest()
		req.Stop.MaxTokens, req.Stop.MinTokens = maxTokens, 2
		want := []engine.TokenID{11, 12}
		if maxTokens > 2 {
			req.Stop.MinTokens = 5
		}
		ids, _, finish, err := ask(t, clientOf(t, streaming(event([]int{11, 12}, "length", nil))), req)
		if err != nil || finish != engine.FinishLength || !slices.Equal(ids, want) {
			t.Errorf("%s: %v, %q, %v", name, ids, finish, err)
		}
	}
}
