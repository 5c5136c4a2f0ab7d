package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"baton/config"
	"baton/engine"
	"baton/engine/sim"
	"baton/model"
	"baton/router"
)

// modelFolder is the simulated model's.
func modelFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := sim.WriteModel(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// attachTo attaches to a worker that h plays, with the flags in opts. It returns
// the names that were made known, and the log.
func attachTo(t *testing.T, h http.Handler, opts model.Options) (w *router.Worker, names []string, log string, err error) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	models, err := model.NewSet(opts)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := newAttacher(&config.Serve{}, models, slog.New(slog.NewTextHandler(&out, nil)))
	a.onModel = func(name string) { names = append(names, name) }
	w, err = a.attach(t.Context(), router.Spec{ID: "w:1", URL: s.URL})
	return w, names, out.String(), err
}

// The kind that a flag states reaches the worker's client.
func TestAttachTakesTheStatedKind(t *testing.T) {
	nameless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model","owned_by":"me","max_model_len":64}]}`)
	}))
	defer nameless.Close()
	models, err := model.NewSet(model.Options{Paths: map[string]string{"": modelFolder(t)}})
	if err != nil {
		t.Fatal(err)
	}
	for kind, fails := range map[string]bool{"": true, config.KindVLLM: false} {
		cfg := &config.Serve{Workers: []config.Worker{{ID: "w:1", URL: nameless.URL, Kind: kind}}}
		a := newAttacher(cfg, models, slog.New(slog.DiscardHandler))
		a.onModel = func(string) {}
		if _, err := a.attach(t.Context(), specs(cfg)[0]); (err != nil) != fails {
			t.Errorf("kind %q: %v", kind, err)
		}
	}
}

func TestAttach(t *testing.T) {
	dir := modelFolder(t)
	for _, kind := range []string{sim.KindVLLM, sim.KindLlamaCPP} {
		t.Run(kind, func(t *testing.T) {
			h := sim.NewServer(sim.Config{Kind: kind, Model: "own", ContextLength: 512})
			w, names, log, err := attachTo(t, h, model.Options{Paths: map[string]string{"": dir}, ServedNames: map[string]string{"own": "public"}})
			if err != nil {
				t.Fatal(err)
			}
			if w.Client.Kind() != kind {
				t.Errorf("kind %s", w.Client.Kind())
			}
			if want := []router.Model{{Name: "public", Own: "own", ContextLength: 512}}; !reflect.DeepEqual(w.Models, want) {
				t.Errorf("models %+v, want %+v", w.Models, want)
			}
			if !reflect.DeepEqual(names, []string{"public"}) || !strings.Contains(log, "model=public worker=w:1 name_at_worker=own workers=1") {
				t.Errorf("names %q, log %s", names, log)
			}
		})
	}
}

// A worker is attached to again over the same link: requests that run keep their
// connections, and a probe of the new client says what the old one said.
func TestAttachAgain(t *testing.T) {
	s := httptest.NewServer(sim.NewServer(sim.Config{ContextLength: 512}))
	defer s.Close()
	models, err := model.NewSet(model.Options{Paths: map[string]string{"": modelFolder(t)}})
	if err != nil {
		t.Fatal(err)
	}
	a := newAttacher(&config.Serve{}, models, slog.New(slog.DiscardHandler))
	a.onModel = func(string) {}
	spec := router.Spec{ID: "w:1", URL: s.URL}
	for range 3 {
		w, err := a.attach(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := w.Client.Probe(t.Context()); err != nil || len(info.Models) != 1 || !info.Equal(w.Info) {
			t.Errorf("attached with %+v, then %+v, %v", w.Info, info, err)
		}
	}
	if len(a.links) != 1 {
		t.Errorf("%d links to one worker", len(a.links))
	}
}

func TestAttachByTheWorkersHint(t *testing.T) {
	dir := modelFolder(t)
	h := sim.NewServer(sim.Config{Server: sim.ServerConfig{ModelPath: dir}})
	if _, names, _, err := attachTo(t, h, model.Options{}); err != nil || len(names) != 1 {
		t.Errorf("%q, %v", names, err)
	}
	h = sim.NewServer(sim.Config{})
	if _, _, _, err := attachTo(t, h, model.Options{}); err == nil || !strings.Contains(err.Error(), "--model-path sim=PATH") {
		t.Errorf("without a hint: %v", err)
	}
}

// A worker whose tokenizer is another one must not be asked: it would read
// nonsense, and answer it.
func TestAttachRefusesAnotherTokenizer(t *testing.T) {
	dir := modelFolder(t)
	for _, kind := range []string{sim.KindVLLM, sim.KindLlamaCPP} {
		worker := sim.NewServer(sim.Config{Kind: kind})
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/tokenize" {
				fmt.Fprint(w, `{"tokens":[1,2,3]}`)
				return
			}
			worker.ServeHTTP(w, r)
		})
		_, _, _, err := attachTo(t, h, model.Options{Paths: map[string]string{"": dir}})
		want := fmt.Sprintf(`model "sim": worker w:1 has another tokenizer than %s: it makes other tokens of a test text; give the files of the worker's model with --model-path sim=PATH`, dir)
		if err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", kind, err, want)
		}
	}
}

