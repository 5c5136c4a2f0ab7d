// Package harness starts the real binary and real engines for tests, and is a
// strict client of the API.
package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"baton/admin"
)

// Root returns the top folder of the repository.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// BinaryVar names an environment variable with the path of a baton that was built
// before, for tests that run where nothing can be built.
const BinaryVar = "BATON_TEST_BINARY"

var build = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv(BinaryVar); bin != "" {
		return bin, nil
	}
	dir, err := os.MkdirTemp("", "baton-test-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "baton")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/baton")
	cmd.Dir = Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
})

// Binary builds baton once a test process and returns its path.
func Binary(t testing.TB) string {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// A Process is a started program; it is killed at the end of its test.
type Process struct {
	cmd  *exec.Cmd
	log  lockedBuffer
	done chan struct{}
}

// Start runs a program until the end of the test. Its output is shown if the
// test fails.
func Start(t testing.TB, program string, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("output of %s %v:\n%s", filepath.Base(program), args, p.log.String())
		}
	})
	return p
}

// Kill sends SIGKILL and waits for the end.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Pid is the process's number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended.
func (p *Process) Exited() <-chan struct{} { return p.done }

// Output returns all that the process has printed so far.
func (p *Process) Output() string { return p.log.String() }

// FreePort returns a TCP port of the loopback interface that is free now.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// WaitOK waits until url answers 200, at most for the given time.
func WaitOK(t testing.TB, url string, within time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s was not ready within %v", url, within)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Serve starts the frontend with args on a free port and returns it once
// /health is 200. It has no admin address unless args say so.
func Serve(t testing.TB, args ...string) (url string, p *Process) {
	t.Helper()
	port := FreePort(t)
	if !slices.Contains(args, "--admin-address") {
		args = append([]string{"--admin-address", "off"}, args...)
	}
	p = Start(t, Binary(t), append([]string{"serve", "--http-host", "127.0.0.1", "--http-port", fmt.Sprint(port)}, args...)...)
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	WaitOK(t, url+"/health", 30*time.Second)
	return url, p
}

// Workers returns what the frontend with this admin address, host:port, says of its
// workers.
func Workers(t testing.TB, adminAddress string) []admin.Worker {
	t.Helper()
	resp, err := http.Get("http://" + adminAddress + "/admin/workers")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list admin.WorkersReply
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list.Workers
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
