package model

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/hub"
	"baton/hub/hubtest"
)

// hubModel is the simulated worker's model as the hub has it.
func hubModel(t *testing.T, but map[string]string) *hubtest.Model {
	t.Helper()
	m := &hubtest.Model{Files: map[string][]byte{"model.safetensors": []byte("weights")}, Large: []string{tokenizerFile}}
	for _, name := range []string{tokenizerFile, tokenizerConfigFile, configFile, generationConfigFile} {
		data, err := os.ReadFile(filepath.Join(simFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		m.Files[name] = data
	}
	for name, content := range but {
		if m.Files[name] = []byte(content); content == "" {
			delete(m.Files, name)
		}
	}
	return m
}

// fetchingSet is a set with a hub behind it, and the log of both.
func fetchingSet(t *testing.T, fake *hubtest.Hub, opts Options) (*Set, *bytes.Buffer) {
	t.Helper()
	return fetchingInto(t, t.TempDir(), fake, opts)
}

// fetchingInto is fetchingSet with a cache.
func fetchingInto(t *testing.T, cache string, fake *hubtest.Hub, opts Options) (*Set, *bytes.Buffer) {
	t.Helper()
	fake.Start()
	t.Cleanup(fake.Close)
	var log bytes.Buffer
	opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	h, err := hub.New(hub.Config{Endpoint: fake.URL(), CacheDir: cache, HeaderDir: t.TempDir(), Log: opts.Log})
	if err != nil {
		t.Fatal(err)
	}
	opts.Hub = h
	return newSet(t, opts), &log
}

// fetchNext makes one attempt at what was wanted last.
func fetchNext(t *testing.T, s *Set) error {
	t.Helper()
	select {
	case one := <-s.find.fetches.new:
		return s.find.fetches.attempt(t.Context(), one)
	default:
		t.Fatal("nothing is wanted")
		return nil
	}
}

func TestConfiguredModelIsFetchedWhileOthersServe(t *testing.T) {
	s, _ := fetchingSet(t, &hubtest.Hub{Models: map[string]*hubtest.Model{"org/tiny": hubModel(t, nil)}},
		Options{Paths: map[string]string{"far": "org/tiny", "near": simFolder}})
	if _, ok := s.Get("near"); !ok {
		t.Error("the model that is here waits for the one that is not")
	}
	if _, ok := s.Get("far"); ok || !s.Known("far") {
		t.Error("the model that is fetched must be known, and not there")
	}
	for range 2 {
		_, _, err := s.Resolve("w:1", "far", "")
		if !errors.Is(err, ErrFetching) || !strings.HasPrefix(err.Error(), `model "far": the files of org/tiny are being fetched`) {
			t.Fatal(err)
		}
	}
	if err := fetchNext(t, s); err != nil {
		t.Fatal(err)
	}
	_, m, err := s.Resolve("w:1", "far", "")
	if err != nil || m.VocabSize != simSize || !strings.Contains(m.Path, "models--org--tiny") {
		t.Fatal(m, err)
	}
	near, _ := s.Get("near")
	if near.Digest() != m.Digest() {
		t.Error("another tokenizer came out than was put in")
	}
	if n := len(s.find.fetches.new); n > 0 {
		t.Errorf("wanted %d times more", n)
	}
}

// What a worker says is fetched if it names a model of the hub, and nothing else.
func TestWhatAWorkerNamesIsFetched(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Join("org", "here"), 0o755); err != nil { // ours, which a worker's relative path does not mean
		t.Fatal(err)
	}
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, c := range []struct{ own, hint, wants string }{
		{"any", "org/tiny", "org/tiny"},
		{"any", "org/here", "org/here"},
		{"any", "mymodel", ""},
		{"org/tiny", "", "org/tiny"},
		{"org/tiny", "/models/tiny", "org/tiny"},
		{"org/tiny-GGUF:Q4_K_M", "/models/tiny.gguf", "org/tiny-GGUF:Q4_K_M"},
		{"any", "/home/u/.cache/huggingface/hub/models--org--tiny/snapshots/" + commit, "org/tiny@" + commit},
		{"gpt-4", "", ""},
		{"gpt-4", "/models/x", ""},
		{"any", "../x", ""},
		{"any", "models/tiny/q8.gguf", ""},
		{"models/tiny/q8.gguf", "", ""},
		{"org/tiny", "models/tiny/q8.gguf", "org/tiny"},
		{"any", "http://h/x", ""},
	} {
		s, _ := fetchingSet(t, &hubtest.Hub{}, Options{})
		_, _, err := s.Resolve("w:1", c.own, c.hint)
		if errors.Is(err, ErrFetching) != (c.wants != "") {
			t.Errorf("%s, %s: %v", c.own, c.hint, err)
		}
		if c.wants == "" {
			if !strings.Contains(err.Error(), PathFlag(c.own)) {
				t.Errorf("%s, %s: %v", c.own, c.hint, err)
			}
			continue
		}
		if one := <-s.find.fetches.new; one.ref.String() != c.wants {
			t.Errorf("%s, %s: wants %s", c.own, c.hint, one.ref)
		}
	}
}

// A worker whose machine has the model elsewhere joins the model that another worker
// brought, and nothing is fetched.
func TestBroughtModelIsNotFetchedAgain(t *testing.T) {
	s, _ := fetchingSet(t, &hubtest.Hub{}, Options{})
	sim, err := filepath.Abs(simFolder)
	if err != nil {
		t.Fatal(err)
	}
	_, first, err := s.Resolve("w:1", "org/tiny", sim)
	if err != nil {
		t.Fatal(err)
	}
	if _, m, err := s.Resolve("w:2", "org/tiny", "/elsewhere"); err != nil || m != first || len(s.find.fetches.new) > 0 {
		t.Error(m, err)
	}
}

// An adapter has no tokenizer: that of its base is taken.
func TestAdapterTakesItsBase(t *testing.T) {
	s, _ := fetchingSet(t, &hubtest.Hub{Models: map[string]*hubtest.Model{
		"org/tiny":   hubModel(t, nil),
		"me/adapter": {Files: map[string][]byte{adapterFile: []byte(`{"base_model_name_or_path": "org/tiny"}`), "adapter_model.safetensors": nil}},
		"me/lost":    {Files: map[string][]byte{adapterFile: []byte(`{}`)}},
	}}, Options{Paths: map[string]string{"a": "me/adapter", "b": "me/lost"}})
	for range 3 {
		if err := fetchNext(t, s); err != nil {
			t.Fatal(err)
		}
		if _, m, err := s.Resolve("w:1", "a", ""); err == nil && !strings.Contains(m.Path, "models--org--tiny") {
			t.Errorf("loaded from %s", m.Path)
		} else if err != nil && !errors.Is(err, ErrFetching) {
			t.Error(err)
		}
	}
	if _, ok := s.Get("a"); !ok {
		t.Error("the adapter is not there when its base is")
	}
	if _, _, err := s.Resolve("w:1", "b", ""); err == nil || !strings.Contains(err.Error(), "does not say which model it adapts") {
		t.Error(err)
	}

	local := t.TempDir()
	for base, want := range map[string]string{"./base": "which is a path on the machine it was made on", "org/none": "is an adapter of org/none", filepath.Join(local, "none"): "is not there"} {
		writeFile(t, filepath.Join(local, adapterFile), fmt.Sprintf(`{"base_model_name_or_path": %q}`, base))
		if _, err := Load("m", local); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", base, err)
		}
	}
	base, err := filepath.Abs(simFolder)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(local, adapterFile), fmt.Sprintf(`{"base_model_name_or_path": %q}`, base))
	if m, err := Load("m", local); err != nil || m.Path != base {
		t.Error(m, err)
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The header of a .gguf file of the hub is a model like another.
func TestGGUFOfTheHub(t *testing.T) {
	header, err := os.ReadFile(ggufOf(t, func(map[string]any) {}))
	if err != nil {
		t.Fatal(err)
	}
	file := append(header, make([]byte, 4<<20)...)
	s, _ := fetchingSet(t, &hubtest.Hub{Models: map[string]*hubtest.Model{
		"org/m-GGUF": {Files: map[string][]byte{"m-Q4_K_M.gguf": file}, Large: []string{"m-Q4_K_M.gguf"}},
	}}, Options{Paths: map[string]string{"": "org/m-GGUF:Q4_K_M"}})
	if err := fetchNext(t, s); err != nil {
		t.Fatal(err)
	}
	_, m, err := s.Resolve("w:1", "m", "/models/m-Q4_K_M.gguf")
	if err != nil || m.ContextLength != 4096 {
		t.Fatal(m, err)
	}
	if info, err := os.Stat(m.Path); err != nil || info.Size() > 2<<20 {
		t.Error(info, err)
	}
}

// What the cache has in part is used if the hub cannot be asked for the rest, with
// one warning.
func TestPartOfAModelHasToDo(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	cache := t.TempDir()
	snapshot := filepath.Join(cache, "models--org--tiny", "snapshots", commit)
	writeFolder(t, snapshot, map[string]string{generationConfigFile: ""})
	s, log := fetchingInto(t, cache, &hubtest.Hub{}, Options{Paths: map[string]string{"": "org/tiny"}})
	if _, _, err := s.Resolve("w:1", "m", ""); !errors.Is(err, ErrFetching) {
		t.Fatal(err)
	}
	if err := fetchNext(t, s); err == nil {
		t.Fatal("fetched what is not there")
	}
	for range 2 {
		if _, m, err := s.Resolve("w:1", "m", ""); err != nil || m.Path != snapshot {
			t.Error(m, err)
		}
	}
	if n := strings.Count(log.String(), "used without asking the hub"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log)
	}

	// With nothing here the refusal is what there is to say.
	s, _ = fetchingSet(t, &hubtest.Hub{}, Options{Paths: map[string]string{"": "org/tiny"}})
	if err := fetchNext(t, s); err == nil {
		t.Fatal("fetched what is not there")
	}
	if _, _, err := s.Resolve("w:1", "m", ""); err == nil || errors.Is(err, ErrFetching) || !strings.Contains(err.Error(), "no such model") {
		t.Error(err)
	}
}