func TestAttachBelievesAWorkerThatDoesNotTokenize(t *testing.T) {
	dir := modelFolder(t)
	worker := sim.NewServer(sim.Config{})
	asked := false
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/tokenize" {
			asked = true
			http.NotFound(w, r)
			return
		}
		worker.ServeHTTP(w, r)
	})
	if _, _, _, err := attachTo(t, h, model.Options{Paths: map[string]string{"": dir}}); err != nil || !asked {
		t.Errorf("asked %v, %v", asked, err)
	}
}

// listing is a vLLM server that lists models and can do nothing else.
func listing(models ...map[string]any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": models})
		case "/version":
			io.WriteString(w, `{"version":"0.32.0"}`)
		default:
			http.NotFound(w, r)
		}
	})
}

// A model without files here must not keep the worker's others from being served.
func TestAttachLeavesOutWhatItCannotTokenizeFor(t *testing.T) {
	dir := modelFolder(t)
	good := map[string]any{"id": "good", "owned_by": "vllm", "root": dir}
	bad := map[string]any{"id": "bad", "owned_by": "vllm", "root": "/no/such/model"}
	for _, order := range [][]map[string]any{{good, bad}, {bad, good}} {
		w, _, log, err := attachTo(t, listing(order...), model.Options{})
		if err != nil || len(w.Models) != 1 || w.Models[0].Name != "good" || !strings.Contains(log, "model left out") {
			t.Errorf("%+v, %v, %s", w, err, log)
		}
	}
	if _, _, _, err := attachTo(t, listing(bad), model.Options{}); err == nil {
		t.Error("a worker without any usable model was attached")
	}
	if _, _, _, err := attachTo(t, listing(), model.Options{}); err == nil {
		t.Error("a worker without models was attached")
	}
}

// A worker that is attached to again is compared again: it may have been restarted
// with another tokenizer under the same name.
func TestAttachComparesTokenizersEachTime(t *testing.T) {
	worker := sim.NewServer(sim.Config{})
	other := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if other && r.URL.Path == "/tokenize" {
			io.WriteString(w, `{"count":1,"max_model_len":8192,"tokens":[7]}`)
			return
		}
		worker.ServeHTTP(w, r)
	}))
	defer s.Close()
	set, err := model.NewSet(model.Options{Paths: map[string]string{"": modelFolder(t)}})
	if err != nil {
		t.Fatal(err)
	}
	a := newAttacher(&config.Serve{}, set, slog.New(slog.DiscardHandler))
	a.onModel = func(string) {}
	for _, other = range []bool{false, true, false} {
		_, err := a.attach(t.Context(), router.Spec{ID: "w:1", URL: s.URL})
		if (err != nil) != other || err != nil && !strings.Contains(err.Error(), "it makes other tokens of a test text") {
			t.Errorf("other tokenizer %v: %v", other, err)
		}
	}
}

