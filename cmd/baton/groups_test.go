package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/llamacpp"
	"baton/engine/vllm"
	"baton/model"
)

// newTestGroups returns groups, and what they log.
func newTestGroups() (*groups, *bytes.Buffer) {
	var out bytes.Buffer
	return newGroups(slog.New(slog.NewTextHandler(&out, nil))), &out
}

func testModel(t *testing.T) *model.Model {
	t.Helper()
	m, err := model.Load("a", modelFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var (
	vllmClient  engine.Client = vllm.New(nil)
	llamaClient engine.Client = llamacpp.New(nil, llamacpp.Options{})
)

// serves makes a worker serve the models, all of which it must be let.
func serves(t *testing.T, g *groups, workerID string, client engine.Client, found ...foundModel) {
	t.Helper()
	if in, out := g.set(workerID, client, found); len(in) != len(found) || len(out) > 0 {
		t.Fatalf("%s: in are %+v, out %v", workerID, in, out)
	}
}

func TestGroupsNameTheFlagThatJoins(t *testing.T) {
	m := testModel(t)
	g, out := newTestGroups()
	awq, fp8 := foundModel{public: "m-awq", own: "m-awq", model: m}, foundModel{public: "m-fp8", own: "m-fp8", model: m}
	serves(t, g, "w:1", vllmClient, awq)
	serves(t, g, "w:2", vllmClient, fp8)
	serves(t, g, "w:3", vllmClient, fp8)
	serves(t, g, "w:3", vllmClient, fp8) // it came back
	if n := strings.Count(out.String(), "same tokenizer"); n != 1 {
		t.Errorf("%d hints: %s", n, out.String())
	}
	if want := `--served-model-name 'm-awq=m-awq' --served-model-name 'm-fp8=m-awq'`; !strings.Contains(out.String(), want) {
		t.Errorf("no %s in %s", want, out.String())
	}
	if hints := g.hints(); len(hints) != 1 || strings.Join(hints[0].Models, " ") != "m-awq m-fp8" || !strings.Contains(out.String(), hints[0].Flags) {
		t.Errorf("hints %+v", hints)
	}
	serves(t, g, "w:1", vllmClient, awq, foundModel{public: "alias", own: "alias", model: m})
	if strings.Contains(out.String(), "alias=") && strings.Contains(out.String(), "'m-awq=alias'") {
		t.Errorf("two names that one worker has are taken for two models: %s", out.String())
	}
	if n := strings.Count(out.String(), "model has a worker"); n != 4 {
		t.Errorf("%d lines for four: %s", n, out.String())
	}
	serves(t, g, "w:1", vllmClient, awq)
	if n := strings.Count(out.String(), `msg="model has no worker any more" model=alias`); n != 1 {
		t.Errorf("%d lines for what w:1 no longer serves: %s", n, out.String())
	}
}

func TestHintsAreBounded(t *testing.T) {
	m := testModel(t)
	g, _ := newTestGroups()
	for i := range 10 {
		name := fmt.Sprint("m", i)
		serves(t, g, name+":1", vllmClient, foundModel{public: name, own: name, model: m}, foundModel{public: "a" + name, own: "a", base: name, model: m})
	}
	if n := len(g.hints()); n != maxHints {
		t.Errorf("%d hints", n)
	}
}

// The start of the log tells the groups, and what their workers differ in; later only
// what changes is told.
func TestGroupsAreShown(t *testing.T) {
	m := testModel(t)
	g, out := newTestGroups()
	g.show() // nobody is there yet
	serves(t, g, "a:1", vllmClient, foundModel{public: "m", own: "m", context: 4096, model: m}, foundModel{public: "tuned", own: "tuned", base: "m", model: m})
	serves(t, g, "b:1", vllmClient, foundModel{public: "m", own: "m", context: 4096, model: m})
	out.Reset()
	g.show()
	for _, want := range []string{
		`msg="answers of the model can move between its workers" model=m workers="[a:1 b:1]" tokenizer_digest=` + m.Digest().String(),
		`msg="the model has one worker so far, and its answers cannot move" model=tuned workers=[a:1] tokenizer_digest=` + m.Digest().String() + ` adapter_of=m`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d lines for two groups of equal workers: %s", n, out.String())
	}
	out.Reset()
	for range 2 {
		g.show()
		serves(t, g, "c:1", llamaClient, foundModel{public: "m", own: "m", context: 2048, model: m})
	}
	for _, want := range []string{
		"differ; what is longer", "model=m smallest=2048 largest=4096",
		`kinds="[llamacpp vllm]" parameters="[repetition_penalty presence_penalty`,
		`kinds="[llamacpp vllm]" parameters="[priority cache_salt guided_regex structural_tag]"`,
	} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("not once %s in %s", want, out.String())
		}
	}
	out.Reset()
	for range 2 {
		serves(t, g, "b:1", vllmClient, foundModel{public: "m", own: "m", context: 4096, model: m}, foundModel{public: "tuned", own: "tuned", base: "m", model: m})
	}
	if n := strings.Count(out.String(), `msg="answers of the model can move between its workers" model=tuned workers="[a:1 b:1]"`); n != 1 {
		t.Errorf("the second worker of a model is told %d times: %s", n, out.String())
	}
}

func TestNameOfTwoModels(t *testing.T) {
	m := testModel(t)
	g, _ := newTestGroups()
	plain, tuned, other := foundModel{public: "x", own: "x", model: m}, foundModel{public: "x", own: "x", base: "m", model: m}, foundModel{public: "x", own: "x", base: "n", model: m}
	serves(t, g, "a:1", vllmClient, tuned)
	serves(t, g, "b:1", vllmClient, tuned)
	for _, f := range []foundModel{plain, other} {
		in, out := g.set("c:1", vllmClient, []foundModel{f, {public: "m", own: "m", model: m}})
		if len(in) != 1 || in[0].public != "m" || len(out) != 1 || !strings.Contains(out[0].Error(), `a LoRA adapter of "m" on worker a:1`) || !strings.Contains(out[0].Error(), "--served-model-name x=NAME") {
			t.Errorf("in are %+v, out %v", in, out)
		}
	}
	// Once nobody else has it, it is what it now is.
	g.forget("a:1")
	serves(t, g, "b:1", vllmClient, other)
	serves(t, g, "c:1", vllmClient, other)
}

func TestNiceName(t *testing.T) {
	for name, want := range map[string]string{"Qwen/Qwen3": "Qwen/Qwen3", "/models/x-q4.gguf": "x-q4", `C:\models\x.gguf`: "x", "x.gguf": "x"} {
		if got := niceName(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
