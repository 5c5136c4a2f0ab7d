// Package scripts tests the built binary from the outside: testdata holds one
// story per file, in the language of testscript and the commands below. All
// processes are real ones, also those that are killed.
package scripts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"baton/engine/sim"
	"baton/test/harness"
)

// patience bounds every wait. It is far more than anything here takes, because
// the machine may be busy.
const patience = 30 * time.Second

func TestScripts(t *testing.T) {
	dir := filepath.Dir(harness.Binary(t))
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", dir+string(os.PathListSeparator)+env.Getenv("PATH"))
			env.Setenv("DYN_ADMIN_ADDRESS", "off") // scripts run side by side; each may set its own
			env.Values[answersKey{}] = map[string]*answer{}
			return sim.WriteModel(filepath.Join(env.WorkDir, "sim-model"))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"freeport": freePort,
			"get":      get,
			"ask":      ask,
			"answer":   takeAnswer,
			"killbusy": killBusy,
			"signal":   sendSignal,
			"ended":    ended,
			"await":    await,
			"occupy":   occupy,
			"certs":    makeCerts,
			"knock":    knock,
			"guard":    guard,
			"tlsfront": tlsFront,
		},
		Condition: func(cond string) (bool, error) {
			if cond == "windows" {
				return os.PathSeparator == '\\', nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// freePort NAME... puts a port that is free now into each variable.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		ts.Check(err)
		defer l.Close() // all are open until the last is chosen, so that they differ
		ts.Setenv(name, strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
	}
}

// occupy NAME listens on a port until the end of the script.
func occupy(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

// get STATUS URL [REGEXP] polls until the answer has the status and its body
// matches; "refused" is a status. "get -now" looks once.
func get(ts *testscript.TestScript, neg bool, args []string) {
	deadline := time.Now().Add(patience)
	if args[0] == "-now" {
		args, deadline = args[1:], time.Now()
	}
	want := regexp.MustCompile("")
	if len(args) == 3 {
		want = regexp.MustCompile(args[2])
	}
	for {
		status, body := fetch(args[1])
		if status == args[0] && want.MatchString(body) {
			return
		}
		if !time.Now().Before(deadline) {
			ts.Fatalf("GET %s: status %s (want %s), body %q", args[1], status, args[0], body)
		}
		time.Sleep(20 * time.Millisecond) // polls a real process
	}
}

func fetch(url string) (status, body string) {
	client := http.Client{Timeout: 5 * time.Second}
	resp, err := client.Get(url)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "refused", ""
	}
	if err != nil {
		return err.Error(), ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return strconv.Itoa(resp.StatusCode), string(b)
}

type answersKey struct{}

// An answer is a streamed reply that may still be coming.
type answer struct {
	done   chan struct{}
	result *harness.Answer
	err    error
}

// ask NAME [-endless] URL AFTER PROMPT streams a chat answer of at most 60 tokens
// (or many thousand) in the background and goes on as soon as AFTER pieces of
// text have come.
func ask(ts *testscript.TestScript, neg bool, args []string) {
	limits := `"max_tokens":60`
	if len(args) > 1 && args[1] == "-endless" {
		limits = `"max_tokens":8000,"ignore_eos":true`
		args = slices.Delete(args, 1, 2)
	}
	if len(args) != 4 {
		ts.Fatalf("usage: ask NAME [-endless] URL AFTER PROMPT")
	}
	after, err := strconv.Atoi(args[2])
	ts.Check(err)
	a := &answer{done: make(chan struct{})}
	ts.Value(answersKey{}).(map[string]*answer)[args[0]] = a
	reached := make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	ts.Defer(func() { cancel(); <-a.done })
	go func() {
		defer close(a.done)
		body := fmt.Sprintf(`{"model":"sim","messages":[{"role":"user","content":%q}],%s,"stream":true,"stream_options":{"include_usage":true}}`, args[3], limits)
		a.result, a.err = harness.Stream(ctx, args[1], "/v1/chat/completions", body, func(n int) {
			if n == after {
				close(reached)
			}
		})
	}()
	if after == 0 {
		return
	}
	select {
	case <-reached:
	case <-a.done:
		if a.err != nil {
			ts.Fatalf("the answer broke off: %v", a.err)
		}
		ts.Fatalf("the answer was over after %d chunks: %+v", a.result.Chunks, a.result)
	}
}

// answer NAME FILE waits for an answer and writes what a client sees of it.
func takeAnswer(ts *testscript.TestScript, neg bool, args []string) {
	a := ts.Value(answersKey{}).(map[string]*answer)[args[0]]
	<-a.done
	ts.Check(a.err)
	r := a.result
	out := fmt.Sprintf("status %d\n%s\n", r.Status, r.Text)
	if r.Finish != "" {
		out += "finish " + r.Finish + "\n"
	}
	if r.Usage != nil {
		out += fmt.Sprintf("usage %d + %d\n", r.Usage.PromptTokens, r.Usage.CompletionTokens)
	}
	if r.Error != nil {
		out += "error " + r.Error.Message + "\n"
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(out), 0o644))
}

// generating matches the metrics of a worker that runs a request.
var generating = regexp.MustCompile(`(?m)^vllm:num_requests_running(\{.*\})? [1-9]`)

// killbusy PORT... sends SIGKILL to the one of the workers at these ports that
// is generating.
func killBusy(ts *testscript.TestScript, neg bool, args []string) {
	for _, port := range args {
		if _, body := fetch("http://127.0.0.1:" + port + "/metrics"); generating.MatchString(body) {
			ts.Check(background(ts, port).Process.Kill())
			return
		}
	}
	ts.Fatalf("none of the workers %v is generating", args)
}

// background is the background command that has this argument.
func background(ts *testscript.TestScript, arg string) *exec.Cmd {
	for _, cmd := range ts.BackgroundCmds() {
		if slices.Contains(cmd.Args, arg) {
			return cmd
		}
	}
	ts.Fatalf("no background command has the argument %s", arg)
	return nil
}

// signal TERM|INT|KILL ARG sends a signal to the background command with ARG.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	s := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt, "KILL": os.Kill}[args[0]]
	ts.Check(background(ts, args[1]).Process.Signal(s))
}

// ended FILE fails if one of the processes is still there that the demo's output
// in FILE ("stdout" = of the last command) names.
func ended(ts *testscript.TestScript, neg bool, args []string) {
	pids := regexp.MustCompile(`process (\d+)`).FindAllStringSubmatch(ts.ReadFile(args[0]), -1)
	if len(pids) < 3 {
		ts.Fatalf("%s names %d processes, want two workers and a frontend at least", args[0], len(pids))
	}
	for _, m := range pids {
		pid, err := strconv.Atoi(m[1])
		ts.Check(err)
		if p, err := os.FindProcess(pid); err == nil && p.Signal(syscall.Signal(0)) == nil {
			ts.Fatalf("process %d outlives the demo", pid)
		}
	}
}

// await FILE REGEXP polls until the file matches.
func await(ts *testscript.TestScript, neg bool, args []string) {
	want := regexp.MustCompile(args[1])
	deadline := time.Now().Add(patience)
	for {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		if want.Match(text) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s does not match %s (%v): %s", args[0], args[1], err, text)
		}
		time.Sleep(20 * time.Millisecond) // polls a real process
	}
}
