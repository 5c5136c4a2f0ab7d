package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/sim"
	"baton/model"
)

func TestAttachAdapters(t *testing.T) {
	dir := modelFolder(t)
	base := map[string]any{"id": "base", "owned_by": "vllm", "root": dir, "max_model_len": 256}
	elsewhere := map[string]any{"id": "base", "owned_by": "vllm", "root": "/no/such/model", "max_model_len": 256}
	for name, test := range map[string]struct {
		models []map[string]any
		opts   model.Options
		base   string
	}{
		"parent by name":         {[]map[string]any{base, adapter("base")}, model.Options{}, "base"},
		"before its parent":      {[]map[string]any{adapter("base"), base}, model.Options{}, "base"},
		"parent by files":        {[]map[string]any{base, adapter(dir)}, model.Options{}, "base"},
		"parent by another name": {[]map[string]any{base, adapter("org/base-of-the-author")}, model.Options{}, "base"},
		"files of the base":      {[]map[string]any{elsewhere, adapter("base")}, model.Options{Paths: map[string]string{"base": dir}}, "base"},
		"renamed base":           {[]map[string]any{base, adapter("base")}, model.Options{ServedNames: map[string]string{"base": "b"}}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			w, names, log, err := attachTo(t, listing(test.models...), test.opts)
			if err != nil {
				t.Fatal(err)
			}
			if len(w.Models) != 2 || w.Models[0].Name != test.base || w.Models[0].Base != "" ||
				w.Models[1].Name != "adapter" || w.Models[1].Own != "adapter" || w.Models[1].Base != test.base || w.Models[1].ContextLength != 256 || len(names) != 2 {
				t.Errorf("models %+v, names %q", w.Models, names)
			}
			if strings.Contains(log, "same tokenizer") || strings.Contains(log, "WARN") {
				t.Errorf("an adapter is taken for its base model: %s", log)
			}
		})
	}
}

// adapter is an adapter as a server lists it. Its folder is not here.
func adapter(parent string) map[string]any {
	return map[string]any{"id": "adapter", "owned_by": "vllm", "root": "/no/such/adapter", "parent": parent}
}

// A name for all models cannot be that of an adapter too.
func TestAdapterNeedsANameOfItsOwn(t *testing.T) {
	base := map[string]any{"id": "base", "owned_by": "vllm", "root": modelFolder(t)}
	w, _, log, err := attachTo(t, listing(adapter("base"), base), model.Options{ServedNames: map[string]string{"": "m"}})
	if err != nil || len(w.Models) != 1 || w.Models[0].Own != "base" || !strings.Contains(log, "--served-model-name adapter=NAME") {
		t.Errorf("%+v, %v, %s", w, err, log)
	}
}

func TestAttachBoundsTheAdaptersOfAWorker(t *testing.T) {
	models := []map[string]any{{"id": "base", "owned_by": "vllm", "root": modelFolder(t)}}
	for i := range maxAdaptersPerWorker + 3 {
		models = append(models, map[string]any{"id": fmt.Sprint("a", i), "owned_by": "vllm", "parent": "base"})
	}
	w, _, log, err := attachTo(t, listing(models...), model.Options{})
	if err != nil || len(w.Models) != 1+maxAdaptersPerWorker || !strings.Contains(log, "259, the limit is 256") {
		t.Errorf("%v, %s", err, log)
	}
}

// The worker's own chat template is compared where it tells it.
func TestAttachComparesTemplates(t *testing.T) {
	dir := modelFolder(t)
	same, err := model.Load("m", dir)
	if err != nil {
		t.Fatal(err)
	}
	source := same.Template.Source()
	for name, test := range map[string]struct{ template, want string }{
		"the same":          {source, ""},
		"with other ends":   {"\n" + strings.ReplaceAll(source, "\n", "\r\n") + "\n", ""},
		"it does not say":   {"", ""},
		"another":           {"{{ messages[0].content }}", "differ from line 1 on"},
		"one line more":     {source + "\n{{ 1 }}", fmt.Sprintf("differ from line %d on", 2+strings.Count(strings.TrimSpace(source), "\n"))},
		"one letter at all": {source + "!", "differ from line "},
	} {
		err := compareTemplates(foundModel{public: "m", template: test.template, model: same})
		if got := fmt.Sprint(err); (err != nil) != (test.want != "") || !strings.Contains(got, test.want) || err != nil && !strings.Contains(got, dir) {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}

	// llama.cpp tells it, and the warning says which worker and which files.
	worker := sim.NewServer(sim.Config{Kind: sim.KindLlamaCPP})
	changed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/props" {
			worker.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		worker.ServeHTTP(answer, r)
		w.Write([]byte(strings.Replace(answer.Body.String(), `"chat_template":"`, `"chat_template":"{{ 1 }}`, 1)))
	})
	for h, warns := range map[*http.Handler]bool{ptr[http.Handler](worker): false, ptr[http.Handler](changed): true} {
		w, _, log, err := attachTo(t, *h, model.Options{Paths: map[string]string{"": dir}})
		if err != nil || len(w.Models) != 1 || strings.Contains(log, "the chat template of the worker is not") != warns || warns && (!strings.Contains(log, "worker=w:1") || !strings.Contains(log, dir)) {
			t.Errorf("%v, %s", err, log)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func TestBaseOf(t *testing.T) {
	if _, ok := baseOf(engine.ModelInfo{ID: "a", Parent: "b"}, []engine.ModelInfo{{ID: "a", Parent: "b"}}); ok {
		t.Error("an adapter is its own base")
	}
}
