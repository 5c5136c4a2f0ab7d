package vllm

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/engine"
	"baton/engine/detect"
	"baton/engine/enginetest"
	"baton/engine/transport"
)

// TestLive talks to a real vLLM server with SmolLM2-135M-Instruct and a context
// of 2,048, whose address is in BATON_LIVE_VLLM. It uses both routes if the
// server has both.
func TestLive(t *testing.T) {
	url := os.Getenv("BATON_LIVE_VLLM")
	if url == "" {
		t.Skip("BATON_LIVE_VLLM names no server")
	}
	link, err := transport.New(transport.Options{URL: url, ConnectTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	client := New(link)
	kind, err := detect.Kind(t.Context(), link)
	info, err2 := client.Probe(t.Context())
	if err != nil || err2 != nil || kind != "vllm" || len(info.Models) == 0 || info.Version == "" || info.Models[0].ContextLength != 2048 {
		t.Fatalf("%q, %v; %+v, %v", kind, err, info, err2)
	}
	if err := client.Health(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%+v, generate: %v", info, route(client.route.Load()) == useGenerate)

	routes := []route{useCompletions}
	if route(client.route.Load()) == useGenerate {
		routes = append(routes, useGenerate)
	}
	for _, r := range routes {
		client.route.Store(int32(r))
		t.Run([]string{"completions", "generate"}[r], func(t *testing.T) {
			liveRoute(t, client, url, info.Models[0].ID)
			if route(client.route.Load()) != r {
				t.Error("the route was given up")
			}
		})
	}
}

func liveRoute(t *testing.T, client *Client, url, model string) {
	n := 0
	request := func(prompt ...engine.TokenID) *engine.Request {
		req := enginetest.NewRequest()
		n++
		req.ID = fmt.Sprintf("live-%s-%03d", strings.ReplaceAll(t.Name(), "/", "-"), n)
		req.Model, req.TokenIDs, req.Stop.MaxTokens = model, prompt, 8
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
	whole, finish, err := collect(t, request(19556, 905))
	if err != nil || finish != engine.FinishLength || len(whole) != 8 {
		t.Fatalf("%v, %q, %v", whole, finish, err)
	}
	t.Run("everything set", func(t *testing.T) {
		seed := int64(1) << 40
		req := request(19556, 905)
		req.Sampling = engine.SamplingParams{Temperature: 0.7, TopP: 0.9, TopK: 40, MinP: 0.05, RepetitionPenalty: 1.1, PresencePenalty: 0.5, FrequencyPenalty: 0.5, Seed: &seed, LogitBias: map[engine.TokenID]float64{282: -1}}
		req.Stop.MinTokens, req.Stop.TokenIDs, req.CacheSalt, req.Carried = 4, []engine.TokenID{3}, "salt", 1
		again := *req
		again.ID += "-again"
		ids, finish, err := collect(t, req)
		ids2, _, err2 := collect(t, &again)
		if err != nil || err2 != nil || finish == "" || !slices.Equal(ids, ids2) {
			t.Errorf("%v, %q, %v; with the same seed %v, %v", ids, finish, err, ids2, err2)
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
		req := request(19556, 905)
		req.Stop.TokenIDs = whole[2:3]
		if ids, finish, err := collect(t, req); err != nil || finish != engine.FinishStop || ids[len(ids)-1] != whole[2] {
			t.Errorf("%v, %q, %v; whole is %v", ids, finish, err, whole)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		unknown := request(1)
		unknown.Model = "nope"
		for name, test := range map[string]struct {
			req  *engine.Request
			kind engine.Kind
		}{
			"over-long":     {request(slices.Repeat([]engine.TokenID{19556}, 3000)...), engine.InvalidRequest},
			"foreign id":    {request(999999), engine.InvalidRequest},
			"unknown model": {unknown, engine.WorkerMisconfigured},
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
		start := time.Now()
		for time.Since(start) < 10*time.Second {
			resp, err := http.Get(url + "/metrics")
			if err != nil {
				t.Fatal(err)
			}
			page, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			for line := range strings.Lines(string(page)) {
				if strings.HasPrefix(line, "vllm:num_requests_running{") && strings.HasSuffix(strings.TrimSpace(line), " 0.0") {
					t.Logf("free after %v", time.Since(start))
					return
				}
			}
		}
		t.Error("the server still works after 10 s")
	})
}
