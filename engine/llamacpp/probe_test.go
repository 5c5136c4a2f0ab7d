package llamacpp

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"testing"

	"baton/engine"
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
