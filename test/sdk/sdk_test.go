// Package sdk lets the official OpenAI SDKs stream through a migration.
//
// It runs with BATON_SDK=1, which installs the pinned SDKs on first use: Python
// and Node must be there. Each SDK is a program of its own that prints what it
// made of the answers.
package sdk

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"baton/engine/sim"
	"baton/test/harness"
)

// answers is what each SDK's program prints.
type answers struct {
	Streamed       string `json:"streamed"`
	StreamedFinish string `json:"streamed_finish"`
	StreamedTokens int    `json:"streamed_tokens"`
	Role           string `json:"role"`
	Whole          string `json:"whole"`
	WholeFinish    string `json:"whole_finish"`
	WholeTokens    int    `json:"whole_tokens"`
}

const question = "Tell me about the sea."

// fleet starts a frontend with two simulated workers, on which the first attempt
// of every request is cut after a few tokens if faulty.
func fleet(t *testing.T, kind string, faulty bool) string {
	t.Helper()
	dir := t.TempDir()
	if err := sim.WriteModel(dir); err != nil {
		t.Fatal(err)
	}
	args := []string{"--model-path", dir, "--migration-limit", "3", "--inhibit-duration", "100ms"}
	for range 2 {
		port := harness.FreePort(t)
		worker := []string{"sim", "--kind", kind, "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--model-name", "sim",
			"--style", "words", "--gap", "2ms", "--mean-length", "60"}
		if faulty {
			worker = append(worker, "--fault", "cut,request=-m00-,after=9", "--fault", "end,request=-m01-,after=7")
		}
		harness.Start(t, harness.Binary(t), worker...)
		url := fmt.Sprintf("http://127.0.0.1:%d", port)
		harness.WaitOK(t, url+"/health", 20*time.Second)
		args = append(args, "--worker", url)
	}
	url, _ := harness.Serve(t, args...)
	return url
}

// install prepares an SDK and returns the command that asks with it.
var install = map[string]func(t *testing.T, cache string) []string{
	"openai-python": func(t *testing.T, cache string) []string {
		// This one takes a minute or two, so it is kept between runs.
		requirements, err := os.ReadFile(path("python/requirements.txt"))
		if err != nil {
			t.Fatal(err)
		}
		if dir, err := os.UserCacheDir(); err == nil {
			cache = filepath.Join(dir, "baton")
		}
		venv := filepath.Join(cache, fmt.Sprintf("sdk-python-%x", sha256.Sum256(requirements))[:40])
		ready := filepath.Join(venv, ".ready")
		if _, err := os.Stat(ready); err != nil {
			run(t, "", nil, "python3", "-m", "venv", "--clear", venv)
			run(t, "", nil, filepath.Join(venv, "bin", "pip"), "install", "--quiet", "--no-input", "--disable-pip-version-check", "-r", path("python/requirements.txt"))
			if err := os.WriteFile(ready, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return []string{filepath.Join(venv, "bin", "python"), path("python/ask.py")}
	},
	"openai-node": func(t *testing.T, cache string) []string {
		dir := filepath.Join(cache, "node")
		if err := os.CopyFS(dir, os.DirFS(path("node"))); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		run(t, dir, nil, "npm", "ci", "--silent", "--no-audit", "--no-fund")
		return []string{"node", filepath.Join(dir, "ask.mjs")}
	},
	"openai-go": func(t *testing.T, cache string) []string {
		bin := filepath.Join(cache, "sdktest")
		run(t, path("golang"), nil, "go", "build", "-o", bin, ".")
		return []string{bin}
	},
}

func TestSDKsStreamThroughAMigration(t *testing.T) {
	if os.Getenv("BATON_SDK") == "" {
		t.Skip("BATON_SDK is not set")
	}
	whole, err := harness.Stream(t.Context(), fleet(t, "vllm", false), "/v1/chat/completions", fmt.Sprintf(
		`{"model":"sim","messages":[{"role":"user","content":%q}],"temperature":0,"max_completion_tokens":400,"stream":true,"stream_options":{"include_usage":true}}`, question), nil)
	if err != nil || whole.Error != nil || whole.Usage == nil {
		t.Fatal(err, whole)
	}
	want := answers{
		Streamed: whole.Text, StreamedFinish: whole.Finish, StreamedTokens: whole.Usage.CompletionTokens, Role: "assistant",
		Whole: whole.Text, WholeFinish: whole.Finish, WholeTokens: whole.Usage.CompletionTokens,
	}
	// Long enough for two cuts, and not ended by its budget, which
	// openai-python's helper takes for an error.
	if want.StreamedTokens < 30 || want.StreamedFinish != "stop" {
		t.Fatalf("the answer has %d tokens and ends with %q", want.StreamedTokens, want.StreamedFinish)
	}
	for name, prepare := range install {
		t.Run(name, func(t *testing.T) {
			command := prepare(t, t.TempDir())
			for _, kind := range []string{"vllm", "llamacpp"} {
				url := fleet(t, kind, true)
				out := run(t, "", []string{"BASE_URL=" + url, "MODEL=sim", "QUESTION=" + question}, command...)
				var got answers
				if err := json.Unmarshal(out, &got); err != nil {
					t.Fatalf("%v in %s", err, out)
				}
				if got != want {
					t.Errorf("%s:\n got %+v\nwant %+v", kind, got, want)
				}
				moves := harness.Metric(t, url, "dynamo_frontend_model_migration_total", map[string]string{"model": "sim", "migration_type": "ongoing_request"})
				if moves != 4 {
					t.Errorf("%s: %v migrations, want two for each of two requests", kind, moves)
				}
			}
		})
	}
}

func path(name string) string { return filepath.Join(harness.Root(), "test", "sdk", name) }

func run(t *testing.T, dir string, env []string, command ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
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