// The router attaches to a worker again and again, which must not fill the log.
func TestAttachAgainSaysNothingNew(t *testing.T) {
	dir := modelFolder(t)
	models := []map[string]any{{"id": "good", "owned_by": "vllm", "root": dir}, {"id": "bad", "owned_by": "vllm", "root": "/no/such/model"}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { listing(models...).ServeHTTP(w, r) }))
	defer s.Close()
	set, err := model.NewSet(model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a := newAttacher(&config.Serve{}, set, slog.New(slog.NewTextHandler(&out, nil)))
	a.onModel = func(string) {}
	attach := func(lines int) {
		t.Helper()
		for range 3 {
			if _, err := a.attach(t.Context(), router.Spec{ID: "w:1", URL: s.URL}); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(out.String(), "model left out"); n != lines {
			t.Errorf("%d lines, want %d: %s", n, lines, out.String())
		}
	}
	attach(1)
	models = append(models, map[string]any{"id": "worse", "owned_by": "vllm", "root": "/no/such/model"})
	attach(1 + 2)
	models = models[:1]
	attach(1 + 2)
}

func TestAttachBoundsTheModelsOfAWorker(t *testing.T) {
	dir := modelFolder(t)
	var many []map[string]any
	for i := range maxModelsPerWorker + 1 {
		many = append(many, map[string]any{"id": fmt.Sprint("m", i), "owned_by": "vllm"})
	}
	w, names, log, err := attachTo(t, listing(many...), model.Options{Paths: map[string]string{"": dir}})
	if err != nil || len(w.Models) != maxModelsPerWorker || len(names) != maxModelsPerWorker || !strings.Contains(log, "more models than are looked at") {
		t.Errorf("%d models, %d names, %v", len(w.Models), len(names), err)
	}
}

func TestAttachBoundsTheModelsOfAllWorkers(t *testing.T) {
	dir := modelFolder(t)
	set, err := model.NewSet(model.Options{Paths: map[string]string{"": dir}})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	a := newAttacher(&config.Serve{}, set, slog.New(slog.NewTextHandler(&log, nil)))
	told := make(map[string]int)
	a.onModel = func(name string) { told[name]++ }
	for i := range maxModels - 1 {
		a.announce(fmt.Sprint("m", i), &model.Model{})
	}
	s := httptest.NewServer(listing(map[string]any{"id": "m0"}, map[string]any{"id": "last"}, map[string]any{"id": "one more"}))
	defer s.Close()
	for range 2 {
		w, err := a.attach(t.Context(), router.Spec{ID: "w:1", URL: s.URL})
		if err != nil || len(w.Models) != 2 || strings.Count(log.String(), "which is the limit") > 1 {
			t.Errorf("%+v, %v, %s", w, err, log.String())
		}
	}
	if len(told) != maxModels || told["m0"] != 1 || told["last"] != 1 {
		t.Errorf("told of %d models, of m0 %d times", len(told), told["m0"])
	}
}

// Nothing is kept of a worker that is gone.
func TestForget(t *testing.T) {
	dir := modelFolder(t)
	set, err := model.NewSet(model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cfg := &config.Serve{ModelPaths: []config.Named{{Name: "none", Value: "/none"}}}
	a := newAttacher(cfg, set, slog.New(slog.NewTextHandler(&log, nil)))
	a.onModel = func(string) {}
	var connections sync.WaitGroup
	s := httptest.NewUnstartedServer(listing(map[string]any{"id": "a", "owned_by": "vllm", "root": dir},
		map[string]any{"id": "b", "owned_by": "vllm", "root": dir}, map[string]any{"id": "c", "owned_by": "vllm", "root": "/no/such"}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			connections.Add(1)
		case http.StateClosed:
			connections.Done()
		}
	}
	s.Start()
	defer s.Close()
	for _, id := range []string{"w:1", "w:2"} {
		if _, err := a.attach(t.Context(), router.Spec{ID: id, URL: s.URL}); err != nil {
			t.Fatal(err)
		}
	}
	a.forget("w:1")
	if strings.Contains(log.String(), "no worker any more") || a.links["w:2"] == nil || len(a.groups.models["a"].workers) != 1 {
		t.Errorf("too much was forgotten: %v, %v, %s", a.links, a.groups.models, log.String())
	}
	a.forget("w:2")
	a.forget("w:2")
	if n := strings.Count(log.String(), "no worker any more"); n != 2 {
		t.Errorf("%d lines for two models: %s", n, log.String())
	}
	if n := len(a.links) + len(a.warned) + len(a.groups.models) + len(a.groups.hinted) + len(a.flagNames.attached); n != 0 {
		t.Errorf("left behind: %v, %v, %v, %v, %v", a.links, a.warned, a.groups.models, a.groups.hinted, a.flagNames.attached)
	}
	connections.Wait()
}

// llama.cpp loses ids of characters that are spelled by several tokens; its
// client repairs them with the tokenizer that attach found.
func TestAttachGivesTheTokenizerToLlamaCPP(t *testing.T) {
	worker := sim.NewServer(sim.Config{Kind: sim.KindLlamaCPP, Style: sim.StyleHash, MeanLength: -1})
	w, _, _, err := attachTo(t, worker, model.Options{Paths: map[string]string{"": modelFolder(t)}})
	if err != nil {
		t.Fatal(err)
	}
	req := &engine.Request{ID: "r", Model: "sim", TokenIDs: []engine.TokenID{100, 200, 300},
		Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1}, Stop: engine.StopConditions{MaxTokens: 60, EOS: sim.ModelEOS()}}
	var got []engine.TokenID
	for d, err := range w.Client.Generate(t.Context(), req) {
		if err != nil {
			t.Fatalf("after %d ids: %v", len(got), err)
		}
		got = append(got, d.TokenIDs...)
	}
	if len(got) != req.Stop.MaxTokens { // which ones they are is the client's own test
		t.Errorf("%d ids, want %d", len(got), req.Stop.MaxTokens)
	}
}
