package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/config"
	"baton/hub/hubtest"
	"baton/model"
	"baton/router"
)

// A logWatch is a log in which texts can be waited for.
type logWatch struct {
	mu    sync.Mutex // guards what follows
	all   bytes.Buffer
	grown chan struct{} // closed when all grows
}

func (l *logWatch) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.grown != nil {
		close(l.grown)
		l.grown = nil
	}
	return l.all.Write(p)
}

func (l *logWatch) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func (l *logWatch) wait(ctx context.Context, text string) error {
	for {
		l.mu.Lock()
		if strings.Contains(l.all.String(), text) {
			l.mu.Unlock()
			return nil
		}
		if l.grown == nil {
			l.grown = make(chan struct{})
		}
		grown := l.grown
		l.mu.Unlock()
		select {
		case <-grown:
		case <-ctx.Done():
			return fmt.Errorf("%q is not in the log:\n%s", text, l)
		}
	}
}

// hubWithTheSimModel has the simulated worker's model and the environment's hub is it.
func hubWithTheSimModel(t *testing.T, before func()) *hubtest.Hub {
	t.Helper()
	m := &hubtest.Model{Files: make(map[string][]byte)}
	dir := modelFolder(t)
	for _, name := range []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		m.Files[name] = data
	}
	fake := &hubtest.Hub{
		Models: map[string]*hubtest.Model{"org/far": m},
		Before: func(http.ResponseWriter, *http.Request) bool { before(); return false },
	}
	fake.Start()
	t.Cleanup(fake.Close)
	for name, value := range map[string]string{
		"HF_ENDPOINT": fake.URL(), "HF_HOME": t.TempDir(), "XDG_CACHE_HOME": t.TempDir(),
		"HF_HUB_CACHE": "", "HUGGINGFACE_HUB_CACHE": "", "HF_TOKEN": "", "HF_TOKEN_PATH": "", "HUGGING_FACE_HUB_TOKEN": "",
		"HF_HUB_OFFLINE": "", "TRANSFORMERS_OFFLINE": "", "HTTP_PROXY": "", "http_proxy": "",
	} {
		t.Setenv(name, value)
	}
	return fake
}

// A hub that does not answer keeps the workers of its model waiting, and nobody else.
func TestServeFetchesFromTheHub(t *testing.T) {
	release := make(chan struct{})
	hubWithTheSimModel(t, func() { <-release })
	near := httptest.NewServer(listing(map[string]any{"id": "near", "owned_by": "vllm", "root": modelFolder(t)}))
	defer near.Close()
	far := httptest.NewServer(listing(map[string]any{"id": "far", "owned_by": "vllm", "root": "org/far"}))
	defer far.Close()
	cfg, err := config.LoadServe([]string{"--worker", near.URL, "--worker", far.URL, "--http-host", "127.0.0.1", "--http-port", "0",
		"--admin-address", "off", "--health-interval", "100ms"}, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	stop, end := context.WithCancel(ctx)
	var log logWatch
	ended := make(chan error)
	go func() { ended <- serve(stop, cfg, slog.New(slog.NewTextHandler(&log, nil)), new(slog.LevelVar)) }()
	for _, text := range []string{
		`msg="worker attached" worker=` + cfg.Workers[0].ID,
		"the files of org/far are being fetched from the hub; the worker is used as soon as they are there",
	} {
		if err := log.wait(ctx, text); err != nil {
			t.Error(err)
		}
	}
	close(release)
	for _, text := range []string{`msg="a model's files are there" model=org/far`, `msg="worker attached" worker=` + cfg.Workers[1].ID} {
		if err := log.wait(ctx, text); err != nil {
			t.Error(err)
		}
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A worker with one model that is here and one that is fetched serves the first, and
// is looked at again for the second.
func TestModelThatComesLater(t *testing.T) {
	release := make(chan struct{})
	hubWithTheSimModel(t, func() { <-release })
	defer close(release)
	worker := httptest.NewServer(listing(
		map[string]any{"id": "near", "owned_by": "vllm", "root": modelFolder(t)},
		map[string]any{"id": "far", "owned_by": "vllm", "root": "org/far"}))
	defer worker.Close()
	models, err := newModels(&config.Serve{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	a := newAttacher(&config.Serve{}, models, slog.New(slog.DiscardHandler))
	a.onModel = func(string) {}
	w, err := a.attach(t.Context(), router.Spec{ID: "w:1", URL: worker.URL})
	if err != nil {
		t.Fatal(err)
	}
	info, err := w.Client.Probe(t.Context())
	if err != nil || len(w.Models) != 1 || w.Models[0].Name != "near" || w.Info.Equal(info) {
		t.Errorf("%+v, %v", w, err)
	}
	if _, _, err := models.Resolve("w:1", "far", "org/far"); !model.MayComeLater(err) {
		t.Error(err)
	}
}

func TestWrongHubEndpoint(t *testing.T) {
	t.Setenv("HF_ENDPOINT", "huggingface.co")
	if _, err := newModels(&config.Serve{}, slog.New(slog.DiscardHandler)); err == nil || !strings.HasPrefix(err.Error(), "HF_ENDPOINT is not the address of a hub") {
		t.Error(err)
	}
}
