package sglang

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

// documents is a server with these documents and nothing else.
type documents map[string]string

func (d documents) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	doc, ok := d[r.URL.Path]
	if !ok {
		responding(404, `{"detail":"Not Found"}`)(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, doc)
}

func (d documents) with(path, document string) documents {
	more := documents{path: document}
	for p, doc := range d {
		if p != path {
			more[p] = doc
		}
	}
	return more
}

const (
	modelsJSON = `{"object":"list","data":[{"id":"smol","object":"model","owned_by":"sglang","root":"smol","parent":null,"max_model_len":2048},` +
		`{"id":"lora","object":"model","owned_by":"sglang","root":"/adapters/lora","parent":"smol","max_model_len":null}]}`
	serverJSON = `{"model_path":"org/weights","tokenizer_path":"org/tokenizer","version":"0.5.23","disaggregation_mode":"null","incremental_streaming_output":false,` +
		`"skip_tokenizer_init":false,"enable_deterministic_inference":false,"enable_priority_scheduling":false,"max_req_input_len":2042,"max_total_num_tokens":8192,"speculative_algorithm":null,"speculative_num_steps":null}`
)

func TestProbe(t *testing.T) {
	full := documents{"/v1/models": modelsJSON, "/server_info": serverJSON, "/model_info": `{"tokenizer_path":"org/tokenizer","is_generation":true}`}
	models := func(path string, context int) []engine.ModelInfo {
		return []engine.ModelInfo{{ID: "smol", ContextLength: context, Path: path}, {ID: "lora", Parent: "smol", ContextLength: context, Path: "/adapters/lora"}}
	}
	for name, test := range map[string]struct {
		server  documents
		models  []engine.ModelInfo
		version string
	}{
		"all documents":         {full, models("org/tokenizer", 2042), "0.5.23"},
		"by their older names":  {documents{"/v1/models": modelsJSON, "/get_server_info": serverJSON, "/get_model_info": `{"model_path":"org/weights"}`}, models("org/tokenizer", 2042), "0.5.23"},
		"hidden":                {documents{"/v1/models": modelsJSON}, models("smol", 2042), ""},
		"no JSON":               {full.with("/server_info", "hello"), models("org/tokenizer", 2042), ""},
		"little memory":         {full.with("/server_info", strings.Replace(serverJSON, `"max_req_input_len":2042`, `"max_req_input_len":500`, 1)), models("org/tokenizer", 500), "0.5.23"},
		"drafts":                {full.with("/server_info", strings.NewReplacer(`"speculative_algorithm":null`, `"speculative_algorithm":"EAGLE3","speculative_eagle_topk":4,"speculative_num_draft_tokens":8`, `"speculative_num_steps":null`, `"speculative_num_steps":5`).Replace(serverJSON)), models("org/tokenizer", 2022), "0.5.23"},
		"no word of the length": {documents{"/v1/models": `{"data":[{"id":"smol"}]}`}, []engine.ModelInfo{{ID: "smol"}}, ""},
	} {
		c := clientOf(t, test.server)
		info, err := c.Probe(t.Context())
		if err != nil || info.Version != test.version || !slices.Equal(info.Models, test.models) {
			t.Errorf("%s: %+v, %v; want %q, %+v", name, info, err, test.version, test.models)
		}
		if len(test.models) > 1 && !c.settings.Load().adapters["lora"] || c.settings.Load().adapters["smol"] {
			t.Errorf("%s: adapters %v", name, c.settings.Load().adapters)
		}
		if want := test.models[0].ContextLength; c.settings.Load().contextLength != want {
			t.Errorf("%s: requests may have %d tokens, want %d", name, c.settings.Load().contextLength, want)
		}
	}
}

