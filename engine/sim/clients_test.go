package sim

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/llamacpp"
	"baton/engine/sglang"
	"baton/engine/transport"
	"baton/engine/trtllm"
	"baton/engine/vllm"
)

// A pairing is a client with the worker that it talks to.
type pairing struct {
	name   string
	config Config
}

var pairings = []pairing{
	{"vllm completions", Config{Kind: KindVLLM}},
	{"vllm generate", Config{Kind: KindVLLM, Server: ServerConfig{ScaleOut: true}}},
	{"vllm deltas", Config{Kind: KindVLLM, Deltas: []int{0, 3, 1, 8}, FinishAlone: true}},
	{"vllm words", Config{Kind: KindVLLM, Style: StyleWords}},
	{"sglang", Config{Kind: KindSGLang, Server: ServerConfig{Deterministic: true}}},
	{"sglang incremental", Config{Kind: KindSGLang, Server: ServerConfig{Deterministic: true, Incremental: true}}},
	{"sglang deltas", Config{Kind: KindSGLang, Deltas: []int{0, 3, 1, 8}, FinishAlone: true, Server: ServerConfig{Deterministic: true}}},
	{"sglang incremental deltas", Config{Kind: KindSGLang, Style: StyleWords, Deltas: []int{0, 3, 1, 8}, FinishAlone: true, Server: ServerConfig{Deterministic: true, Incremental: true}}},
	{"trtllm", Config{Kind: KindTRTLLM}},
	{"trtllm deltas", Config{Kind: KindTRTLLM, Deltas: []int{0, 3, 1, 8}, FinishAlone: true}},
	{"trtllm 1.0", Config{Kind: KindTRTLLM, Deltas: []int{3, 1}, Server: ServerConfig{Profile: "trtllm-1.0"}}},
	{"llamacpp", Config{Kind: KindLlamaCPP, Style: StyleWhole}},
	{"llamacpp words", Config{Kind: KindLlamaCPP, Style: StyleWords, Deltas: []int{3}}},
}

