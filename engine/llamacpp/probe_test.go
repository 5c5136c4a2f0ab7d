package llamacpp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/transport"
)

func clientOf(t *testing.T, documents map[string]string) *Client {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if doc, ok := documents[r.URL.Path]; ok {
			w.Write([]byte(doc))
			return
		}
		w.WriteHeader(404)
	}))
	t.Cleanup(srv.Close)
	link, err := transport.New(transport.Options{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	return New(link, Options{})
}

func TestProbe(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile("testdata/transcripts/" + file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const name = "SmolLM2-135M-Instruct.Q4_1.gguf"
	models := read("v1-models.json")
	var props struct {
		ChatTemplate string `json:"chat_template"`
	}
	if err := json.Unmarshal([]byte(read("props.json")), &props); err != nil || props.ChatTemplate == "" {
		t.Fatal(err)
	}
	tests := []struct {
		name      string
		documents map[string]string
		want      engine.Info
		kind      engine.Kind // 0 = no error
	}{
		{"recorded server", map[string]string{"/v1/models": models, "/props": read("props.json")},
			engine.Info{Version: "b0-unknown", Models: []engine.ModelInfo{{ID: name, ContextLength: 2048, VocabSize: 49152, Path: name, ChatTemplate: props.ChatTemplate}}}, 0},
		{"props are hidden", map[string]string{"/v1/models": models}, engine.Info{Models: []engine.ModelInfo{{ID: name, ContextLength: 2048, VocabSize: 49152}}}, 0},
		{"an older build, which does not say its version", map[string]string{"/v1/models": models, "/props": `{"total_slots":1}`, "/completion": `{"content":"-","tokens":[29],"stop":true}`},
			engine.Info{Models: []engine.ModelInfo{{ID: name, ContextLength: 2048, VocabSize: 49152}}}, 0},
		{"a build without ids", map[string]string{"/v1/models": models, "/props": `{"total_slots":1}`, "/completion": `{"content":"-","stop":true}`}, engine.Info{}, engine.WorkerMisconfigured},
		{"a build without ids, whose props are hidden", map[string]string{"/v1/models": models, "/completion": `{"content":"-","stop":true,"tokens":[]}`}, engine.Info{}, engine.WorkerMisconfigured},
		{"a router of several models", map[string]string{"/v1/models": read("router-models.json"), "/props": read("router-props.json")}, engine.Info{}, engine.WorkerMisconfigured},
		{"adapters", map[string]string{"/v1/models": models, "/props": `{"build_info":"b1"}`, "/lora-adapters": `[{"id":0,"path":"/models/style.gguf","scale":1.0},{"id":1,"path":"off.gguf","scale":0.0},{"id":2,"path":"d\\other.gguf","scale":0.5}]`},
			engine.Info{Version: "b1 with LoRA style.gguf (1), LoRA other.gguf (0.5)", Models: []engine.ModelInfo{{ID: name, ContextLength: 2048, VocabSize: 49152}}}, 0},
		{"no adapters", map[string]string{"/v1/models": models, "/props": `{"build_info":"b1"}`, "/lora-adapters": `[]`},
			engine.Info{Version: "b1", Models: []engine.ModelInfo{{ID: name, ContextLength: 2048, VocabSize: 49152}}}, 0},
		{"no llama.cpp", nil, engine.Info{}, engine.WorkerMisconfigured},
		{"no model", map[string]string{"/v1/models": `{"data":[]}`}, engine.Info{}, engine.WorkerMisconfigured},
		{"no JSON", map[string]string{"/v1/models": `<html>`}, engine.Info{}, engine.ProtocolError},
	}
	for _, test := range tests {
		got, err := clientOf(t, test.documents).Probe(t.Context())
		if !reflect.DeepEqual(got, test.want) || (err != nil) != (test.kind != 0) || err != nil && engine.AsError(err).Kind != test.kind {
			t.Errorf("%s: %+v, %v; want %+v, %v", test.name, got, err, test.want, test.kind)
		}
	}
}

func TestHealth(t *testing.T) {
	if err := clientOf(t, map[string]string{"/health": `{"status":"ok"}`}).Health(t.Context()); err != nil {
		t.Error(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(503)
		w.Write([]byte(`{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`))
	}))
	defer srv.Close()
	link, err := transport.New(transport.Options{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := New(link, Options{}).Health(t.Context()); err == nil || engine.AsError(err).Kind != engine.Overloaded {
		t.Errorf("while loading: %v, want overloaded", err)
	}
}

// A server with a key lists its model to everybody.
func TestProbeWithoutTheKey(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			w.Write([]byte(`{"data":[{"id":"m"}]}`))
			return
		}
		w.WriteHeader(401)
		w.Write([]byte(`{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}`))
	}))
	defer srv.Close()
	link, err := transport.New(transport.Options{URL: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(link, Options{}).Probe(t.Context()); err == nil || engine.AsError(err).Kind != engine.WorkerMisconfigured || engine.AsError(err).Status != 401 {
		t.Errorf("%v", err)
	}
}

// Only of a build that pings as it is asked to is silence the end.
func TestSilenceOfBuildsThatDoNotPing(t *testing.T) {
	for name, test := range map[string]struct {
		props string
		kind  engine.Kind
	}{
		"it pings":        {`{"build_info":"b11434","cors_proxy_enabled":false}`, engine.Disconnected},
		"it does not":     {`{"build_info":"b5000"}`, engine.Cancelled},
		"nobody can tell": {"", engine.Cancelled},
	} {
		synctest.Test(t, func(t *testing.T) {
			var network enginetest.Network
			stop := network.Serve("w:1", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/v1/models":
					w.Write([]byte(`{"data":[{"id":"m"}]}`))
				case r.URL.Path == "/props" && test.props != "":
					w.Write([]byte(test.props))
				case r.URL.Path == completionPath && r.Header.Get("X-Request-Id") != "":
					io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", "text/event-stream")
					io.WriteString(w, "data: "+partialEvent("x", []engine.TokenID{5}, 1)+"\n\n")
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				default:
					w.WriteHeader(404)
				}
			}))
			defer stop()
			link, err := transport.New(transport.Options{URL: "http://w:1", DialContext: network.DialContext})
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
			probed := New(link, Options{})
			if _, err := probed.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("enough"))
			defer cancel()
			var last error
			for _, err := range probed.WithModel(Options{}).Generate(ctx, enginetest.NewRequest()) {
				last = err
			}
			if last == nil || engine.AsError(last).Kind != test.kind {
				t.Errorf("%s: %v, want %v", name, last, test.kind)
			}
		})
	}
}