// A hub that is slow does not keep a model waiting of which only the rest is missing.
func TestRestIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const commit = "0123456789abcdef0123456789abcdef01234567"
		cache := t.TempDir()
		writeFolder(t, filepath.Join(cache, "models--org--tiny", "snapshots", commit), map[string]string{generationConfigFile: ""})
		h, err := hub.New(hub.Config{Endpoint: "http://hub", CacheDir: cache})
		if err != nil {
			t.Fatal(err)
		}
		s := newSet(t, Options{Hub: h})
		for _, after := range []time.Duration{0, restWait - time.Second} {
			time.Sleep(after)
			if _, _, err := s.Resolve("w:1", "m", "org/tiny"); !errors.Is(err, ErrFetching) {
				t.Errorf("after %v: %v", after, err)
			}
		}
		time.Sleep(time.Second)
		if _, _, err := s.Resolve("w:1", "m", "org/tiny"); err != nil {
			t.Error(err)
		}
	})
}

// Workers may name any models; what is asked of the hub for them is bounded.
func TestFetchesAreBounded(t *testing.T) {
	s, _ := fetchingSet(t, &hubtest.Hub{}, Options{})
	for i := range maxFetches {
		if _, _, err := s.Resolve("w:1", fmt.Sprintf("org/m%d", i), ""); !errors.Is(err, ErrFetching) {
			t.Fatal(err)
		}
	}
	if _, _, err := s.Resolve("w:1", "org/more", ""); err == nil || errors.Is(err, ErrFetching) || !strings.Contains(err.Error(), "which is the limit") {
		t.Error(err)
	}
}

