package sim

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process runs a worker process within the test.
type process struct {
	url  string
	stop context.CancelFunc
	done chan error
}

func runProcess(t *testing.T, args ...string) *process {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	p := &process{stop: stop, done: make(chan error, 1)}
	go func() {
		p.done <- Run(ctx, args, in, io.Discard)
		in.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "http://127.0.0.1:") {
		t.Fatalf("first line %q, %v, %v", line, err, <-p.done)
	}
	p.url = strings.TrimSpace(line)
	go func() { _, _ = io.Copy(io.Discard, out) }()
	t.Cleanup(stop)
	return p
}

func (p *process) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("the process does not end")
		return nil
	}
}

func TestHelp(t *testing.T) {
	var help strings.Builder
	if err := Run(t.Context(), []string{"--help"}, io.Discard, &help); err != nil {
		t.Fatal(err)
	}
	for _, kind := range FaultKinds {
		if faultMeanings[kind] == "" || !strings.Contains(help.String(), "\n  "+string(kind)+" ") {
			t.Errorf("%s is not explained", kind)
		}
	}
	for _, want := range []string{"\n  --style STYLE\n", "(default words)\n", "\n  --gap DURATION\n      time between tokens (default 0)\n", "\n  --finish-alone\n"} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("no %q in %s", want, help.String())
		}
	}
}

func TestRunServesAndTakesFaults(t *testing.T) {
	p := runProcess(t, "--style", "hash", "--mean-length", "-1", "--fault", "cut,after=3,times=1", "--fault", `{"kind":"abort","after":2}`)
	whole, _ := Reference(Config{MeanLength: -1}, request(prompt, 8))
	if r := read(generate(t.Context(), http.DefaultClient, KindVLLM, p.url, prompt, 8)); !slices.Equal(r.ids, whole[:3]) || !errors.Is(r.err, io.ErrUnexpectedEOF) {
		t.Errorf("first: %v, %v", r.ids, r.err)
	}
	if r := read(generate(t.Context(), http.DefaultClient, KindVLLM, p.url, prompt, 8)); !slices.Equal(r.ids, whole[:2]) || r.finish != "abort" {
		t.Errorf("second: %v, %q", r.ids, r.finish)
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(p.url + "/health"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after the end: %v", err)
	}
}

func TestOnSigterm(t *testing.T) {
	for _, kind := range bothKinds {
		for _, how := range []string{onSigtermSilent, onSigtermCut, onSigtermDrain} {
			t.Run(kind+" "+how, func(t *testing.T) {
				p := runProcess(t, "--kind", kind, "--on-sigterm", how, "--gap", "20ms", "--mean-length", "-1", "--style", "whole")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				resp, err := generate(ctx, http.DefaultClient, kind, p.url, prompt, 20)
				if err != nil {
					t.Fatal(err)
				}
				first := make([]byte, 1)
				if _, err := resp.Body.Read(first); err != nil {
					t.Fatal(err)
				}
				p.stop()
				if how == onSigtermSilent && kind == KindVLLM {
					refused(t, p.url)
					cancel() // it would be silent for ever
				}
				r := read(resp, nil)
				switch how {
				case onSigtermDrain:
					if r.err != nil || r.finish == "" {
						t.Errorf("finish %q, %v", r.finish, r.err)
					}
				default:
					if r.err == nil || r.finish != "" {
						t.Errorf("finish %q, %v", r.finish, r.err)
					}
				}
				if err := p.wait(t); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// refused waits until the port refuses.
func refused(t *testing.T, url string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for range 2000 {
		resp, err := http.Get(url + "/health")
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err == nil {
			resp.Body.Close()
		}
		<-tick.C
	}
	t.Fatal("the port does not refuse")
}

func TestRunEndsWhenAFaultKillsIt(t *testing.T) {
	p := runProcess(t, "--fault", "kill,after=1")
	r := read(generate(t.Context(), http.DefaultClient, KindVLLM, p.url, prompt, 8))
	if r.err == nil {
		t.Error("the stream ended in good order")
	}
	if err := p.wait(t); err == nil {
		t.Error("no error of a killed worker")
	}
}

func TestRunNamesTheWrongFlag(t *testing.T) {
	for want, args := range map[string][]string{
		"--kind":             {"--kind", "other"},
		"--profile":          {"--kind", "trtllm", "--profile", "vllm-0.24"},
		"--style":            {"--style", "poem"},
		"--on-sigterm":       {"--on-sigterm", "shout"},
		"--tokens-per-delta": {"--tokens-per-delta", "1,x"},
		"explode":            {"--fault", "explode"},
		"--context-length":   {"--context-length", "1"},
		"surplus":            {"surplus"},
		"listen":             {"--host", "256.0.0.1"},
	} {
		if err := Run(t.Context(), args, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestRunWritesTheModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "m")
	if err := Run(t.Context(), []string{"--write-model", dir}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); err != nil {
		t.Error(err)
	}
}
