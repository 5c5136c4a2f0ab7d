package llamacpp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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

// emojiPrompt is "Emoji: 😂 🎉 🚀 😀 🌍 日本語 中文 한국어", twice, and the first two
// again, in SmolLM2's ids.
var emojiPrompt = []engine.TokenID{10809, 33777, 42, 40303, 220, 15107, 232, 227, 15107, 244, 218, 40303, 218, 15107, 230, 231, 17097, 241, 115, 40993, 179, 120, 248, 216, 28589, 29184, 216, 33085, 246, 181, 130, 251, 183, 240, 129, 40303, 220, 15107, 232, 227, 15107, 244, 218, 40303, 218, 15107, 230, 231, 17097, 241, 115, 40993, 179, 120, 248, 216, 28589, 29184, 216, 33085, 246, 181, 130, 251, 183, 240, 129, 40303, 220, 15107, 232, 227}

// TestLive talks to a real llama-server with SmolLM2-135M-Instruct, a context of
// 2,048 per slot and metrics, whose address is in BATON_LIVE_LLAMACPP.
func TestLive(t *testing.T) {
	url := os.Getenv("BATON_LIVE_LLAMACPP")
	if url == "" {
		t.Skip("BATON_LIVE_LLAMACPP names no server")
	}
	link, err := transport.New(transport.Options{URL: url, ConnectTimeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	client := New(link, Options{Piece: smolPiece(t), Size: smolVocabulary})

	request := func(prompt ...engine.TokenID) *engine.Request {
		req := enginetest.NewRequest()
		req.TokenIDs, req.Stop.MaxTokens = prompt, 24
		return req
	}
	t.Run("probe", func(t *testing.T) {
		kind, err := detect.Kind(t.Context(), link)
		info, err2 := client.Probe(t.Context())
		if err != nil || err2 != nil || kind != "llamacpp" || len(info.Models) != 1 {
			t.Fatalf("%q, %v; %+v, %v", kind, err, info, err2)
		}
		if m := info.Models[0]; m.VocabSize != smolVocabulary || m.ContextLength != 2048 || m.Path == "" {
			t.Errorf("%+v", m)
		}
		if err := client.Health(t.Context()); err != nil {
			t.Error(err)
		}
		t.Logf("%+v", info)
	})
	t.Run("stream", func(t *testing.T) {
		req := request(19556, 905)
		ids, finish, err := collect(t, client, req)
		if want := unstreamed(t, url, req); err != nil || !slices.Equal(ids, want) || finish == "" {
			t.Errorf("streamed   %v, %q, %v\nunstreamed %v", ids, finish, err, want)
		}
	})
	// Wherever the budget ends, also inside a character, the ids are those of
	// the unstreamed answer.
	t.Run("lost ids", func(t *testing.T) {
		for n := 1; n <= 40; n++ {
			req := request(emojiPrompt...)
			req.Stop.MaxTokens, req.Output.Logprobs = n, n%2 == 0
			ids, finish, err := collect(t, client, req)
			if want := unstreamed(t, url, req); err != nil || !slices.Equal(ids, want) || finish != engine.FinishLength {
				t.Errorf("budget %d:\nstreamed   %v, %q, %v\nunstreamed %v", n, ids, finish, err, want)
			}
		}
	})
	// A continuation may begin inside a character, which the server cannot show.
	// With -b 32 -ub 32 the server computes it exactly as the uncut answer.
	t.Run("continued anywhere", func(t *testing.T) {
		const n = 40
		uncut := request(emojiPrompt...)
		uncut.Stop.MaxTokens = n
		whole := unstreamed(t, url, uncut)
		for k := 1; k < n; k++ {
			req := request(slices.Concat(emojiPrompt, whole[:k])...)
			req.Carried, req.Stop.MaxTokens = k, n-k
			ids, finish, err := collect(t, client, req)
			if err != nil || finish != engine.FinishLength || !slices.Equal(ids, whole[k:]) {
				t.Errorf("cut at %d: %v, %q, %v\nuncut: %v", k, ids, finish, err, whole[k:])
			}
		}
	})
	t.Run("logprobs", func(t *testing.T) {
		req := request(19556, 905)
		req.Output = engine.OutputOptions{Logprobs: true, TopLogprobs: 3}
		for delta, err := range client.Generate(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			for i, lp := range delta.Logprobs {
				if lp.ID != delta.TokenIDs[i] || lp.Logprob > 0 || lp.Logprob < -50 || len(lp.Top) != 3 || lp.Top[0].ID != lp.ID || math.Abs(lp.Top[0].Logprob-lp.Logprob) > 1e-6 || lp.Top[1].Logprob > lp.Top[0].Logprob {
					t.Errorf("greedy logprob %+v", lp)
				}
			}
		}
	})
	t.Run("stop id", func(t *testing.T) {
		whole, _, err := collect(t, client, request(19556, 905))
		if err != nil {
			t.Fatal(err)
		}
		req := request(19556, 905)
		req.Stop.TokenIDs = whole[2:3]
		ids, finish, err := collect(t, client, req)
		if want := whole[:slices.Index(whole, whole[2])+1]; err != nil || finish != engine.FinishStop || !slices.Equal(ids, want) {
			t.Errorf("%v, %q, %v; want %v", ids, finish, err, want)
		}
		waitIdle(t, url)
	})
	t.Run("min_tokens", func(t *testing.T) {
		whole, _, err := collect(t, client, request(19556, 905))
		if err != nil {
			t.Fatal(err)
		}
		req := request(19556, 905)
		req.Stop.TokenIDs, req.Stop.MinTokens, req.Stop.MaxTokens = whole[:3], 20, 200
		ids, finish, err := collect(t, client, req)
		if err != nil || finish == "" || len(ids) < 20 || slices.ContainsFunc(ids[:20], req.Stop.Ends) {
			t.Errorf("%v, %q, %v; want 20 ids that are none of %v", ids, finish, err, whole[:3])
		}
	})
	t.Run("leaving frees the slot", func(t *testing.T) {
		req := request(19556, 905)
		req.Stop.MaxTokens, req.Stop.IgnoreEOS = 1500, true
		for _, err := range client.Generate(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		t.Logf("free after %v", waitIdle(t, url))
	})
	t.Run("seed", func(t *testing.T) {
		seed := int64(42)
		req := request(19556, 905)
		req.Sampling.Temperature, req.Sampling.Seed = 1, &seed
		first, _, err := collect(t, client, req)
		again, _, err2 := collect(t, client, req)
		if err != nil || err2 != nil || !slices.Equal(first, again) {
			t.Errorf("the same seed gave %v, %v and %v, %v", first, err, again, err2)
		}
		req.Sampling.Seed = nil
		other, _, err := collect(t, client, req)
		if err != nil || slices.Equal(first, other) {
			t.Errorf("no seed gave the same: %v, %v", other, err)
		}
	})
	t.Run("refusals", func(t *testing.T) {
		long := request(slices.Repeat([]engine.TokenID{19556}, 3000)...)
		foreign := request(999999)
		for name, req := range map[string]*engine.Request{"over-long": long, "foreign id": foreign} {
			ids, finish, err := collect(t, client, req)
			if err == nil || err.Kind != engine.InvalidRequest || err.Message == "" || err.Status != 400 {
				t.Errorf("%s: %v, %q, %v", name, ids, finish, err)
			}
		}
	})
}

// unstreamed asks for the same answer without a stream, which holds all ids.
func unstreamed(t *testing.T, url string, req *engine.Request) []engine.TokenID {
	t.Helper()
	body, err := completionBody(req, false, "")
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url+completionPath, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Tokens []engine.TokenID }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Tokens
}

// waitIdle waits until no slot of the server works.
func waitIdle(t *testing.T, url string) time.Duration {
	t.Helper()
	start := time.Now()
	for time.Since(start) < 10*time.Second {
		resp, err := http.Get(url + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		page, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if _, rest, ok := bytes.Cut(page, []byte("\nllamacpp:requests_processing ")); ok {
			var n int
			if fmt.Sscan(string(rest), &n); n == 0 {
				return time.Since(start)
			}
		}
	}
	t.Error("the server still works after 10 s")
	return 0
}
