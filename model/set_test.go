package model

import (
	"os"
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

func TestNamesParse(t *testing.T) {
	tests := []struct {
		name          string
		paths, served []string
		wantErr       string
	}{
		{"nothing", nil, nil, ""},
		{"one of each kind", []string{"./a", "x=./b"}, []string{"n", "own=m"}, ""},
		{"the same twice", []string{"x=./b", "x=./b"}, []string{"own=m", "own=m", "n", "n"}, ""},
		{"two defaults", []string{"./a", "./b"}, nil, "--model-path ./b: there is already one"},
		{"two paths", []string{"x=./a", "x=./b"}, nil, `"x" has already the path ./a`},
		{"no path", []string{"x="}, nil, "--model-path x=: must be"},
		{"empty path", []string{""}, nil, "--model-path : must be"},
		{"two served defaults", nil, []string{"a", "b"}, "--served-model-name b: there is already one"},
		{"two served names", nil, []string{"own=a", "own=b"}, `"own" has already the name "a"`},
		{"no served name", nil, []string{"own="}, "must be NAME, or WORKERNAME=NAME"},
		{"no worker's name", nil, []string{"=a"}, "must be NAME, or WORKERNAME=NAME"},
		{"long name", nil, []string{strings.Repeat("n", maxNameBytes+1)}, "must be NAME"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := parseNames(tt.paths, tt.served)
			if (err == nil) != (tt.wantErr == "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got %v, want %q", err, tt.wantErr)
			}
		})
	}
}

func TestSplitPath(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "a=b")
	if err := os.Mkdir(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(odd))
	for value, want := range map[string][2]string{
		"x=/p":        {"x", "/p"},
		"org/x=org/y": {"org/x", "org/y"},
		"x=/p=q":      {"x", "/p=q"},
		"/p=q":        {"", "/p=q"},
		"./p=q":       {"", "./p=q"},
		"a=b":         {"", "a=b"}, // exists
		"plain":       {"", "plain"},
	} {
		if name, path := splitPath(value); name != want[0] || path != want[1] {
			t.Errorf("%s: %q, %q", value, name, path)
		}
	}
}

func TestConfiguredModelsAreThereFromTheStart(t *testing.T) {
	other := otherTokenizer(t)
	s := newSet(t, Options{
		Paths:       []string{simFolder, "b=" + other},
		ServedNames: []string{"a", "own-b=b", "own-c=c"},
	})
	if got := s.Names(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("names %v", got)
	}
	for name, path := range map[string]string{"a": simFolder, "b": other, "c": simFolder} {
		if m, ok := s.Get(name); !ok || m.Path != path || m.Name != name {
			t.Errorf("%s: %+v", name, m)
		}
	}
	public, m, err := s.Resolve("anything", "/not/here")
	if err != nil || public != "a" || m.Path != simFolder {
		t.Errorf("%s, %v, %v", public, m, err)
	}
	if public, m, err = s.Resolve("own-b", ""); err != nil || public != "b" || m.Path != other {
		t.Errorf("%s, %v, %v", public, m, err)
	}
	if _, ok := s.Get("anything"); ok || s.Known("anything") {
		t.Error("a worker's own name became public")
	}
}

func TestNewSetErrorsNameTheFlag(t *testing.T) {
	for _, paths := range [][]string{{"/no/such/folder"}, {"x=/no/such/folder"}} {
		_, err := NewSet(Options{Paths: paths})
		if err == nil || !strings.HasPrefix(err.Error(), "--model-path ") || !strings.Contains(err.Error(), "/no/such/folder") {
			t.Errorf("%v: %v", paths, err)
		}
	}
}

func TestNameKnownBeforeItsWorker(t *testing.T) {
	s := newSet(t, Options{ServedNames: []string{"own=public"}})
	if _, ok := s.Get("public"); ok || !s.Known("public") || !slices.Equal(s.Names(), []string{"public"}) {
		t.Error("a configured name must be known and not loaded")
	}
	sim, err := filepath.Abs(simFolder)
	if err != nil {
		t.Fatal(err)
	}
	if public, _, err := s.Resolve("own", sim); err != nil || public != "public" {
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
		public, m, err := s.Resolve("tiny", sim)
		if err != nil || public != "tiny" || m.Name != "tiny" {
			t.Fatal(public, m, err)
		}
		if _, again, err := s.Resolve("tiny", sim); err != nil || again != m {
			t.Error("the same model came out as another", err)
		}
		// On another machine the same model lies elsewhere.
		if _, again, err := s.Resolve("tiny", "/elsewhere/tiny.gguf"); err != nil || again != m {
			t.Error(err)
		}
	})
	t.Run("the name is the path", func(t *testing.T) {
		s := newSet(t, Options{})
		if public, _, err := s.Resolve(sim, ""); err != nil || public != sim {
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
			_, _, err := s.Resolve("tiny", hint)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--model-path tiny=PATH") {
				t.Errorf("%q: %v", hint, err)
			}
		}
	})
	t.Run("joined with equal tokenizers", func(t *testing.T) {
		s := newSet(t, Options{ServedNames: []string{"m"}})
		if _, _, err := s.Resolve("m-fp8", sim); err != nil {
			t.Fatal(err)
		}
		if public, _, err := s.Resolve("m-awq", same); err != nil || public != "m" {
			t.Error(public, err)
		}
	})
	t.Run("joined with other tokenizers", func(t *testing.T) {
		s := newSet(t, Options{ServedNames: []string{"m"}})
		if _, _, err := s.Resolve("m-fp8", sim); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Resolve("m-awq", other)
		if err == nil {
			t.Fatal("joined")
		}
		for _, want := range []string{`"m-fp8"`, `"m-awq"`, sim, other, "--served-model-name"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q lacks %q", err, want)
			}
		}
	})
	t.Run("joined unseen", func(t *testing.T) {
		s := newSet(t, Options{ServedNames: []string{"m"}})
		if _, _, err := s.Resolve("m-fp8", sim); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Resolve("m-awq", "/elsewhere")
		if err == nil || !strings.Contains(err.Error(), `"m-fp8"`) || !strings.Contains(err.Error(), `"m-awq"`) {
			t.Error(err)
		}
	})
	t.Run("a failure is not for ever", func(t *testing.T) {
		dir := folderWith(t, map[string]string{tokenizerFile: ""})
		s := newSet(t, Options{})
		if _, _, err := s.Resolve("m", dir); err == nil {
			t.Fatal("loaded without a tokenizer")
		}
		writeFolder(t, dir, nil)
		if _, _, err := s.Resolve("m", dir); err != nil {
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
			_, models[i], _ = s.Resolve("m", sim)
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