// withClient serves a worker in memory and hands over the real client of its kind.
func withClient(t *testing.T, config Config, test func(t *testing.T, s *Server, client engine.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var network enginetest.Network
		s, l := NewServer(config), network.Listen(workerAddress)
		done := make(chan error)
		go func() { done <- s.Serve(l) }()
		link, err := transport.New(transport.Options{URL: "http://worker", WorkerID: "w1", DialContext: network.DialContext, ConnectTimeout: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		var client engine.Client
		switch s.config.Kind {
		case KindSGLang:
			client = sglang.New(link)
		case KindTRTLLM:
			client = trtllm.New(link)
		case KindLlamaCPP:
			client = llamacpp.New(link, llamacpp.Options{Size: ModelVocabSize(), Piece: func(id engine.TokenID) []byte { return []byte(embedded().pieces[id]) }})
		default:
			client = vllm.New(link)
		}
		if _, err := client.Probe(t.Context()); err != nil {
			t.Error(err)
		}
		test(t, s, client)
		link.Close()
		s.Revive()
		s.Kill()
		<-done
		synctest.Wait()
		time.Sleep(time.Hour) // whatever still waits for a time-out has had it
	})
}

func TestClientsGetWhatTheEngineGives(t *testing.T) {
	seed := int64(77)
	requests := map[string]func(*engine.Request){
		"greedy":     func(*engine.Request) {},
		"seed":       func(r *engine.Request) { r.Sampling.Temperature, r.Sampling.Seed = 0.7, &seed },
		"no seed":    func(r *engine.Request) { r.Sampling.Temperature = 0.7 },
		"ignore_eos": func(r *engine.Request) { r.Stop.IgnoreEOS = true },
		"min_tokens": func(r *engine.Request) { r.Stop.MinTokens = 30 },
		"stop id":    func(r *engine.Request) { r.Stop.TokenIDs = []engine.TokenID{941, 950, 960, 970, 980} },
		"one token":  func(r *engine.Request) { r.Stop.MaxTokens = 1 },
		"context":    func(r *engine.Request) { r.Stop.MaxTokens = 5000 },
		"bias": func(r *engine.Request) {
			r.Sampling.LogitBias = map[engine.TokenID]float64{777: 100, 778: 100, 5: -100}
		},
		"logprobs": func(r *engine.Request) { r.Output = engine.OutputOptions{Logprobs: true, TopLogprobs: 3} },
		"schema": func(r *engine.Request) {
			r.Constraint = &engine.Constraint{JSONSchema: []byte(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}}`)}
		},
		"object": func(r *engine.Request) { r.Constraint = &engine.Constraint{JSONObject: true} },
	}
	for _, p := range pairings {
		for name, change := range requests {
			t.Run(p.name+"/"+name, func(t *testing.T) {
				config := p.config
				config.ContextLength, config.MeanLength = 200, 40
				req := request(prompt, 60)
				change(req)
				withClient(t, config, func(t *testing.T, s *Server, client engine.Client) {
					if parameter := client.Unsupported(req); parameter != "" {
						if client.Kind() != KindLlamaCPP && client.Kind() != KindTRTLLM || name != parameter {
							t.Errorf("%s cannot do %s", client.Kind(), parameter)
						}
						return
					}
					if config.Kind == KindSGLang {
						config.ContextLength -= sglangKeptOfPrompt // which the client knows, as it asks no more of the engine
					}
					want := collect(t.Context(), New(config), req)
					got := collect(t.Context(), client, req)
					if got.err != nil || !slices.Equal(got.ids, want.ids) || got.finish != want.finish {
						t.Errorf("%d ids, %q, %v; the engine gives %d ids, %q", len(got.ids), got.finish, got.err, len(want.ids), want.finish)
					}
					if len(got.logprobs) != len(want.logprobs) {
						t.Fatalf("%d logprobs, want %d", len(got.logprobs), len(want.logprobs))
					}
					for i, lp := range got.logprobs {
						if w := want.logprobs[i]; lp.ID != w.ID || lp.Logprob != w.Logprob || !slices.Equal(lp.Top, w.Top) {
							t.Errorf("logprob %d is %+v, want %+v", i, lp, w)
						}
					}
				})
			})
		}
	}
}

// One script means the same at the token level and on the wire.
func TestFaultsMeanTheSameToClients(t *testing.T) {
	const budget = 12
	var faults []Fault
	for _, kind := range FaultKinds {
		for _, after := range []int{0, 3, budget, AfterLast} {
			faults = append(faults, Fault{Kind: kind, After: after, Delay: Duration(time.Second)})
		}
	}
	for _, status := range []int{400, 401, 403, 404, 429, 500, 503} {
		faults = append(faults, Fault{Kind: FaultStatus, Status: status, RetryAfter: 3})
	}
	faults = append(faults, Fault{Kind: FaultWrongID, After: 3})
	for _, p := range pairings {
		for _, f := range faults {
			if f.Kind == FaultQuiet { // the token level's own
				continue
			}
			t.Run(fmt.Sprintf("%s/%s %d after %d", p.name, f.Kind, f.Status, f.After), func(t *testing.T) {
				config := p.config
				config.MeanLength, config.Faults = -1, []Fault{f}
				req := request(prompt, budget)
				withClient(t, config, func(t *testing.T, s *Server, client engine.Client) {
					run := func(e engine.Engine) outcome {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						defer cancel()
						return collect(ctx, e, req)
					}
					want, got := run(New(config)), run(client)
					if f.Kind == FaultMiscount && config.Kind != KindVLLM && config.Kind != KindTRTLLM && f.After != budget {
						// Only there do the clients live by the count.
						if kind(got.err) != engine.ProtocolError.String() || !slices.Equal(got.ids, want.ids[:len(got.ids)]) {
							t.Errorf("%d ids, %v", len(got.ids), got.err)
						}
						return
					}
					if !slices.Equal(got.ids, want.ids) || got.finish != want.finish {
						t.Errorf("%d ids, finish %q; want %d, %q", len(got.ids), got.finish, len(want.ids), want.finish)
					}
					if wantKind := onTheWire(f, config, kind(want.err)); kind(got.err) != wantKind {
						t.Errorf("error %v; at the token level it is %v", got.err, want.err)
					}
					if got.err != nil && want.err != nil && (got.err.RetryAfter != want.err.RetryAfter || f.Kind == FaultStatus && got.err.Status != want.err.Status) {
						t.Errorf("error %+v; at the token level it is %+v", got.err, want.err)
					}
				})
			})
		}
	}
}

// onTheWire is the kind of an error that looks another way there.
func onTheWire(f Fault, config Config, atTheTokenLevel string) string {
	switch {
	case f.Kind == FaultRefuse, f.Kind == FaultDialTimeout:
		// A server cannot refuse a single connection: it accepts and then closes it.
		return engine.Disconnected.String()
	case f.Kind == FaultVanish && f.After != 0 && config.Kind == KindLlamaCPP:
		// The next ping is the last that is heard of the worker.
		return engine.Disconnected.String()
	case (f.Kind == FaultShutdown || f.Kind == FaultError) && config.Server.Profile == "trtllm-1.0":
		// There the stream just ends.
		return engine.Disconnected.String()
	case f.Kind == FaultShutdown && config.Kind != KindVLLM && config.Kind != KindTRTLLM:
		// They have no words for that.
		return engine.EngineError.String()
	case f.Kind == FaultAbort && f.After == 0 && config.Kind == KindVLLM && !config.Server.ScaleOut:
		// vLLM drops the finish reason of an answer without tokens.
		return engine.Disconnected.String()
	}
	return atTheTokenLevel
}

func kind(err *engine.Error) string {
	if err == nil {
		return "none"
	}
	return err.Kind.String()
}

func TestClientsProbeTheWorker(t *testing.T) {
	for _, p := range pairings {
		withClient(t, p.config, func(t *testing.T, s *Server, client engine.Client) {
			info, err := client.Probe(t.Context())
			context := ModelContextLength
			if p.config.Kind == KindSGLang {
				context -= sglangKeptOfPrompt
			}
			if p.config.Kind == KindTRTLLM {
				context = 0 // it does not tell
			}
			if err != nil || len(info.Models) != 1 || info.Models[0].ID != DefaultModelName || info.Models[0].ContextLength != context {
				t.Errorf("%s: %+v, %v", p.name, info, err)
			}
			if err := client.Health(t.Context()); err != nil {
				t.Errorf("%s: %v", p.name, err)
			}
			collect(t.Context(), client, request(prompt, 3))
			want := vllmCompletions
			if p.config.Server.ScaleOut {
				want = vllmGenerate
			} else if p.config.Kind == KindSGLang {
				want = "/generate"
			} else if p.config.Kind == KindLlamaCPP {
				want = "/completion"
			}
			if got := s.Requests(); len(got) != 1 || got[0].Path != want || !slices.Equal(got[0].TokenIDs, prompt) {
				t.Errorf("%s: the worker got %+v", p.name, got)
			}
		})
	}
}
