package vllm

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

// server is a vLLM of some version; documents maps a path to its JSON.
type server struct {
	documents map[string]string
	generate  http.HandlerFunc

	mu    sync.Mutex // guards what follows
	posts []string
	specs int // how often the list of endpoints was asked for
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		s.mu.Lock()
		s.posts = append(s.posts, r.URL.Path)
		s.mu.Unlock()
	}
	if r.URL.Path == "/openapi.json" {
		s.mu.Lock()
		s.specs++
		s.mu.Unlock()
	}
	doc, ok := s.documents[r.URL.Path]
	switch {
	case ok:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, doc)
	case r.URL.Path == generatePath && s.generate != nil:
		s.generate(w, r)
	case r.URL.Path == completionsPath:
		streamed(w, r)
	default:
		respond(404, `{"detail":"Not Found"}`)(w, r)
	}
}

// streamed answers both endpoints with one token.
func streamed(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, `data: {"choices":[{"index":0,"token_ids":[2],"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

func respond(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

const (
	modelsJSON = `{"object":"list","data":[{"id":"smol","owned_by":"vllm","root":"org/model","parent":null,"max_model_len":2048},{"id":"lora","root":"/adapters/lora","parent":"smol","max_model_len":null}]}`
	withRoute  = `{"paths":{"/v1/completions":{},"/inference/v1/generate":{}}}`
)

// describedAs is the OpenAPI document of a server with the generate endpoint, whose
// requests have these fields.
func describedAs(fields ...string) string {
	properties := map[string]any{"model": 1}
	for _, f := range fields {
		properties[f] = map[string]any{}
	}
	request := map[string]any{"properties": properties}
	return encode(map[string]any{"paths": map[string]any{completionsPath: 1, generatePath: 1},
		"components": map[string]any{"schemas": map[string]any{"CompletionRequest": request, "GenerateRequest": request}}})
}

func TestRoutes(t *testing.T) {
	const gen, comp = generatePath, completionsPath
	tests := []struct {
		name      string
		version   string // "" = the server does not tell
		openAPI   string // "" = 404
		generate  http.HandlerFunc
		posts     []string // of two requests
		wantError engine.Kind
	}{
		{"new, with the flag", "0.32.0", withRoute, streamed, []string{gen, gen}, 0},
		{"new, without the flag", "0.32.0", `{"paths":{"/v1/completions":{}}}`, nil, []string{comp, comp}, 0},
		{"docs are off, flag set", "0.30.1.dev4+gabc", "", streamed, []string{gen, gen}, 0},
		{"docs are off, no flag", "0.32.0", "", respond(403, `{"error":{"message":"Scale-out endpoints are disabled.","type":"PermissionDeniedError","param":null,"code":403}}`), []string{gen, comp, comp}, 0},
		{"docs are off, no route", "0.32.0", "", nil, []string{gen, comp, comp}, 0},
		{"gone after the probe", "0.32.0", withRoute, respond(405, ``), []string{gen, comp, comp}, 0},
		{"answers JSON", "0.32.0", withRoute, respond(200, `{"choices":[]}`), []string{gen, comp, comp}, 0},
		{"may drop the finish", "0.28.0", withRoute, streamed, []string{comp, comp}, 0},
		{"does not stream", "0.15.1", withRoute, respond(200, `{"choices":[]}`), []string{comp, comp}, 0},
		{"unknown version", "", withRoute, streamed, []string{comp, comp}, 0},
		{"strange version", "main", withRoute, streamed, []string{comp, comp}, 0},
		{"major version", "1.0", withRoute, streamed, []string{gen, gen}, 0},
		{"described as new, whatever its version", "main", describedAs("return_token_ids", "output_mode"), streamed, []string{gen, gen}, 0},
		{"described as old, whatever its version", "0.30.0", describedAs("return_token_ids", "stream"), streamed, []string{comp, comp}, 0},
		{"the model is missing, not the route", "0.32.0", withRoute, respond(404, `{"error":{"message":"The model x does not exist.","type":"NotFoundError","param":"model","code":404}}`), []string{gen, gen}, engine.WorkerMisconfigured},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &server{documents: map[string]string{"/v1/models": modelsJSON}, generate: test.generate}
			if test.version != "" {
				s.documents["/version"] = fmt.Sprintf(`{"version":%q}`, test.version)
			}
			if test.openAPI != "" {
				s.documents["/openapi.json"] = test.openAPI
			}
			c := clientOf(t, s)
			info, err := c.Probe(t.Context())
			if err != nil || info.Version != test.version {
				t.Fatalf("Probe: %+v, %v", info, err)
			}
			want := []engine.ModelInfo{{ID: "smol", ContextLength: 2048, Path: "org/model"}, {ID: "lora", Parent: "smol", ContextLength: 2048, Path: "/adapters/lora"}}
			if !slices.Equal(info.Models, want) {
				t.Errorf("models %+v, want %+v", info.Models, want)
			}
			s.posts = nil // where there is no description, Probe generates a token
			for range 2 {
				for delta, err := range c.Generate(t.Context(), enginetest.NewRequest()) {
					if test.wantError != 0 {
						if err == nil || engine.AsError(err).Kind != test.wantError {
							t.Errorf("%v, %v; want %v", delta, err, test.wantError)
						}
					} else if err != nil || delta.FinishReason != engine.FinishStop {
						t.Errorf("%v, %v", delta, err)
					}
				}
			}
			if !slices.Equal(s.posts, test.posts) {
				t.Errorf("posts %v, want %v", s.posts, test.posts)
			}
		})
	}
}

func clientOf(t testing.TB, h http.Handler) *Client {
	t.Helper()
	return New(enginetest.LinkTo(t, h))
}

func TestProbeOfRecordedServer(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile("testdata/transcripts/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	c := clientOf(t, &server{documents: map[string]string{"/v1/models": read("v1-models.json"), "/version": read("version.json"), "/health": ""}})
	info, err := c.Probe(t.Context())
	if err != nil || info.Version != "0.32.0" || !slices.Equal(info.Models, []engine.ModelInfo{{ID: "smol", ContextLength: 2048, Path: "model"}}) {
		t.Errorf("%+v, %v", info, err)
	}
	if err := c.Health(t.Context()); err != nil {
		t.Errorf("Health: %v", err)
	}
	if c.Kind() != "vllm" || c.Unsupported(enginetest.NewRequest()) != "" {
		t.Errorf("kind %q, unsupported %q", c.Kind(), c.Unsupported(enginetest.NewRequest()))
	}
}

// The list of endpoints is large, and a worker is asked what it is again and again.
func TestProbeAsksForEndpointsOncePerVersion(t *testing.T) {
	s := &server{documents: map[string]string{"/v1/models": `{"data":[{"id":"m"}]}`, "/version": `{"version":"0.31.0"}`, "/openapi.json": `{"paths":{}}`}}
	c := clientOf(t, s)
	for i, version := range []string{"0.31.0", "0.31.0", "0.32.0", "0.32.0"} {
		s.documents["/version"] = fmt.Sprintf(`{"version":%q}`, version)
		info, err := c.Probe(t.Context())
		if want := i/2 + 1; err != nil || info.Version != version || s.specs != want {
			t.Errorf("probe %d: %+v, %v, asked %d times, want %d", i, info, err, s.specs, want)
		}
	}
}

func TestProbeErrors(t *testing.T) {
	tests := map[string]struct {
		handler http.Handler
		kind    engine.Kind
	}{
		"unauthorized": {respond(401, `{"error":"Unauthorized"}`), engine.WorkerMisconfigured},
		"no models":    {respond(200, `{"data":[]}`), engine.WorkerMisconfigured},
		"no JSON":      {respond(200, `hello`), engine.ProtocolError},
		"dead engine":  {respond(503, ``), engine.Overloaded},
	}
	for name, test := range tests {
		c := clientOf(t, test.handler)
		if _, err := c.Probe(t.Context()); err == nil || engine.AsError(err).Kind != test.kind {
			t.Errorf("%s: Probe: %v, want %v", name, err, test.kind)
		}
	}
	if err := clientOf(t, respond(503, ``)).Health(t.Context()); err == nil {
		t.Error("Health: a 503 is not healthy")
	}
}

// The death of the engine process behind the HTTP server is never the client's
// fault, whatever status the server gives it, and no other failure is taken for it.
func TestEngineDeath(t *testing.T) {
	const token = `data: {"choices":[{"index":0,"token_ids":[5],"finish_reason":null}]}` + "\n\n"
	for code, complaint := range map[int]string{400: "BadRequestError", 500: "InternalServerError"} {
		for message, kind := range map[string]engine.Kind{
			"EngineCore encountered an issue. See stack trace (above) for the root cause.": engine.EngineShutdown,
			"Internal server error": engine.EngineError,
		} {
			if code == 400 && kind == engine.EngineError {
				continue
			}
			body := fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%d}}`, message, complaint, code)
			inStream := func(before string) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprintf(w, "%sdata: %s\n\ndata: [DONE]\n\n", before, body)
				}
			}
			for name, h := range map[string]http.HandlerFunc{"before headers": respond(code, body), "in the stream": inStream(""), "after a token": inStream(token)} {
				var last error
				for _, err := range clientOf(t, h).Generate(t.Context(), enginetest.NewRequest()) {
					last = err
				}
				e := engine.AsError(last)
				if e.Kind != kind || e.Status != code || e.Message != "" || !strings.Contains(e.Error(), message) {
					t.Errorf("%s, %d: %v, want %v", name, code, e, kind)
				}
			}
		}
	}
}

func TestRepetitionIsAStop(t *testing.T) {
	h := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"index":0,"token_ids":[5],"finish_reason":"repetition"}]}`+"\n\n")
	}
	for delta, err := range clientOf(t, http.HandlerFunc(h)).Generate(t.Context(), enginetest.NewRequest()) {
		if err != nil || delta.FinishReason != engine.FinishStop {
			t.Errorf("%v, %v", delta, err)
		}
	}
}

// A server that is too old to send ids must not look like one that has nothing
// to say.
func TestTextWithoutIDs(t *testing.T) {
	for _, ids := range []string{"", `"token_ids":null,`} {
		h := func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\n", `{"choices":[{"index":0,`+ids+`"text":"Hi","finish_reason":"stop"}]}`)
		}
		for delta, err := range clientOf(t, http.HandlerFunc(h)).Generate(t.Context(), enginetest.NewRequest()) {
			if err == nil || engine.AsError(err).Kind != engine.WorkerMisconfigured {
				t.Errorf("%q: %v, %v", ids, delta, err)
			}
		}
	}
}
