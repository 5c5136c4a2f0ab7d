package detect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/transport"
)

// documentsOf serves documents by path, and status for everything else.
func documentsOf(status int, documents map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if doc, ok := documents[r.URL.Path]; ok {
			fmt.Fprint(w, doc)
			return
		}
		w.WriteHeader(status)
	}
}

func read(t *testing.T, file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestKind(t *testing.T) {
	models := func(owner string) string {
		return fmt.Sprintf(`{"object":"list","data":[{"id":"m","owned_by":%q}]}`, owner)
	}
	const llama, vllm = "../llamacpp/testdata/transcripts/", "../vllm/testdata/transcripts/"
	tests := []struct {
		name    string
		handler http.Handler // nil = nobody listens
		kind    string
		err     error
		says    string
	}{
		{"recorded vLLM", documentsOf(404, map[string]string{"/v1/models": read(t, vllm+"v1-models.json"), "/version": read(t, vllm+"version.json")}), engine.VLLM, nil, ""},
		{"recorded llama.cpp", documentsOf(404, map[string]string{"/v1/models": read(t, llama+"v1-models.json"), "/props": read(t, llama+"props.json")}), engine.LlamaCPP, nil, ""},
		{"SGLang", documentsOf(404, map[string]string{"/v1/models": models("sglang")}), engine.SGLang, nil, ""},
		{"TensorRT-LLM", documentsOf(404, map[string]string{"/v1/models": models("tensorrt_llm"), "/version": `{"version":"1.2.0"}`}), engine.TRTLLM, nil, ""},
		{"llama.cpp with another owner", documentsOf(404, map[string]string{"/v1/models": models("me"), "/props": read(t, llama+"props.json")}), engine.LlamaCPP, nil, ""},
		{"SGLang with another owner", documentsOf(404, map[string]string{"/v1/models": models("org"), "/server_info": `{"tokenizer_path":"m"}`}), engine.SGLang, nil, ""},
		{"older SGLang with another owner", documentsOf(404, map[string]string{"/v1/models": models("org"), "/get_server_info": `{"tokenizer_path":"m"}`}), engine.SGLang, nil, ""},
		{"vLLM with another owner", documentsOf(404, map[string]string{"/v1/models": models("org"), "/version": `{"version":"0.32.0"}`}), engine.VLLM, nil, ""},
		{"another gateway", documentsOf(404, map[string]string{"/v1/models": models("openai")}), "", ErrNotAnEngine, "neither vLLM"},
		{"another baton", documentsOf(404, map[string]string{"/v1/models": models("baton"), "/version": `{"version":"1.0.0"}`}), "", ErrNotAnEngine, "another baton"},
		{"a web server", documentsOf(404, nil), "", ErrNotAnEngine, "status 404"},
		{"a friendly web server", documentsOf(200, map[string]string{"/v1/models": "<html>"}), "", ErrNotAnEngine, "no list of models"},
		{"loading", documentsOf(503, nil), "", ErrLoading, "loading"},
		{"locked", documentsOf(401, nil), "", nil, "API key"},
		{"nobody", nil, "", ErrNotReachable, "not reachable"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var network enginetest.Network
			if test.handler != nil {
				defer network.Serve("worker:1", test.handler)()
			}
			link, err := transport.New(transport.Options{URL: "http://worker:1", DialContext: network.DialContext})
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
			kind, err := Kind(t.Context(), link)
			if kind != test.kind || (err == nil) != (test.kind != "") || test.err != nil && !errors.Is(err, test.err) {
				t.Fatalf("%q, %v; want %q, %v", kind, err, test.kind, test.err)
			}
			if err != nil && (!strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "http://worker:1") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("the sentence is %q", err)
			}
		})
	}
}

func TestKindOfLeavingCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	link, _ := transport.New(transport.Options{URL: "http://worker:1"})
	if _, err := Kind(ctx, link); err == nil || engine.AsError(err).Kind != engine.Cancelled {
		t.Errorf("%v, want cancelled", err)
	}
}
