package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"baton/config"
	"baton/engine"
	"baton/engine/sim"
	"baton/engine/transport"
)

// Package config spells the engines itself, because it imports nothing of ours.
func TestConfigNamesTheEnginesThatThereAreClientsFor(t *testing.T) {
	link, err := transport.New(transport.Options{URL: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]string{engine.VLLM: config.KindVLLM, engine.SGLang: config.KindSGLang, engine.TRTLLM: config.KindTRTLLM, engine.LlamaCPP: config.KindLlamaCPP} {
		if c, err := newClient(kind, link); err != nil || kind != name || c.Kind() != name {
			t.Errorf("%s is %s to the configuration, and its client %v (%v)", name, kind, c, err)
		}
	}
	for kind := range engineNames {
		_, err := newClient(kind, link)
		_, refused := config.LoadServe([]string{"--worker", kind + "=http://127.0.0.1:1"}, nil)
		if (err == nil) != (refused == nil) {
			t.Errorf("%s: a flag takes it (%v), a client speaks it (%v)", kind, refused, err)
		}
	}
}

// A kind that the flag states must not contradict the worker, and counts where the
// worker cannot be recognised.
func TestIdentifyChecksTheStatedKind(t *testing.T) {
	nameless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"object":"list","data":[{"id":"m","object":"model","owned_by":"me","max_model_len":64}]}`)
	})
	for _, test := range []struct {
		worker      http.Handler
		stated      string
		kind, fails string
	}{
		{sim.NewServer(sim.Config{Kind: sim.KindLlamaCPP}), "", "llamacpp", ""},
		{sim.NewServer(sim.Config{Kind: sim.KindLlamaCPP}), "llamacpp", "llamacpp", ""},
		{sim.NewServer(sim.Config{Kind: sim.KindLlamaCPP}), "vllm", "", `this is a llama.cpp server, not vLLM; leave out "vllm=" before its address`},
		{sim.NewServer(sim.Config{}), "llamacpp", "", `this is a vLLM server, not llama.cpp; leave out "llamacpp=" before its address`},
		{sim.NewServer(sim.Config{Kind: sim.KindSGLang}), "", "sglang", ""},
		{sim.NewServer(sim.Config{Kind: sim.KindSGLang}), "sglang", "sglang", ""},
		{sim.NewServer(sim.Config{Kind: sim.KindSGLang}), "vllm", "", `this is a SGLang server, not vLLM; leave out "vllm=" before its address`},
		{sim.NewServer(sim.Config{Kind: sim.KindTRTLLM}), "", "trtllm", ""},
		{sim.NewServer(sim.Config{Kind: sim.KindTRTLLM, Server: sim.ServerConfig{Profile: "trtllm-1.0"}}), "trtllm", "trtllm", ""},
		{sim.NewServer(sim.Config{Kind: sim.KindTRTLLM}), "vllm", "", `this is a TensorRT-LLM server, not vLLM; leave out "vllm=" before its address`},
		{nameless, "", "", "is neither vLLM"},
		{nameless, "vllm", "vllm", ""},
	} {
		s := httptest.NewServer(test.worker)
		link, err := transport.New(transport.Options{URL: s.URL, WorkerID: "w:1"})
		if err != nil {
			t.Fatal(err)
		}
		client, _, err := identify(t.Context(), link, test.stated)
		switch {
		case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
			t.Errorf("stated %q: %v, want %s", test.stated, err, test.fails)
		case test.fails == "" && (err != nil || client.Kind() != test.kind):
			t.Errorf("stated %q: %v, want kind %s", test.stated, err, test.kind)
		}
		s.Close()
	}
}
