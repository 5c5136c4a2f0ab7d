package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/engine/sim"
)

// probed runs `baton probe` against a worker that h plays.
func probed(t *testing.T, h http.Handler, flags ...string) (r probeReport, problem string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	var out bytes.Buffer
	if err := runProbe(append(flags, "--json", s.URL), &out); err != nil {
		problem = err.Error()
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v in %s; %s", err, out.Bytes(), problem)
	}
	if r.Problem != problem || r.Usable != (problem == "") {
		t.Errorf("the report says %v, %q; the command %q", r.Usable, r.Problem, problem)
	}
	return r, problem
}

func TestProbe(t *testing.T) {
	dir := modelFolder(t)
	for _, test := range []struct {
		kind, generates string
		vocabulary      int
		lacking         []string
	}{
		{sim.KindVLLM, "/v1/completions", 0, []string{}},
		{sim.KindLlamaCPP, "/completion", sim.ModelVocabSize(), []string{"priority", "cache_salt", "guided_regex", "structural_tag"}},
	} {
		worker := sim.NewServer(sim.Config{Kind: test.kind, Model: "own", ContextLength: 512})
		r, problem := probed(t, worker, "--model-path", dir)
		if problem != "" || r.Kind != test.kind || r.Version == "" || !r.Ready || r.Loading || len(r.Models) != 1 {
			t.Fatalf("%s: %q, %+v", test.kind, problem, r)
		}
		lacking := []string{}
		for _, p := range r.Parameters {
			if p.Fidelity == "unsupported" {
				lacking = append(lacking, p.Parameter)
			}
		}
		if !slices.Equal(lacking, test.lacking) || len(r.Parameters) == 0 {
			t.Errorf("%s: parameters %+v", test.kind, r.Parameters)
		}
		m := r.Models[0]
		if m.ID != "own" || m.ContextLength != 512 || m.VocabSize != test.vocabulary || m.Files != dir || !m.Tokenizes || !m.TokenizerCompared || m.Token == nil || m.TookMS <= 0 {
			t.Errorf("%s: %+v", test.kind, m)
		}
		last := r.Requests[len(r.Requests)-1]
		if last.Method != "POST" || last.Path != test.generates || last.Status != 200 || last.TookMS <= 0 {
			t.Errorf("%s: the last request is %+v", test.kind, last)
		}
		// Without the files everything else is found out all the same.
		if r, problem := probed(t, worker); problem != "" || r.Models[0].Token == nil || r.Models[0].FilesProblem == "" || r.Models[0].TokenizerCompared {
			t.Errorf("%s without files: %q, %+v", test.kind, problem, r.Models)
		}
	}
}

// An adapter is generated with too, and has the files of its base.
func TestProbeAdapter(t *testing.T) {
	dir := modelFolder(t)
	worker := sim.NewServer(sim.Config{})
	asked := make(map[string]bool)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			listing(map[string]any{"id": "base", "owned_by": "vllm", "max_model_len": 64}, adapter("base")).ServeHTTP(w, r)
			return
		case "/v1/completions":
			body, _ := io.ReadAll(r.Body)
			var b struct{ Model string }
			_ = json.Unmarshal(body, &b)
			asked[b.Model] = true
			r.Body = io.NopCloser(bytes.NewReader(bytes.Replace(body, []byte(`"model":"`+b.Model), []byte(`"model":"sim`), 1)))
		}
		worker.ServeHTTP(w, r)
	})
	r, problem := probed(t, h, "--model-path", "base="+dir)
	if problem != "" || len(r.Models) != 2 || r.Models[1].Parent != "base" || r.Models[1].Files != dir || r.Models[1].Token == nil || !asked["base"] || !asked["adapter"] {
		t.Errorf("%q, %+v, asked %v", problem, r.Models, asked)
	}
}

func TestProbeSaysWhyNot(t *testing.T) {
	good := sim.NewServer(sim.Config{Kind: sim.KindLlamaCPP})
	textOnly := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/completions" {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"text\":\" Paris\",\"finish_reason\":null}]}\n\n")
			return
		}
		if r.URL.Path == "/health" {
			return
		}
		listing(map[string]any{"id": "m", "owned_by": "vllm", "max_model_len": 64}).ServeHTTP(w, r)
	})
	loading := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, http.StatusServiceUnavailable)
	})
	for _, test := range []struct {
		worker  http.Handler
		flags   []string
		want    string
		loading bool
	}{
		{good, []string{"--model-path", otherModelFolder(t)}, "it makes other tokens of a test text", false},
		{textOnly, nil, "text without token ids", false},
		{loading, nil, "still loading", true},
		{http.NotFoundHandler(), nil, "no engine that is known", false},
	} {
		r, problem := probed(t, test.worker, test.flags...)
		if !strings.Contains(problem, test.want) || r.Loading != test.loading || len(r.Requests) == 0 || strings.Contains(problem, "\n") {
			t.Errorf("%q, want %s; %+v", problem, test.want, r)
		}
	}

	for _, address := range []string{"http://127.0.0.1:1", "https://127.0.0.1:1"} {
		var out bytes.Buffer
		err := runProbe([]string{address}, &out)
		if err == nil || !strings.Contains(err.Error(), "not reachable at "+address) || !strings.Contains(out.String(), "no answer\ncurl -sS "+address+"/v1/models\n") {
			t.Errorf("%s: %v\n%s", address, err, out.String())
		}
	}
}

// The worker's key is given to it and shown to nobody, and every line is one that
// a shell and curl take, with the same outcome.
func TestProbeCurlLines(t *testing.T) {
	const key = "sk-worker-secret"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	worker := sim.NewServer(sim.Config{Kind: sim.KindLlamaCPP})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		worker.ServeHTTP(w, r)
	}))
	defer s.Close()
	var out bytes.Buffer
	if err := runProbe([]string{s.URL, "--worker-api-key-file", file, "--model-path", modelFolder(t)}, &out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), key) {
		t.Errorf("the key is shown:\n%s", out.String())
	}
	lines, told := 0, ""
	for line := range strings.Lines(out.String()) {
		if before, after, ok := strings.Cut(line, ": "); ok && strings.HasPrefix(before, "# ") {
			told, _, _ = strings.Cut(after, " ")
		}
		if !strings.HasPrefix(line, "curl ") {
			continue
		}
		lines++
		if len(line) > 2048 || !strings.Contains(line, `"Authorization: Bearer $KEY"`) {
			t.Errorf("%d bytes: %s", len(line), line)
		}
		if _, err := exec.LookPath("curl"); err != nil {
			continue
		}
		shell := exec.CommandContext(t.Context(), "sh", "-c", strings.TrimSuffix(line, "\n")+" --noproxy '*' -o /dev/null -w '%{http_code}'")
		shell.Env = append(os.Environ(), "KEY="+key)
		if status, err := shell.Output(); err != nil || string(status) != told {
			t.Errorf("%s, %v, and the probe %s: %s", status, err, told, line)
		}
	}
	if lines < 5 {
		t.Errorf("%d lines of curl:\n%s", lines, out.String())
	}
}

func TestQuoted(t *testing.T) {
	for word, want := range map[string]string{
		"http://h:1/v1/models": "http://h:1/v1/models", "a b": "'a b'", "don't": `'don'\''t'`, "$KEY": "'$KEY'", "~": "'~'", "[::1]": "'[::1]'",
	} {
		if got := quoted(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}
