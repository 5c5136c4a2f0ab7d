package sim

import (
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/llamacpp"
	"baton/engine/transport"
	"baton/engine/trtllm"
	"baton/engine/vllm"
)

// What each version of an engine, and each way to start it, is for its client: by
// what it says of itself when it is attached, and by what it then answers.
func TestClientsOfAllProfiles(t *testing.T) {
	everything := []engine.Parameter{engine.Priority, engine.CacheSalt}
	for name, want := range map[string]struct {
		refused string             // why it is not attached
		lacks   []engine.Parameter // of everything
		later   string             // what a request with a priority learns, where the description does not tell
		path    string             // where requests go
		scale   bool               // --enable-scale-out
	}{
		"vllm-0.32": {path: vllmGenerate, scale: true},
		"vllm-0.24": {path: vllmCompletions},
		"vllm-0.15": {path: vllmCompletions, later: "priority"},
		"vllm-0.10": {path: vllmCompletions, later: "priority", lacks: []engine.Parameter{engine.CacheSalt}},
		"vllm-0.9":  {refused: "does not return token ids (0.10.2 is the first that does)"},

		"trtllm-1.4": {path: "/v1/completions", lacks: []engine.Parameter{engine.CacheSalt}},
		"trtllm-1.2": {path: "/v1/completions", lacks: everything},
		"trtllm-1.0": {path: "/v1/completions", lacks: everything},

		"llamacpp-b11434":     {path: "/completion", lacks: everything},
		"llamacpp-b5000":      {path: "/completion", lacks: everything},
		"llamacpp-b4000":      {refused: "does not return token ids"},
		"llamacpp-embeddings": {refused: "on the first request", lacks: everything},
		"llamacpp-router":     {refused: "a router of several models"},
		"llamacpp-lora":       {path: "/completion", lacks: everything},
	} {
		t.Run(name, func(t *testing.T) {
			p, ok := profiles[name]
			if !ok {
				t.Fatal("there is no such profile")
			}
			config := Config{Kind: p.kind, Style: StyleWhole, Server: ServerConfig{Profile: name, ScaleOut: want.scale}}
			s := NewServer(config)
			srv := httptest.NewServer(s)
			defer srv.Close()
			link, err := transport.New(transport.Options{URL: srv.URL, WorkerID: "w"})
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
			var client engine.Client = vllm.New(link)
			switch p.kind {
			case KindTRTLLM:
				client = trtllm.New(link)
			case KindLlamaCPP:
				client = llamacpp.New(link, llamacpp.Options{})
			}
			info, err := client.Probe(t.Context())
			if p.embeddings { // nothing tells before
				got := collect(t.Context(), client, request(prompt, 3))
				if err != nil || got.err == nil || got.err.Kind != engine.WorkerMisconfigured {
					t.Errorf("%v, %v", err, got.err)
				}
				return
			}
			if want.refused != "" {
				if err == nil || !strings.Contains(err.Error(), want.refused) || engine.AsError(err).Kind != engine.WorkerMisconfigured {
					t.Errorf("attached with %v, want %q", err, want.refused)
				}
				return
			}
			if err != nil || !strings.HasPrefix(info.Version, p.version) || strings.Contains(info.Version, "style.gguf") != (p.adapters != nil) {
				t.Fatalf("%+v, %v", info, err)
			}
			for _, parameter := range everything {
				req := request(prompt, 3)
				req.Priority, req.CacheSalt = 1, "salt"
				if parameter == engine.Priority {
					req.CacheSalt = ""
				} else {
					req.Priority = 0
				}
				if lacks := client.Unsupported(req) != ""; lacks != slices.Contains(want.lacks, parameter) {
					t.Errorf("lacks %s: %v", parameter, lacks)
				}
			}
			before := len(s.Requests())
			req := request(prompt, 20)
			req.Sampling.PresencePenalty = 0.5 // a field that not every version has
			got, reference := collect(t.Context(), client, req), collect(t.Context(), New(config), req)
			if got.err != nil || !slices.Equal(got.ids, reference.ids) || got.finish != reference.finish {
				t.Errorf("%v, %q, %v; want %v", got.ids, got.finish, got.err, reference.ids)
			}
			if last := s.Requests(); len(last) != before+1 || last[before].Path != want.path {
				t.Errorf("it was asked %d times, at %s", len(last)-before, last[len(last)-1].Path)
			}
			if want.later != "" {
				req.Priority = 1
				if got := collect(t.Context(), client, req); got.err == nil || !got.err.Elsewhere || client.Unsupported(req) != want.later {
					t.Errorf("%v; it lacks %q", got.err, client.Unsupported(req))
				}
			}
		})
	}
	if n := len(slices.Collect(maps.Keys(profiles))); n != 14 {
		t.Errorf("there are %d profiles, some are not tested", n)
	}
}

// TensorRT-LLM refuses what it does not know, and gives its figures once.
func TestTRTLLMIsStrict(t *testing.T) {
	s := NewServer(Config{Kind: KindTRTLLM})
	post := func(body string) (int, string) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions", strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	for body, want := range map[string]string{
		`{"model":"sim","prompt":[5],"cache_salt":"x"}`:                        "extra_forbidden",
		`{"model":"sim","prompt":[5],"stream_options":{"include_usage":true}}`: "Stream options can only be defined",
		`{"prompt":[5]}`: "Field required",
		`{"model":"sim","prompt":[5],"priority":3}`:                                    "less than or equal to 1",
		`{"model":"sim","prompt":[5],"seed":-1}`:                                       `"object":"error","message":"require seed`,
		`{"model":"sim","prompt":[5],"logit_bias":{"5":-101}}`:                         `"type":"BadRequestError"`,
		`{"model":"sim","prompt":[` + strings.Repeat("5,", ModelContextLength) + `5]}`: "should not exceed max_num_tokens",
	} {
		if code, got := post(body); code != 400 || !strings.Contains(got, want) {
			t.Errorf("%.60s: %d %s, want %s", body, code, got, want)
		}
	}
	code, got := post(`{"model":"sim","prompt":[5],"max_tokens":3,"detokenize":false,"ignore_eos":true}`)
	if code != 200 || !strings.Contains(got, `"finish_reason":"length"`) || strings.Contains(got, `"token_ids":null`) {
		t.Errorf("%d %s", code, got)
	}
	metrics := func() string {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	if first, second := metrics(), metrics(); !strings.Contains(first, `"numNewTokens":3`) || second != "[]" {
		t.Errorf("figures %s, then %s", first, second)
	}
}