// What a server was started for decides what it can do, and how it is asked.
func TestProbeFindsWhatTheServerCanDo(t *testing.T) {
	seed := int64(7)
	req := enginetest.NewRequest()
	req.Sampling.Temperature, req.Sampling.Seed = 1, &seed
	for name, test := range map[string]struct {
		set, unsupported string
		form             form
		low              bool
	}{
		"nothing":         {``, "seed", cumulative, false},
		"other draws":     {`"enable_deterministic_inference":false`, "min_tokens", cumulative, false},
		"deterministic":   {`"enable_deterministic_inference":true`, "min_tokens", cumulative, false},
		"with tokenizer":  {`"enable_deterministic_inference":true,"skip_tokenizer_init":false`, "priority", cumulative, false},
		"with priorities": {`"enable_deterministic_inference":true,"skip_tokenizer_init":false,"enable_priority_scheduling":true,"schedule_low_priority_values_first":true,"incremental_streaming_output":true`, "", incremental, true},
		"older":           {`"stream_output":true`, "seed", incremental, false},
	} {
		base := `"skip_tokenizer_init":true,"incremental_streaming_output":false`
		if test.form == incremental {
			base = `"skip_tokenizer_init":true`
		}
		server := documents{"/v1/models": modelsJSON, "/server_info": "{" + base + strings.TrimSuffix(","+test.set, ",") + "}"}
		c := clientOf(t, server)
		if _, err := c.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := *req
		r.Stop.MinTokens, r.Priority = 3, 2
		if got := c.Unsupported(&r); got != test.unsupported {
			t.Errorf("%s: %q is not supported, want %q", name, got, test.unsupported)
		}
		if s := c.settings.Load(); s.form != test.form || s.lowFirst != test.low {
			t.Errorf("%s: %+v", name, s)
		}
	}
	c := clientOf(t, http.NotFoundHandler())
	r := enginetest.NewRequest()
	if r.Sampling.RepetitionPenalty = 2.5; c.Unsupported(r) != "repetition_penalty" {
		t.Error("a repetition_penalty above 2 is refused by the server")
	}
	if r.Sampling.RepetitionPenalty = 2; c.Unsupported(r) != "" {
		t.Error("a repetition_penalty of 2 is fine")
	}
}

func TestProbeErrors(t *testing.T) {
	for name, test := range map[string]struct {
		server http.Handler
		kind   engine.Kind
	}{
		"unauthorized": {responding(401, `{"error":"Unauthorized"}`), engine.WorkerMisconfigured},
		"no models":    {responding(200, `{"data":[]}`), engine.WorkerMisconfigured},
		"no JSON":      {responding(200, `hello`), engine.ProtocolError},
		"starting":     {responding(503, ``), engine.Overloaded},
		"embeddings":   {documents{"/v1/models": modelsJSON, "/model_info": `{"is_generation":false}`}, engine.WorkerMisconfigured},
		"half a pair":  {documents{"/v1/models": modelsJSON, "/server_info": `{"disaggregation_mode":"prefill"}`}, engine.WorkerMisconfigured},
		"lost meanwhile": {http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" {
				panic(http.ErrAbortHandler)
			}
			fmt.Fprint(w, modelsJSON)
		}), engine.Disconnected},
	} {
		if _, err := clientOf(t, test.server).Probe(t.Context()); err == nil || engine.AsError(err).Kind != test.kind {
			t.Errorf("%s: %v, want %v", name, err, test.kind)
		}
	}
}

func TestProbeOfRecordedServer(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile("testdata/transcripts/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	c := clientOf(t, documents{"/v1/models": read("v1-models.json"), "/model_info": read("model-info.json")})
	info, err := c.Probe(t.Context())
	if err != nil || !slices.Equal(info.Models, []engine.ModelInfo{{ID: "smol", ContextLength: 2042, Path: "model-smollm2"}}) {
		t.Errorf("%+v, %v", info, err)
	}
	if c.Kind() != "sglang" {
		t.Errorf("kind %q", c.Kind())
	}
}

// No look at the health makes the server generate.
func TestHealth(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	server := func(ready int, models int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked = append(asked, r.URL.Path)
			mu.Unlock()
			w.WriteHeader(map[string]int{"/ready": ready, "/v1/models": models}[r.URL.Path])
		})
	}
	for _, test := range []struct {
		ready, models int
		want          []string
		healthy       bool
	}{
		{200, 500, []string{"/ready"}, true},
		{503, 200, []string{"/ready"}, false},
		{404, 200, []string{"/ready", "/v1/models"}, true},
		{404, 503, []string{"/ready", "/v1/models"}, false},
	} {
		asked = nil
		err := clientOf(t, server(test.ready, test.models)).Health(t.Context())
		if (err == nil) != test.healthy || !slices.Equal(asked, test.want) {
			t.Errorf("/ready %d, /v1/models %d: %v after %v", test.ready, test.models, err, asked)
		}
	}
}