func TestRetryIn(t *testing.T) {
	transient, final := &hub.Error{Reason: hub.ErrUnavailable}, &hub.Error{Reason: hub.ErrNotFound}
	asked := &hub.Error{Reason: hub.ErrUnavailable, RetryAfter: 10 * time.Minute}
	for _, c := range []struct {
		last time.Duration
		err  error
		want time.Duration
	}{
		{0, transient, time.Second},
		{time.Second, transient, 2 * time.Second},
		{4 * time.Minute, transient, 5 * time.Minute},
		{0, final, time.Minute},
		{3 * time.Minute, final, 5 * time.Minute},
		{0, asked, 10 * time.Minute},
		{0, errors.New("other"), time.Second},
	} {
		if got := retryIn(c.last, c.err); got != c.want {
			t.Errorf("after %v and %v: %v", c.last, c.err, got)
		}
	}
}

// A fetch is tried again at growing distances, with one line for what stays the same,
// and it ends with its context.
func TestFetchIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		f := newFetches(hub.Local(func(string) string { return "" }), slog.New(slog.NewTextHandler(&log, nil)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := f.want(hub.Ref{Repo: "org/m", Revision: "main"}); !errors.Is(err, ErrFetching) {
			t.Error(err)
		}
		began := time.Now()
		if err := f.run(ctx); err != nil || time.Since(began) != time.Hour {
			t.Error(err, time.Since(began))
		}
		if n := strings.Count(log.String(), `level=ERROR msg="a model's files cannot be fetched`); n != 1 {
			t.Errorf("%d lines:\n%s", n, &log)
		}
		if _, err := f.want(hub.Ref{Repo: "org/m", Revision: "main"}); err == nil || errors.Is(err, ErrFetching) {
			t.Errorf("after failures: %v", err)
		}
	})
}

// A slow hub keeps two slots busy, not the start and not those who ask.
func TestSlowHub(t *testing.T) {
	release := make(chan struct{})
	fake := &hubtest.Hub{
		Models: map[string]*hubtest.Model{"org/a": hubModel(t, nil), "org/b": hubModel(t, nil), "org/c": hubModel(t, nil)},
		Before: func(http.ResponseWriter, *http.Request) bool { <-release; return false },
	}
	s, _ := fetchingSet(t, fake, Options{Paths: map[string]string{"a": "org/a", "b": "org/b", "c": "org/c", "near": simFolder}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	for name := range maps.Keys(s.options.Paths) {
		if _, _, err := s.Resolve("w:1", name, ""); (err == nil) != (name == "near") {
			t.Errorf("%s: %v", name, err)
		}
	}
	close(release)
	left := []string{"a", "b", "c"}
	for deadline := time.Now().Add(30 * time.Second); len(left) > 0 && time.Now().Before(deadline); <-time.After(time.Millisecond) {
		left = slices.DeleteFunc(left, func(name string) bool {
			_, _, err := s.Resolve("w:1", name, "")
			return err == nil
		})
	}
	if len(left) > 0 {
		t.Errorf("never came: %v", left)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
