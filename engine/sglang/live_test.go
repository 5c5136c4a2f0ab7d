package sglang

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"baton/engine"
	"baton/engine/detect"
	"baton/engine/enginetest"
	"baton/engine/transport"
)

// TestLive talks to a real SGLang server with SmolLM2-135M-Instruct and a context
// of 2,048, as test/e2e/sglang-up.sh starts it, whose address is in
// BATON_LIVE_SGLANG.
func TestLive(t *testing.T) {
	url := os.Getenv("BATON_LIVE_SGLANG")
	if url == "" {
		t.Skip("BATON_LIVE_SGLANG names no server")
	}
	link, err := transport.New(transport.Options{URL: url, ConnectTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	client := New(link)
	kind, err := detect.Kind(t.Context(), link)
	info, err2 := client.Probe(t.Context())
	if err != nil || err2 != nil || kind != "sglang" || len(info.Models) == 0 || info.Version == "" || info.Models[0].ContextLength != 2042 || info.Models[0].Path == "" {
		t.Fatalf("%q, %v; %+v, %v", kind, err, info, err2)
	}
	begin := time.Now()
	if err := client.Health(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%+v; its health took %v; %+v", info, time.Since(begin), *client.settings.Load())
	if ids, ok, err := client.Tokenize(t.Context(), info.Models[0].ID, "The sea 123, naïve 😂"); err != nil || !ok || len(ids) < 8 {
		t.Errorf("tokenize: %v, %v, %v", ids, ok, err)
	}

	n := 0
	request := func(prompt ...engine.TokenID) *engine.Request {
		req := enginetest.NewRequest()
		n++
		req.ID = fmt.Sprintf("live-%d-%03d", os.Getpid(), n)
		req.Model, req.TokenIDs, req.Stop.MaxTokens, req.VocabSize = info.Models[0].ID, prompt, 8, 49152
		return req
	}
	collect := func(t *testing.T, req *engine.Request) (ids []engine.TokenID, finish engine.FinishReason, fault *engine.Error) {
		for delta, err := range client.Generate(t.Context(), req) {
			if err != nil {
				return ids, "", engine.AsError(err)
			}
			if req.Output.Logprobs && len(delta.Logprobs) != len(delta.TokenIDs) {
				t.Errorf("%d logprobs for %d ids", len(delta.Logprobs), len(delta.TokenIDs))
			}
			for _, lp := range delta.Logprobs {
				if lp.Logprob > 0 || lp.Logprob < -50 || len(lp.Top) != req.Output.TopLogprobs || math.Abs(lp.Top[0].Logprob-lp.Logprob) > 1e-6 || lp.Top[0].ID != lp.ID {
					t.Errorf("greedy logprob %+v", lp)
				}
			}
			ids, finish = append(ids, delta.TokenIDs...), delta.FinishReason
		}
		return ids, finish, nil
	}
	whole, finish, fault := collect(t, request(19556, 905))
	if fault != nil || finish != engine.FinishLength || len(whole) != 8 {
		t.Fatalf("%v, %q, %v", whole, finish, fault)
	}
	t.Run("everything set", func(t *testing.T) {
		req := request(19556, 905)
		req.Sampling = engine.SamplingParams{Temperature: 0.7, TopP: 0.9, TopK: 40, MinP: 0.05, RepetitionPenalty: 1.1, PresencePenalty: 0.5, FrequencyPenalty: 0.5, LogitBias: map[engine.TokenID]float64{282: -1}}
		req.Stop.MinTokens, req.Stop.TokenIDs, req.CacheSalt, req.Carried = 4, []engine.TokenID{3}, "salt", 1
		if ids, finish, err := collect(t, req); err != nil || finish == "" || len(ids) < 4 {
			t.Errorf("%v, %q, %v", ids, finish, err)
		}
	})
	t.Run("seed", func(t *testing.T) {
		seed := int64(1) << 40
		req := request(19556, 905)
		req.Sampling.Temperature, req.Sampling.Seed = 1, &seed
		if name := client.Unsupported(req); name != "" {
			t.Skipf("the server was not started for a %s", name)
		}
		again := *req
		again.ID += "-again"
		ids, _, err := collect(t, req)
		ids2, _, err2 := collect(t, &again)
		exact := client.Parameters()[engine.Seed].Fidelity == engine.Exact
		if err != nil || err2 != nil || exact && !slices.Equal(ids, ids2) {
			t.Errorf("%v, %v; with the same seed %v, %v", ids, err, ids2, err2)
		}
	})
	t.Run("logprobs", func(t *testing.T) {
		req := request(19556, 905)
		req.Output = engine.OutputOptions{Logprobs: true, TopLogprobs: 2}
		if ids, _, err := collect(t, req); err != nil || !slices.Equal(ids, whole) {
			t.Errorf("%v, %v; want %v", ids, err, whole)
		}
	})
	t.Run("stop id", func(t *testing.T) {
		for _, ignoreEOS := range []bool{false, true} {
			req := request(19556, 905)
			req.Stop.TokenIDs, req.Stop.IgnoreEOS = whole[2:3], ignoreEOS
			if ids, finish, err := collect(t, req); err != nil || finish != engine.FinishStop || !slices.Equal(ids, whole[:3]) {
				t.Errorf("ignore_eos %v: %v, %q, %v; whole is %v", ignoreEOS, ids, finish, err, whole)
			}
		}
	})
	t.Run("minimum", func(t *testing.T) {
		req := request(19556, 905)
		req.Stop.TokenIDs, req.Stop.MinTokens = whole[2:3], 6
		if ids, _, err := collect(t, req); err != nil || len(ids) < 6 {
			t.Errorf("%v, %v; whole is %v", ids, err, whole)
		}
	})
	t.Run("the context", func(t *testing.T) {
		// As long as the client says that a request may be, and no longer.
		req := request(slices.Repeat([]engine.TokenID{19556}, info.Models[0].ContextLength-3)...)
		req.Stop.MaxTokens, req.Stop.IgnoreEOS = 100, true
		if ids, finish, err := collect(t, req); err != nil || finish != engine.FinishLength || len(ids) != 3 {
			t.Errorf("%v, %q, %v", ids, finish, err)
		}
		req = request(slices.Repeat([]engine.TokenID{19556}, info.Models[0].ContextLength-1)...)
		if ids, finish, err := collect(t, req); err != nil || finish != engine.FinishLength || len(ids) != 1 {
			t.Errorf("one token: %v, %q, %v", ids, finish, err)
		}
		req = request(slices.Repeat([]engine.TokenID{19556}, info.Models[0].ContextLength)...)
		req.Stop.MaxTokens = 1
		if ids, finish, err := collect(t, req); err == nil || err.Kind != engine.InvalidRequest || !err.Elsewhere {
			t.Errorf("none: %v, %q, %v", ids, finish, err)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		hot := request(1)
		hot.Sampling.PresencePenalty = 3
		for name, test := range map[string]struct {
			req  *engine.Request
			kind engine.Kind
		}{
			"over-long":       {request(slices.Repeat([]engine.TokenID{19556}, 3000)...), engine.InvalidRequest},
			"a bad parameter": {hot, engine.InvalidRequest},
			"a foreign id":    {request(999999), engine.Internal},
		} {
			ids, finish, err := collect(t, test.req)
			if err == nil || err.Kind != test.kind || (err.Message == "") != (test.kind != engine.InvalidRequest) {
				t.Errorf("%s: %v, %q, %v", name, ids, finish, err)
			}
		}
	})
	t.Run("leaving", func(t *testing.T) {
		req := request(19556, 905)
		req.Stop.MaxTokens, req.Stop.IgnoreEOS = 1500, true
		for _, err := range client.Generate(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		for start := time.Now(); time.Since(start) < 10*time.Second; {
			resp, err := http.Get(url + "/v1/loads?include=core")
			if err != nil {
				t.Fatal(err)
			}
			var loads struct {
				Loads []struct {
					Running int `json:"num_running_reqs"`
				}
			}
			err = json.NewDecoder(resp.Body).Decode(&loads)
			resp.Body.Close()
			if err != nil || len(loads.Loads) == 0 {
				t.Fatal(err)
			}
			if loads.Loads[0].Running == 0 {
				t.Logf("free after %v", time.Since(start))
				return
			}
		}
		t.Error("the server still works after 10 s")
	})
	t.Run("continuing", func(t *testing.T) {
		req := request(19556, 905)
		req.Stop.MaxTokens = 40
		uncut, _, err := collect(t, req)
		if err != nil {
			t.Fatal(err)
		}
		same := 0
		for _, k := range []int{1, 5, 20} {
			rest := request(slices.Concat(req.TokenIDs, uncut[:k])...)
			rest.Carried, rest.Stop.MaxTokens, rest.CacheSalt = k, 40-k, fmt.Sprint("cold", k)
			ids, _, err := collect(t, rest)
			if err != nil || len(ids) != 40-k && !slices.Contains(ids, 2) {
				t.Errorf("after %d: %v, %v", k, ids, err)
			}
			if slices.Equal(ids, uncut[k:]) {
				same++
			}
		}
		t.Logf("%d of 3 cut answers go on with the same ids", same)
	})
}
