package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/config"
	"baton/discovery"
)

// firstTargets returns what the source of a command line reports when all of it has
// been found.
func firstTargets(t *testing.T, n int, args ...string) []discovery.Target {
	t.Helper()
	cfg, err := config.LoadServe(args, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	source, err := workerSource(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var all []discovery.Target
	err = source.Run(ctx, func(targets []discovery.Target) {
		if all = targets; len(all) >= n {
			cancel()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWorkerSource(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.yaml")
	for path, content := range map[string]string{a: `[{"targets":["10.0.0.2:80","10.0.0.1:80"],"labels":{"__kind__":"llamacpp"}}]`, b: "- targets: ['10.0.0.3:80']"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := firstTargets(t, 3, "--worker", "vllm=http://10.0.0.1:80", "--discovery", "file", "--discovery-file", a, "--discovery-file", b)
	slices.SortFunc(got, func(a, b discovery.Target) int { return strings.Compare(a.URL, b.URL) })
	want := []discovery.Target{{URL: "http://10.0.0.1:80", Kind: "vllm"}, {URL: "http://10.0.0.2:80", Kind: "llamacpp"}, {URL: "http://10.0.0.3:80"}}
	if !slices.Equal(got, want) {
		t.Errorf("files: %+v", got)
	}
	got = firstTargets(t, 1, "--discovery", "dns", "--discovery-name", "vllm=https://127.0.0.1:8443")
	if want := []discovery.Target{{URL: "https://127.0.0.1:8443", Kind: "vllm"}}; !slices.Equal(got, want) {
		t.Errorf("DNS: %+v", got)
	}
	if got = firstTargets(t, 1, "--worker", "http://W:80"); !slices.Equal(got, []discovery.Target{{URL: "http://w:80"}}) {
		t.Errorf("static: %+v", got)
	}

	cfg, err := config.LoadServe([]string{"--discovery", "file", "--discovery-file", filepath.Join(dir, "none")}, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workerSource(cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.HasPrefix(err.Error(), "--discovery-file "+filepath.Join(dir, "none")+": ") {
		t.Errorf("a file that is not there: %v", err)
	}
}
