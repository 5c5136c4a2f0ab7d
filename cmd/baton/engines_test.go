package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"baton/engine/sim"
	"baton/engine/transport"
)

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
		{sim.NewServer(sim.Config{Kind: sim.KindLlamaCpp}), "", "llamacpp", ""},
		{sim.NewServer(sim.Config{Kind: sim.KindLlamaCpp}), "llamacpp", "llamacpp", ""},
		{sim.NewServer(sim.Config{Kind: sim.KindLlamaCpp}), "vllm", "", `this is a llama.cpp server, not vLLM; leave out "vllm=" before its address`},
		{sim.NewServer(sim.Config{}), "llamacpp", "", `this is a vLLM server, not llama.cpp; leave out "llamacpp=" before its address`},
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
