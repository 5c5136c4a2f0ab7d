package trtllm

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

// server is a TensorRT-LLM of some version: documents by path. It fails the test
// if its figures are asked for.
type server struct {
	t         *testing.T
	documents map[string]string
	status    map[string]int
	asked     []string
	bodies    []string
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.asked, s.bodies = append(s.asked, r.URL.Path), append(s.bodies, string(body))
	if r.URL.Path == "/metrics" || r.URL.Path == "/perf_metrics" || r.URL.Path == "/kv_cache_events" || r.URL.Path == "/health_generate" {
		s.t.Errorf("%s was asked for", r.URL.Path)
	}
	if status := s.status[r.URL.Path]; status != 0 {
		w.WriteHeader(status)
		io.WriteString(w, "LLM is unavailable. Please check the server logs for more details.")
		return
	}
	if doc, ok := s.documents[r.URL.Path]; ok {
		io.WriteString(w, doc)
		return
	}
	http.NotFound(w, r)
}

func openAPI(fields ...string) string {
	properties := map[string]any{"model": 1, "prompt": 1}
	for _, f := range fields {
		properties[f] = map[string]any{}
	}
	return encode(map[string]any{"components": map[string]any{"schemas": map[string]any{"CompletionRequest": map[string]any{"properties": properties}}}})
}

const models = `{"object":"list","data":[{"id":"nvidia/Llama-3.1-8B-Instruct-FP8","object":"model","created":1,"owned_by":"tensorrt_llm"}]}`

// What a version lacks is found in the description of its requests, not in its name.
func TestProbeFindsOutWhatAVersionHas(t *testing.T) {
	const all, output = "prompt and output", "output"
	for _, test := range []struct {
		name     string
		document string
		penalty  string
		priority engine.Fidelity
	}{
		{"without either", openAPI("min_p"), all, engine.Unsupported},
		{"with prompt_ignore_length", openAPI("prompt_ignore_length"), output, engine.Unsupported},
		{"with both", openAPI("prompt_ignore_length", "priority"), output, engine.Exact},
		{"undescribed", "", output, engine.Unsupported},
		{"described strangely", `[]`, output, engine.Unsupported},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &server{t: t, documents: map[string]string{"/health": "", "/v1/models": models, "/version": `{"version":"1.2.0"}`}}
			if test.document != "" {
				s.documents["/openapi.json"] = test.document
			}
			c := clientOf(t, s)
			info, err := c.Probe(t.Context())
			want := []engine.ModelInfo{{ID: "nvidia/Llama-3.1-8B-Instruct-FP8", Path: "nvidia/Llama-3.1-8B-Instruct-FP8"}}
			if err != nil || info.Version != "1.2.0" || !slices.Equal(info.Models, want) {
				t.Fatalf("%+v, %v", info, err)
			}
			p := c.Parameters()
			if p[engine.PresencePenalty].Meaning != test.penalty || p[engine.FrequencyPenalty].Meaning != test.penalty || p[engine.Priority].Fidelity != test.priority {
				t.Errorf("penalties count %q, priority is %v", p[engine.PresencePenalty].Meaning, p[engine.Priority].Fidelity)
			}
			if Parameters[engine.Priority].Fidelity != engine.Unsupported || Parameters[engine.PresencePenalty].Meaning != output {
				t.Error("the package's table was changed")
			}
			req := enginetest.NewRequest()
			req.Priority, req.Sampling.PresencePenalty = 1, 1
			var body map[string]json.RawMessage
			data, err := completionsBody(req, c.fields())
			if err != nil || json.Unmarshal(data, &body) != nil {
				t.Fatal(err)
			}
			if sent := body["prompt_ignore_length"] != nil; sent != (test.penalty == output) {
				t.Errorf("prompt_ignore_length is sent: %v", sent)
			}
			if sent := body["priority"] != nil; sent != (test.priority == engine.Exact) || (c.Unsupported(req) == "priority") == sent {
				t.Errorf("priority is sent: %v, refused: %q", sent, c.Unsupported(req))
			}
			before := len(s.asked)
			if again, err := c.Probe(t.Context()); err != nil || !again.Equal(info) {
				t.Errorf("the second time: %+v, %v", again, err)
			}
			if test.penalty == all && slices.Contains(s.asked[before:], "/openapi.json") {
				t.Error("the large document was fetched twice")
			}
		})
	}
}

func TestProbeErrors(t *testing.T) {
	for name, test := range map[string]struct {
		documents map[string]string
		status    map[string]int
		kind      engine.Kind
	}{
		"dead, while its models are listed": {map[string]string{"/v1/models": models}, map[string]int{"/health": 503}, engine.EngineShutdown},
		"no model":                          {map[string]string{"/health": "", "/v1/models": `{"data":[]}`}, nil, engine.WorkerMisconfigured},
		"no JSON":                           {map[string]string{"/health": "", "/v1/models": "<html>"}, nil, engine.ProtocolError},
		"something else":                    {map[string]string{"/health": ""}, nil, engine.WorkerMisconfigured},
	} {
		_, err := clientOf(t, &server{t: t, documents: test.documents, status: test.status}).Probe(t.Context())
		if err == nil || engine.AsError(err).Kind != test.kind {
			t.Errorf("%s: %v, want %v", name, err, test.kind)
		}
	}
	quiet := &server{t: t, documents: map[string]string{"/health": "", "/v1/models": `{"data":[{"id":"folder"}]}`}}
	if info, err := clientOf(t, quiet).Probe(t.Context()); err != nil || info.Version != "" || info.Models[0].Path != "" {
		t.Errorf("a server that tells little: %+v, %v", info, err)
	}
}

// The endpoint adds what the tokenizer puts before every text.
func TestTokenize(t *testing.T) {
	for name, test := range map[string]struct {
		empty, text string // answers, "" = 404
		want        []engine.TokenID
	}{
		"nothing is added":         {`{"count":0,"tokens":[]}`, `{"count":2,"tokens":[4,7]}`, []engine.TokenID{4, 7}},
		"one id is added":          {`{"count":1,"tokens":[1]}`, `{"count":3,"tokens":[1,4,7]}`, []engine.TokenID{4, 7}},
		"something else is added":  {`{"count":1,"tokens":[1]}`, `{"count":2,"tokens":[4,7]}`, nil},
		"only counted":             {`{"count":1,"tokens":[1]}`, `{"count":3,"tokens":null}`, nil},
		"a version without it":     {"", "", nil},
		"another kind of document": {`{}`, `{}`, nil},
	} {
		c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body struct{ Prompt *string }
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Prompt == nil || r.URL.Path != "/_internal/tokenize" {
				t.Errorf("%s: %v", r.URL.Path, err)
				return
			}
			answer := test.text
			if *body.Prompt == "" {
				answer = test.empty
			}
			if answer == "" {
				http.NotFound(w, r)
			}
			io.WriteString(w, answer)
		}))
		ids, ok, err := c.Tokenize(t.Context(), "m", "a b")
		if err != nil || ok != (test.want != nil) || !slices.Equal(ids, test.want) {
			t.Errorf("%s: %v, %v, %v", name, ids, ok, err)
		}
	}
}
