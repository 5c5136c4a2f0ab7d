package llamacpp

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

func TestMinTokens(t *testing.T) {
	ids := func(ids ...engine.TokenID) []engine.TokenID { return ids }
	half := func(stopType string, ids ...engine.TokenID) enginetest.Reply {
		var data []string
		for i, id := range ids {
			data = append(data, partialEvent("x", []engine.TokenID{id}, i+1))
		}
		if stopType != "" {
			data = append(data, finalEvent(stopType, len(ids)))
		}
		return enginetest.Reply{Pieces: []string{events(data...)}}
	}
	tests := []struct {
		name              string
		minTokens, budget int
		replies           []enginetest.Reply
		ids               []engine.TokenID
		finish            engine.FinishReason
		kind              engine.Kind
	}{
		{"both halves", 2, 16, []enginetest.Reply{half("limit", 5, 6), half("eos", 7, 2)}, ids(5, 6, 7, 2), engine.FinishStop, 0},
		{"the end id comes at once", 2, 16, []enginetest.Reply{half("limit", 5, 6), half("eos", 2)}, ids(5, 6, 2), engine.FinishStop, 0},
		{"the minimum is the budget", 2, 2, []enginetest.Reply{half("limit", 5, 6)}, ids(5, 6), engine.FinishLength, 0},
		{"the minimum is above the budget", 9, 2, []enginetest.Reply{half("limit", 5, 6)}, ids(5, 6), engine.FinishLength, 0},
		{"the context is full", 3, 16, []enginetest.Reply{half("limit", 5, 6)}, ids(5, 6), engine.FinishLength, 0},
		{"dies in the first half", 3, 16, []enginetest.Reply{half("", 5)}, ids(5), "", engine.Disconnected},
		{"dies in the second half", 1, 16, []enginetest.Reply{half("limit", 5), half("", 6)}, ids(5, 6), "", engine.Disconnected},
		{"refused", 1, 16, []enginetest.Reply{{Status: 400}}, nil, "", engine.InvalidRequest},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := 0
			play(t, func(i int, _ string) enginetest.Reply { n++; return test.replies[i] }, func(t *testing.T, client engine.Client) {
				req := enginetest.NewRequest()
				req.Stop.MinTokens, req.Stop.MaxTokens = test.minTokens, test.budget
				got, finish, err := collect(t, client, req)
				if !slices.Equal(got, test.ids) || finish != test.finish || (err != nil) != (test.finish == "") || err != nil && err.Kind != test.kind || n != len(test.replies) {
					t.Errorf("got %v, %q, %v after %d requests; want %v, %q, %v after %d", got, finish, err, n, test.ids, test.finish, test.kind, len(test.replies))
				}
			})
		})
	}
	t.Run("leaving between the halves", func(t *testing.T) {
		n := 0
		play(t, func(int, string) enginetest.Reply { n++; return half("limit", 5) }, func(t *testing.T, client engine.Client) {
			req := enginetest.NewRequest()
			req.Stop.MinTokens = 1
			for range client.Generate(t.Context(), req) {
				break
			}
		})
		if n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestMinTokensBodies(t *testing.T) {
	type body struct {
		Prompt    []engine.TokenID
		Predict   int   `json:"n_predict"`
		IgnoreEOS bool  `json:"ignore_eos"`
		LogitBias []any `json:"logit_bias"`
		Seed      uint32
	}
	var bodies []body
	first := enginetest.Reply{Pieces: []string{events(partialEvent("x", []engine.TokenID{5}, 1), partialEvent("x", []engine.TokenID{6}, 2), finalEvent("limit", 2))}}
	second := enginetest.Reply{Pieces: []string{events(partialEvent("", []engine.TokenID{2}, 1), finalEvent("eos", 1))}}
	play(t, func(i int, text string) enginetest.Reply {
		var b body
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Error(err)
		}
		bodies = append(bodies, b)
		return []enginetest.Reply{first, second}[i]
	}, func(t *testing.T, client engine.Client) {
		seven := int64(7)
		req := enginetest.NewRequest()
		req.Stop.MinTokens, req.Stop.TokenIDs, req.Sampling.Seed = 2, []engine.TokenID{9}, &seven
		req.Sampling.LogitBias = map[engine.TokenID]float64{9: 5, 4: 1}
		if _, _, err := collect(t, client, req); err != nil {
			t.Error(err)
		}
		if req.Sampling.LogitBias[9] != 5 || len(req.TokenIDs) != 3 {
			t.Error("the request was changed")
		}
	})
	seven := int64(7)
	want := []body{
		{[]engine.TokenID{1, 5, 9}, 2, true, []any{[]any{2., false}, []any{4., 1.}, []any{9., false}}, 7},
		{[]engine.TokenID{1, 5, 9, 5, 6}, 14, false, []any{[]any{4., 1.}, []any{9., 5.}}, seed(&seven, 2)},
	}
	if !reflect.DeepEqual(bodies, want) {
		t.Errorf("got  %+v\nwant %+v", bodies, want)
	}
}
