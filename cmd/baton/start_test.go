package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"baton/config"
	"baton/model"
	"baton/router"
)

// otherModelFolder is the simulated model's with two tokens exchanged.
func otherModelFolder(t *testing.T) string {
	t.Helper()
	dir := modelFolder(t)
	path := filepath.Join(dir, "tokenizer.json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	vocabulary := file["model"].(map[string]any)["vocab"].(map[string]any)
	vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
	if data, err = json.Marshal(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// twoTokenizers are two workers that cannot be one model, each by its address.
func twoTokenizers(t *testing.T) (fp8, awq string) {
	t.Helper()
	var urls []string
	for name, dir := range map[string]string{"m-fp8": modelFolder(t), "m-awq": otherModelFolder(t)} {
		s := httptest.NewServer(listing(map[string]any{"id": name, "owned_by": "vllm", "root": dir}))
		t.Cleanup(s.Close)
		urls = append(urls, s.URL)
	}
	return urls[0], urls[1]
}

func TestServeFailsWhenOneNameHasTwoTokenizers(t *testing.T) {
	a, b := twoTokenizers(t)
	cfg, err := config.LoadServe([]string{"--worker", a, "--worker", b, "--served-model-name", "m",
		"--http-host", "127.0.0.1", "--http-port", "0"}, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err = serve(ctx, cfg, slog.New(slog.DiscardHandler), new(slog.LevelVar))
	if !errors.Is(err, model.ErrOtherTokenizer) {
		t.Fatal(err)
	}
	for _, want := range []string{cfg.Workers[0].ID, cfg.Workers[1].ID, `"m-fp8"`, `"m-awq"`, "--served-model-name WORKERNAME=NAME"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if status := report(err, new(bytes.Buffer)); status != exitFailed {
		t.Errorf("exit status %d", status)
	}
}

// A worker that was not there at the start must not end what serves meanwhile.
func TestLateWorkerWithAnotherTokenizerIsKeptOut(t *testing.T) {
	dir, other := modelFolder(t), otherModelFolder(t)
	serving := httptest.NewServer(listing(map[string]any{"id": "m", "owned_by": "vllm", "root": dir}))
	defer serving.Close()
	starting := true
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if starting {
			http.Error(w, "loading", http.StatusServiceUnavailable)
			return
		}
		listing(map[string]any{"id": "m", "owned_by": "vllm", "root": other}).ServeHTTP(w, r)
	}))
	defer late.Close()

	models, err := model.NewSet(model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := &config.Serve{Workers: []config.Worker{{ID: "w:1", URL: serving.URL}, {ID: "w:2", URL: late.URL}}}
	a := newAttacher(cfg, models, slog.New(slog.DiscardHandler))
	a.onModel = func(string) {}
	err = a.checkingStart(func(ctx context.Context) error {
		if _, err := a.attach(ctx, router.Spec{ID: "w:1", URL: serving.URL}); err != nil {
			t.Error(err)
		}
		spec := router.Spec{ID: "w:2", URL: late.URL}
		if _, err := a.attach(ctx, spec); err == nil {
			t.Error("attached while it was loading")
		}
		starting = false
		if _, err := a.attach(ctx, spec); !errors.Is(err, model.ErrOtherTokenizer) {
			t.Error(err)
		}
		return ctx.Err()
	})(t.Context())
	if err != nil {
		t.Error(err)
	}
}

// A worker that was discovered must not end what serves, not even when it is the
// first look at it that finds another tokenizer.
func TestDiscoveredWorkerWithAnotherTokenizerIsKeptOut(t *testing.T) {
	serving := httptest.NewServer(listing(map[string]any{"id": "m", "owned_by": "vllm", "root": modelFolder(t)}))
	defer serving.Close()
	other := httptest.NewServer(listing(map[string]any{"id": "m", "owned_by": "vllm", "root": otherModelFolder(t)}))
	defer other.Close()
	for name, named := range map[string]bool{"named by --worker": true, "discovered": false} {
		models, err := model.NewSet(model.Options{})
		if err != nil {
			t.Fatal(err)
		}
		cfg := &config.Serve{Workers: []config.Worker{{ID: "w:1", URL: serving.URL}}}
		if named {
			cfg.Workers = append(cfg.Workers, config.Worker{ID: "w:2", URL: other.URL})
		}
		a := newAttacher(cfg, models, slog.New(slog.DiscardHandler))
		a.onModel = func(string) {}
		err = a.checkingStart(func(ctx context.Context) error {
			if _, err := a.attach(ctx, router.Spec{ID: "w:1", URL: serving.URL}); err != nil {
				t.Error(err)
			}
			if _, err := a.attach(ctx, router.Spec{ID: "w:2", URL: other.URL}); !errors.Is(err, model.ErrOtherTokenizer) {
				t.Error(err)
			}
			return ctx.Err()
		})(t.Context())
		if errors.Is(err, model.ErrOtherTokenizer) != named {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A worker that does not fit its model's files is kept out; the others serve.
func TestMisfittingWorkerDoesNotFailTheStart(t *testing.T) {
	misfit := httptest.NewServer(listing(map[string]any{"id": "m", "owned_by": "llamacpp", "meta": map[string]any{"n_vocab": 7, "n_ctx": 100}}))
	defer misfit.Close()
	models, err := model.NewSet(model.Options{Paths: map[string]string{"": modelFolder(t)}})
	if err != nil {
		t.Fatal(err)
	}
	a := newAttacher(&config.Serve{}, models, slog.New(slog.DiscardHandler))
	a.onModel = func(string) {}
	err = a.checkingStart(func(ctx context.Context) error {
		if _, err := a.attach(ctx, router.Spec{ID: "w:1", URL: misfit.URL}); err == nil || !strings.Contains(err.Error(), "another tokenizer") {
			t.Error(err)
		}
		return ctx.Err()
	})(t.Context())
	if err != nil {
		t.Error(err)
	}
}
