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
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
	URL   string                  `json:"url"`
	Cases map[string]instructions `json:"cases"` // by name
}

type instructions struct {
	Ask      string `json:"ask"` // how: the program's name for it
	Question string `json:"question"`
}

// programs are the SDKs, and the cases that each has. A case with a dot is a
// variant of the one before the dot, as with another provider.
var programs = []struct {
	name    string
	command func(*testing.T) []string
	cases   string
}{
	{"openai-python", python("openai_sdk.py"),
		answers + " choices logprobs reasoning " + calls + on("responses", answers+" logprobs reasoning loop_stored "+calls)},
	{"openai-node", node("openai.mjs"),
		answers + " choices logprobs reasoning " + calls + on("responses", answers+" logprobs reasoning loop_stored "+calls)},
	{"openai-go", golang,
		answers + " choices logprobs reasoning " + calls + on("responses", "text whole schema schema_thought reasoning tools parallel required loop")},
	{"vercel-ai", node("vercel.mjs"), answers + " reasoning schema_or_tools " + calls +
		on("openai", answers+" logprobs tools") + on("responses", answers+" logprobs reasoning schema_or_tools loop_stored "+calls)},
	{"langchain-python", python("langchain_sdk.py"),
		answers + " choices logprobs " + calls + on("responses", answers+" reasoning loop_stored "+calls)}, // shows reasoning only of responses
	{"langchain-js", node("langchain.mjs"),
		// Of responses it does not say that a call is required.
		answers + " choices logprobs reasoning " + calls + on("responses", answers+" reasoning tools parallel named loop")},
	{"agents-python", python("agents_sdk.py"),
		agents + " reasoning" + on("responses", agents+" reasoning loop_stored")},
	{"agents-js", node("agents.mjs"),
		agents + on("responses", agents+" reasoning")}, // as LangChain in Python
}

// What most SDKs can ask for.
const (
	answers = "text whole schema schema_streamed schema_thought"
	calls   = "tools parallel required required_streamed named loop"
	agents  = answers + " schema_or_tools required named loop"
)

// on are the cases as their variants.
func on(variant, names string) string {
	list := ""
	for name := range strings.FieldsSeq(names) {
		list += " " + name + "." + variant
	}
	return list
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
	ask      string // the program's case; "" = the one with this name
	question string // "" = sea
	on       []string
	moves    float64                         // of each request, on the fleets that fail; 0 = 2
	want     func(*testing.T, string) answer // the undisturbed answer at this URL, as the plain API has it; may have more fields
	check    func(*testing.T, answer)        // of the undisturbed answer
}

const (
	sea     = "Tell me about the sea."
	thought = sea + " /think" // the simulated model thinks first
	results = "What do get_weather and get_time say?"
)

var (
	anyTime = []string{"vllm", "llamacpp"}
	// What was streamed of a constrained answer cannot be carried on.
	beforeFirstToken = []string{"early"}
)

// The model may think before a constrained answer, so that this is asked for in parts:
// a first token, the rest of the thought if that opens one, and the answer. The first
// is too short to be cut in the middle.
var cases = map[string]testCase{
	"text":              {on: anyTime, want: plainText},
	"whole":             {on: anyTime, want: plainText},
	"choices":           {on: []string{"vllm"}, moves: 4, want: plainChoices}, // llama.cpp draws anew after a move
	"logprobs":          {on: anyTime, want: plainLogprobs},
	"reasoning":         {question: thought, on: anyTime, want: plainReasoning},
	"schema":            {on: anyTime, check: isReport},
	"schema_streamed":   {on: beforeFirstToken, moves: 4, check: isReport},
	"schema_thought":    {ask: "schema", question: thought, on: anyTime, moves: 4, check: isReport},
	"schema_or_tools":   {on: anyTime, check: isReport},
	"tools":             {question: "Ask get_weather.", on: anyTime, check: areCalls("get_weather")},
	"parallel":          {ask: "tools", question: "Ask get_time, get_weather and again get_time. /think", on: anyTime, check: areCalls("get_time", "get_weather", "get_time")},
	"required":          {on: anyTime, check: areCalls()},
	"required_streamed": {on: beforeFirstToken, moves: 4, check: areCalls()},
	"named":             {on: anyTime, check: areCalls("get_time")},
	"loop":              {question: results, on: anyTime, check: answeredCalls("get_weather", "get_time")},
	"loop_stored":       {question: results, on: anyTime, check: answeredCalls("get_weather", "get_time")},
}

// movesOf is how often the requests of a case move on a fleet that fails.
func movesOf(c testCase, a answer) float64 {
	requests, ok := a["requests"].(float64)
	if !ok {
		requests = 1
	}
	return requests * cmp.Or(c.moves, 2)
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
				if len(a) == 0 {
					t.Errorf("%s, undisturbed, shows nothing", name)
				}
				if c.want != nil {
					if differs := difference(a, shown(want[base(name)], a)); differs != "" {
						t.Errorf("%s, undisturbed: %s", name, differs)
					}
				}
				if c.check != nil {
					t.Run(name, func(t *testing.T) { c.check(t, a) })
				}
			}
			for i, f := range failing {
				moves := 0.0
				for name, a := range got[1+i] {
					moves += movesOf(cases[base(name)], got[0][name])
					if differs := difference(a, got[0][name]); differs != "" {
						t.Errorf("%s on %s: %s", name, f.name, differs)
					}
				}
				if n := f.moves(t) - before[i]; n != moves {
					t.Errorf("%s: %v migrations, want %v", f.name, n, moves)
				}
			}
		})
	}
}

// start starts a frontend with three simulated workers.
func start(t *testing.T, f fleet) fleet {
	t.Helper()
	dir := t.TempDir()
	if err := sim.WriteModel(dir); err != nil {
		t.Fatal(err)
	}
	args := []string{"--model-path", dir, "--migration-limit", "6", "--inhibit-duration", "1ms"}
	for range 3 { // two die in each answer, and one can always be asked at once
		port := harness.FreePort(t)
		worker := []string{"sim", "--kind", f.kind, "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--gap", "1ms", "--mean-length", "120"}
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
	t := target{URL: f.url, Cases: map[string]instructions{}}
	for name := range strings.FieldsSeq(names) {
		if c := cases[base(name)]; len(f.faults) == 0 || slices.Contains(c.on, f.name) {
			_, variant, _ := strings.Cut(name, ".")
			ask := cmp.Or(c.ask, base(name))
			if variant != "" {
				ask += "." + variant
			}
			t.Cases[name] = instructions{ask, cmp.Or(c.question, sea)}
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

// shown is what of a an SDK has fields for, as it has in like.
func shown(a, like answer) answer {
	some := answer{}
	for key := range like {
		if value, ok := a[key]; ok {
			some[key] = value
		}
	}
	return some
}

// difference says which fields are not as wanted; "" = none.
func difference(got, want answer) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if value, ok := want[key]; !ok || !reflect.DeepEqual(got[key], value) {
			fmt.Fprintf(&b, "\n%s: got %v\n%s want %v", key, got[key], strings.Repeat(" ", len(key)), value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[key]; !ok {
			fmt.Fprintf(&b, "\n%s: missing, want %v", key, want[key])
		}
	}
	return b.String()
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
