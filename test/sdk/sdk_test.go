// Package sdk asks with the SDKs and agent frameworks that people use for
// OpenAI's API, through migrations: what each of them makes of an answer whose
// worker died must equal what it makes of the undisturbed one.
//
// It runs with BATON_SDK=1, which installs the pinned SDKs on first use: Python 3
// with pip, Node 20 or newer and npm must be there. The programs in python, node
// and golang read what to ask from $JOB and print what their SDK showed them.
package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/engine/sim"
	"baton/test/harness"
)

// An answer is what a program printed for one case: the fields that its SDK has,
// or "error".
type answer map[string]any

// A job is what a program is told to ask.
type job struct {
	Model   string   `json:"model"`
	Targets []target `json:"targets"`
}

type target struct {
	URL   string            `json:"url"`
	Cases map[string]string `json:"cases"` // what to ask, by the names of the cases
}

// programs are the SDKs, and the cases that each has. A case with a dot is a
// variant of the one before the dot, as with another provider.
var programs = []struct {
	name    string
	command func(*testing.T) []string
	cases   string
}{
	{"openai-python", python("openai_sdk.py"), "text whole choices logprobs schema schema_streamed"},
	{"openai-node", node("openai.mjs"), "text whole choices logprobs schema schema_streamed"},
	{"openai-go", golang, "text whole choices logprobs schema schema_streamed"},
	{"vercel-ai", node("vercel.mjs"), "text whole text.openai logprobs schema schema_streamed"},
	{"langchain-python", python("langchain_sdk.py"), "text whole choices logprobs schema schema_streamed"},
	{"langchain-js", node("langchain.mjs"), "text whole choices logprobs schema schema_streamed"},
	{"agents-python", python("agents_sdk.py"), "text whole schema schema_streamed"},
	{"agents-js", node("agents.mjs"), "text whole schema schema_streamed"},
}

// A fleet is a frontend with workers that fail in some way.
type fleet struct {
	name   string
	kind   string
	faults []string
	url    string
}

// The first two attempts of each request die: after some tokens, or before them.
var (
	late  = []string{"cut,request=-m00-,after=9", "end,request=-m01-,after=7"}
	early = []string{"cut,request=-m00-,after=0", "end,request=-m01-,after=0"}
)

// A testCase is something that programs ask for.
type testCase struct {
	on    []string                        // the fleets that may be asked
	moves int                             // on one that fails
	check func(*testing.T, answer)        // of the undisturbed answer
	want  func(*testing.T, string) answer // the undisturbed answer at this URL, as the plain API has it; may have more fields
}

const question = "Tell me about the sea."

var cases = map[string]testCase{
	"text":     {on: []string{"vllm", "llamacpp"}, moves: 2, want: plainText},
	"whole":    {on: []string{"vllm", "llamacpp"}, moves: 2, want: plainText},
	"choices":  {on: []string{"vllm"}, moves: 4, want: plainChoices}, // llama.cpp draws anew after a move
	"logprobs": {on: []string{"vllm", "llamacpp"}, moves: 2, want: plainLogprobs},
	"schema":   {on: []string{"vllm", "llamacpp"}, moves: 2, check: isReport},
	// What was streamed of a constrained answer cannot be carried on.
	"schema_streamed": {on: []string{"early"}, moves: 2, check: isReport},
}

