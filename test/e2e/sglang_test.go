package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/test/harness"
)

// A sglangServer was started by sglang-up.sh.
type sglangServer struct {
	url string
	pid int
}

// startSGLang starts n servers.
func startSGLang(t *testing.T, n int) []*sglangServer {
	t.Helper()
	if os.Getenv("BATON_E2E_SGLANG") == "" {
		t.Skip("BATON_E2E_SGLANG is not set (SGLang's packages take 11 GB)")
	}
	args := []string{filepath.Join(harness.Root(), "test/e2e/sglang-up.sh")}
	for range n {
		args = append(args, fmt.Sprint(harness.FreePort(t)))
	}
	out, err := exec.Command("bash", args...).Output()
	if err != nil {
		t.Fatalf("sglang-up.sh: %v", err)
	}
	var servers []*sglangServer
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		pid, err := strconv.Atoi(f[0])
		if err != nil {
			t.Fatalf("sglang-up.sh printed %q", line)
		}
		family := append([]int{pid}, children(pid)...) // now: a killed parent has none
		t.Cleanup(func() {
			for _, p := range family {
				syscall.Kill(p, syscall.SIGKILL)
			}
		})
		servers = append(servers, &sglangServer{url: "http://127.0.0.1:" + f[1], pid: pid})
	}
	return servers
}

// running is SGLang's own count of requests at work, which lags by half a second.
func (s *sglangServer) running() bool {
	resp, err := (&http.Client{Timeout: 3 * time.Second}).Get(s.url + "/v1/loads?include=core")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var loads struct {
		Loads []struct {
			Running int `json:"num_running_reqs"`
		}
	}
	return json.NewDecoder(resp.Body).Decode(&loads) == nil && len(loads.Loads) > 0 && loads.Loads[0].Running > 0
}

// signal sends a signal to all processes of the server, so that a stopped one
// really stands still.
func (s *sglangServer) signal(sig syscall.Signal) {
	for _, pid := range append([]int{s.pid}, children(s.pid)...) {
		syscall.Kill(pid, sig)
	}
}

// One fleet of two servers loses one answer after the other: to a server that is
// stopped, to one that is killed; and the last one is told to end, which SGLang does
// by finishing what runs.
func TestSGLang(t *testing.T) {
	servers := startSGLang(t, 2)
	var info struct {
		Path string `json:"tokenizer_path"`
	}
	resp, err := http.Get(servers[0].url + "/model_info")
	if err != nil {
		t.Fatal(err)
	}
	err = json.NewDecoder(resp.Body).Decode(&info)
	resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	url, front := harness.Serve(t, "--worker", servers[0].url, "--worker", servers[1].url, "--model-path", info.Path, "--migration-limit", "3", "--stall-timeout", "6s")
	body := chatBody(48)
	if name := os.Getenv("BATON_E2E_MODEL"); name != "" {
		body = strings.ReplaceAll(body, "smollm2", name)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	want, err := harness.Stream(ctx, url, "/v1/chat/completions", body, nil)
	if err != nil || want.Finish == "" {
		t.Fatal(err, want)
	}
	busy := func() *sglangServer {
		for {
			for _, s := range servers {
				if s.running() {
					return s
				}
			}
			if ctx.Err() != nil {
				return servers[0]
			}
		}
	}
	for _, test := range []struct {
		name   string
		signal syscall.Signal
		moves  bool
		within time.Duration
	}{
		{"SIGSTOP", syscall.SIGSTOP, true, 60 * time.Second},
		{"SIGKILL", syscall.SIGKILL, true, 60 * time.Second},
		{"SIGTERM, at which it finishes what runs", syscall.SIGTERM, false, 60 * time.Second},
	} {
		before := strings.Count(front.Output(), "request migrated")
		var victim *sglangServer
		var struck time.Time
		got, err := harness.Stream(ctx, url, "/v1/chat/completions", body, func(n int) {
			if n != 10 {
				return
			}
			victim = busy()
			struck = time.Now()
			if test.signal == syscall.SIGSTOP {
				victim.signal(test.signal)
			} else {
				syscall.Kill(victim.pid, test.signal)
			}
		})
		if err != nil || got.Error != nil || victim == nil {
			t.Fatalf("%s: %v, %+v, %v", test.name, err, got, victim)
		}
		t.Logf("%s: the rest took %v\nuncut: %q\n  cut: %q", test.name, time.Since(struck), want.Text, got.Text)
		if got.Finish != want.Finish || got.Usage == nil || got.Usage.PromptTokens != want.Usage.PromptTokens || commonPrefix(got.Text, want.Text) < 10 {
			t.Errorf("%s: %+v, usage %+v", test.name, got, got.Usage)
		}
		if moved := strings.Count(front.Output(), "request migrated") > before; moved != test.moves {
			t.Errorf("%s: moved %v, want %v", test.name, moved, test.moves)
		}
		if time.Since(struck) > test.within {
			t.Errorf("%s: the rest took %v", test.name, time.Since(struck))
		}
		switch test.signal {
		case syscall.SIGSTOP:
			victim.signal(syscall.SIGCONT)
			for victim.running() && ctx.Err() == nil { // what it thaws with is abandoned
			}
		case syscall.SIGKILL:
			for i, s := range servers {
				if s == victim {
					servers = append(servers[:i:i], servers[i+1:]...)
				}
			}
		}
	}
}