// What this server cannot do, or has no memory for, another one may.
func TestOwnLimits(t *testing.T) {
	for name, test := range map[string]struct {
		status    int
		body      string
		kind      engine.Kind
		elsewhere bool
	}{
		"context":    {400, `{"error":{"code":400,"message":"request (600 tokens) exceeds the available context size (512 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":600,"n_ctx":512}}`, engine.InvalidRequest, true},
		"request":    {400, `{"error":{"code":400,"message":"Prompt contains invalid tokens","type":"invalid_request_error"}}`, engine.InvalidRequest, false},
		"feature":    {501, `{"error":{"code":501,"message":"not in this build","type":"not_supported_error"}}`, engine.InvalidRequest, true},
		"embeddings": {501, `{"error":{"code":501,"message":"This server does not support completions. Start it without ` + "`--embeddings`" + `","type":"not_supported_error"}}`, engine.WorkerMisconfigured, false},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
		}))
		link, err := transport.New(transport.Options{URL: srv.URL})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range New(link, Options{}).Generate(t.Context(), enginetest.NewRequest()) {
			if e := engine.AsError(err); e.Kind != test.kind || e.Elsewhere != test.elsewhere {
				t.Errorf("%s: %+v", name, e)
			}
		}
		srv.Close()
	}
}
