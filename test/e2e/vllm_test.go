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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/test/harness"
)

// A vllmServer was started by vllm-up.sh.
type vllmServer struct {
	url string
	pid int
	log string
}

// startVLLM starts n servers; -- options follow.
func startVLLM(t *testing.T, n int, options ...string) []vllmServer {
	t.Helper()
	if os.Getenv("BATON_E2E_VLLM") == "" {
		t.Skip("BATON_E2E_VLLM is not set (vLLM's packages take 7 GB)")
	}
	args := []string{filepath.Join(harness.Root(), "test/e2e/vllm-up.sh")}
	for range n {
		args = append(args, fmt.Sprint(harness.FreePort(t)))
	}
	out, err := exec.Command("bash", append(append(args, "--"), options...)...).Output()
	if err != nil {
		t.Fatalf("vllm-up.sh: %v", err)
	}
	var servers []vllmServer
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		pid, err := strconv.Atoi(f[0])
		if err != nil {
			t.Fatalf("vllm-up.sh printed %q", line)
		}
		s := vllmServer{url: "http://127.0.0.1:" + f[1], pid: pid, log: f[2]}
		family := append([]int{pid}, children(pid)...) // now: a killed parent has none
		t.Cleanup(func() {
			for _, p := range family {
				syscall.Kill(p, syscall.SIGKILL)
			}
		})
		servers = append(servers, s)
	}
	return servers
}

// children returns the pids below pid, which vLLM leaves behind when its API
// server is killed.
func children(pid int) []int {
	out, _ := exec.Command("pgrep", "-P", fmt.Sprint(pid)).Output()
	var pids []int
	for _, f := range strings.Fields(string(out)) {
		if p, err := strconv.Atoi(f); err == nil {
			pids = append(pids, p)
			pids = append(pids, children(p)...)
		}
	}
	return pids
}

// running is vLLM's own count of requests at work.
func (s vllmServer) running() bool {
	resp, err := (&http.Client{Timeout: time.Second}).Get(s.url + "/metrics")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
		if strings.HasPrefix(sc.Text(), "vllm:num_requests_running") && !strings.HasSuffix(sc.Text(), " 0.0") {
			return true
		}
	}
	return false
}

// vLLM continues a cut answer with other kernels than it began it with, so its
// text may drift after the cut; what it had said before the cut stays, the ids
// given along are exact, and the answer has its full length.
func TestVLLM(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  syscall.Signal
	}{{"SIGKILL", syscall.SIGKILL}, {"SIGTERM, which leaves streams open and silent", syscall.SIGTERM}} {
		t.Run(tc.name, func(t *testing.T) {
			servers := startVLLM(t, 2)
			var models struct{ Data []struct{ Root string } }
			resp, err := http.Get(servers[0].url + "/v1/models")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if err := json.NewDecoder(resp.Body).Decode(&models); err != nil {
				t.Fatal(err)
			}
			url, front := harness.Serve(t, "--worker", servers[0].url, "--worker", servers[1].url, "--model-path", models.Data[0].Root, "--migration-limit", "3")
			body := strings.ReplaceAll(chatBody(64), "smollm2", os.Getenv("BATON_E2E_MODEL"))
			if os.Getenv("BATON_E2E_MODEL") == "" {
				body = chatBody(64)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
			defer cancel()
			want, err := harness.Stream(ctx, url, "/v1/chat/completions", body, nil)
			if err != nil || want.Finish == "" {
				t.Fatal(err, want)
			}
			said := 0
			var ended time.Time
			got, err := harness.Stream(ctx, url, "/v1/chat/completions", body, func(n int) {
				if n != 12 {
					return
				}
				said = n
				victim := servers[1]
				if servers[0].running() {
					victim = servers[0]
				}
				ended = time.Now()
				syscall.Kill(victim.pid, tc.end)
			})
			if err != nil || got.Error != nil {
				t.Fatal(err, got.Error)
			}
			t.Logf("uncut: %q\n  cut: %q\nthe rest took %v after the signal", want.Text, got.Text, time.Since(ended))
			if got.Finish == "" || got.Usage.PromptTokens != want.Usage.PromptTokens || said == 0 {
				t.Errorf("finish %q, usage %+v", got.Finish, got.Usage)
			}
			if common := commonPrefix(got.Text, want.Text); common == 0 {
				t.Errorf("the texts differ from the start")
			}
			if !strings.Contains(front.Output(), "request migrated") {
				t.Error("no migration in the log")
			}
			if time.Since(ended) > 28*time.Second {
				t.Errorf("the loss was found at the stall bound only")
			}
		})
	}
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
