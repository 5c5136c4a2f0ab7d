package model

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func newSet(t *testing.T, opts Options) *Set {
	t.Helper()
	s, err := NewSet(opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPathFlag(t *testing.T) {
	for name, want := range map[string]string{
		"Qwen/Qwen3":     "--model-path Qwen/Qwen3=PATH",
		"/models/x.gguf": "--model-path PATH",
		"./x.gguf":       "--model-path PATH",
		"~/x.gguf":       "--model-path PATH",
		"a=b":            "--model-path PATH",
	} {
		if got := PathFlag(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestConfiguredModelsAreThereFromTheStart(t *testing.T) {
	other := otherTokenizer(t)
	s := newSet(t, Options{
		Paths:       map[string]string{"": simFolder, "b": other},
		ServedNames: map[string]string{"": "a", "own-b": "b", "own-c": "c"},
	})
	if got := s.Names(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("names %v", got)
	}
	for name, path := range map[string]string{"a": simFolder, "b": other, "c": simFolder} {
		if m, ok := s.Get(name); !ok || m.Path != path || m.Name != name {
			t.Errorf("%s: %+v", name, m)
		}
	}
	public, m, err := s.Resolve("w:1", "anything", "/not/here")
	if err != nil || public != "a" || m.Path != simFolder {
		t.Errorf("%s, %v, %v", public, m, err)
	}
	if public, m, err = s.Resolve("w:1", "own-b", ""); err != nil || public != "b" || m.Path != other {
		t.Errorf("%s, %v, %v", public, m, err)
	}
	if _, ok := s.Get("anything"); ok || s.Known("anything") {
		t.Error("a worker's own name became public")
	}
}

func TestNewSetErrorsNameTheFlag(t *testing.T) {
	for name, want := range map[string]string{"": "--model-path /no/such/folder is not there; ", "x": "--model-path x=/no/such/folder is not there; "} {
		_, err := NewSet(Options{Paths: map[string]string{name: "/no/such/folder"}})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNameKnownBeforeItsWorker(t *testing.T) {
	s := newSet(t, Options{ServedNames: map[string]string{"own": "public"}})
	if _, ok := s.Get("public"); ok || !s.Known("public") || !slices.Equal(s.Names(), []string{"public"}) {
		t.Error("a configured name must be known and not loaded")
	}
	sim, err := filepath.Abs(simFolder)
	if err != nil {
		t.Fatal(err)
	}
	if public, _, err := s.Resolve("w:1", "own", sim); err != nil || public != "public" {
		t.Fatal(public, err)
	}
	if m, ok := s.Get("public"); !ok || m.Name != "public" {
		t.Error("not there after its worker came")
	}
}

func TestResolveByHint(t *testing.T) {
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	sim, err := filepath.Abs(simFolder)
	if err != nil {
		t.Fatal(err)
	}
	other, same := otherTokenizer(t), folderWith(t, nil)

	t.Run("own name and hint", func(t *testing.T) {
		s := newSet(t, Options{})
		public, m, err := s.Resolve("w:1", "tiny", sim)
		if err != nil || public != "tiny" || m.Name != "tiny" {
			t.Fatal(public, m, err)
		}
		if _, again, err := s.Resolve("w:1", "tiny", sim); err != nil || again != m {
			t.Error("the same model came out as another", err)
		}
		// On another machine the same model lies elsewhere.
		if _, again, err := s.Resolve("w:1", "tiny", "/elsewhere/tiny.gguf"); err != nil || again != m {
			t.Error(err)
		}
	})
	t.Run("the name is the path", func(t *testing.T) {
		s := newSet(t, Options{})
		if public, _, err := s.Resolve("w:1", sim, ""); err != nil || public != sim {
			t.Error(public, err)
		}
	})
	t.Run("nothing to go by", func(t *testing.T) {
		s := newSet(t, Options{})
		for hint, want := range map[string]string{
			"":                 "does not say where the files",
			"/models/m.gguf":   "/models/m.gguf, which is not on this machine",
			"../engine/sim":    "not on this machine", // relative to what?
			"org/not-in-cache": "not on this machine",
		} {
			_, _, err := s.Resolve("w:1", "tiny", hint)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--model-path tiny=PATH") {
				t.Errorf("%q: %v", hint, err)
			}
		}
		if _, _, err := s.Resolve("w:1", "/models/m.gguf", ""); err == nil || !strings.HasSuffix(err.Error(), "--model-path PATH") {
			t.Error(err)
		}
	})
	t.Run("joined with equal tokenizers", func(t *testing.T) {
		s := newSet(t, Options{ServedNames: map[string]string{"": "m"}})
		if _, _, err := s.Resolve("w:1", "m-fp8", sim); err != nil {
			t.Fatal(err)
		}
		if public, _, err := s.Resolve("w:1", "m-awq", same); err != nil || public != "m" {
			t.Error(public, err)
		}
	})
	t.Run("joined with other tokenizers", func(t *testing.T) {
		s := newSet(t, Options{ServedNames: map[string]string{"": "m"}})
		if _, _, err := s.Resolve("w:1", "m-fp8", sim); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Resolve("w:2", "m-awq", other)
		if !errors.Is(err, ErrOtherTokenizer) {
			t.Fatal(err)
		}
		for _, want := range []string{`"m-fp8" of worker w:1`, `"m-awq" of worker w:2`, sim, other, "--served-model-name"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q lacks %q", err, want)
			}
		}
	})
	t.Run("joined unseen", func(t *testing.T) {
		s := newSet(t, Options{ServedNames: map[string]string{"": "m"}})
		if _, _, err := s.Resolve("w:1", "m-fp8", sim); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Resolve("w:1", "m-awq", "/elsewhere")
		if err == nil || !strings.Contains(err.Error(), `"m-fp8"`) || !strings.Contains(err.Error(), `"m-awq"`) {
			t.Error(err)
		}
	})
	t.Run("a failure is not for ever", func(t *testing.T) {
		dir := folderWith(t, map[string]string{tokenizerFile: ""})
		s := newSet(t, Options{})
		if _, _, err := s.Resolve("w:1", "m", dir); err == nil {
			t.Fatal("loaded without a tokenizer")
		}
		writeFolder(t, dir, nil)
		if _, _, err := s.Resolve("w:1", "m", dir); err != nil {
			t.Error(err)
		}
	})
}

func TestResolveConcurrently(t *testing.T) {
	sim, err := filepath.Abs(simFolder)
	if err != nil {
		t.Fatal(err)
	}
	s := newSet(t, Options{})
	models := make([]*Model, 8)
	var wg sync.WaitGroup
	for i := range models {
		wg.Go(func() {
			_, models[i], _ = s.Resolve("w:1", "m", sim)
			s.Names()
			s.Get("m")
		})
	}
	wg.Wait()
	for _, m := range models {
		if m == nil || m != models[0] {
			t.Fatal("loaded more than once")
		}
	}
}