func TestSDKsAskThroughMigrations(t *testing.T) {
	if os.Getenv("BATON_SDK") == "" {
		t.Skip("BATON_SDK is not set")
	}
	calm := start(t, fleet{name: "calm", kind: "vllm"})
	failing := []fleet{
		start(t, fleet{name: "vllm", kind: "vllm", faults: late}),
		start(t, fleet{name: "llamacpp", kind: "llamacpp", faults: late}),
		start(t, fleet{name: "early", kind: "vllm", faults: early}),
	}
	want := map[string]answer{}
	for name, c := range cases {
		if c.want != nil {
			want[name] = c.want(t, calm.url)
		}
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			command := p.command(t)
			j := job{Model: sim.DefaultModelName, Targets: []target{calm.target(p.cases)}}
			before := []float64{}
			for _, f := range failing {
				j.Targets = append(j.Targets, f.target(p.cases))
				before = append(before, f.moves(t))
			}
			got := ask(t, j, command)
			for name, a := range got[0] {
				c := cases[base(name)]
				if a["error"] != nil {
					t.Errorf("%s, undisturbed: %v", name, a["error"])
					continue
				}
				if len(a) == 0 || c.want != nil && !within(a, want[base(name)]) {
					t.Errorf("%s, undisturbed:\n got %v\nwant %v", name, a, want[base(name)])
				}
				if c.check != nil {
					c.check(t, a)
				}
			}
			for i, f := range failing {
				moves := 0
				for name, a := range got[1+i] {
					moves += cases[base(name)].moves
					if undisturbed := got[0][name]; !reflect.DeepEqual(a, undisturbed) {
						t.Errorf("%s on %s:\n got %v\nwant %v", name, f.name, a, undisturbed)
					}
				}
				if n := f.moves(t) - before[i]; n != float64(moves) {
					t.Errorf("%s: %v migrations, want %d", f.name, n, moves)
				}
			}
		})
	}
}

// start starts a frontend with two simulated workers.
func start(t *testing.T, f fleet) fleet {
	t.Helper()
	dir := t.TempDir()
	if err := sim.WriteModel(dir); err != nil {
		t.Fatal(err)
	}
	args := []string{"--model-path", dir, "--migration-limit", "3", "--inhibit-duration", "100ms"}
	for range 2 {
		port := harness.FreePort(t)
		worker := []string{"sim", "--kind", f.kind, "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--gap", "1ms", "--mean-length", "60"}
		for _, fault := range f.faults {
			worker = append(worker, "--fault", fault)
		}
		harness.Start(t, harness.Binary(t), worker...)
		url := fmt.Sprintf("http://127.0.0.1:%d", port)
		harness.WaitOK(t, url+"/health", 20*time.Second)
		args = append(args, "--worker", url)
	}
	f.url, _ = harness.Serve(t, args...)
	return f
}

// target is what of these cases the fleet is to be asked: an undisturbed one all.
func (f fleet) target(names string) target {
	t := target{URL: f.url, Cases: map[string]string{}}
	for name := range strings.FieldsSeq(names) {
		if c := cases[base(name)]; len(f.faults) == 0 || slices.Contains(c.on, f.name) {
			t.Cases[name] = question
		}
	}
	return t
}

func (f fleet) moves(t *testing.T) float64 {
	sum := 0.0
	for _, kind := range []string{"ongoing_request", "new_request"} {
		sum += harness.Metric(t, f.url, "dynamo_frontend_model_migration_total", map[string]string{"model": sim.DefaultModelName, "migration_type": kind})
	}
	return sum
}

// base is the case that name is a variant of.
func base(name string) string {
	name, _, _ = strings.Cut(name, ".")
	if _, ok := cases[name]; !ok {
		panic("there is no case " + name)
	}
	return name
}

// within reports whether all that an SDK shows is as wanted.
func within(got, want answer) bool {
	for key, value := range got {
		if !reflect.DeepEqual(value, want[key]) {
			return false
		}
	}
	return true
}

// ask runs a program and returns its answers by target and case.
func ask(t *testing.T, j job, command []string) []map[string]answer {
	t.Helper()
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, "", []string{"JOB=" + string(text)}, command...)
	var got []map[string]answer
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(j.Targets) {
		t.Fatalf("%d answers, want %d (%v): %s", len(got), len(j.Targets), err, out)
	}
	for i, target := range j.Targets {
		if len(got[i]) != len(target.Cases) {
			t.Fatalf("%d answers of %d", len(got[i]), len(target.Cases))
		}
	}
	return got
}

// commandTimeout bounds an installation, and a program.
const commandTimeout = 3 * time.Minute

func run(t *testing.T, dir string, env []string, command ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", command, err, out, stderr.Bytes())
	}
	return out
}

func path(elements ...string) string {
	return filepath.Join(append([]string{harness.Root(), "test", "sdk"}, elements...)...)
}
