//go:build unix

package soak

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/admin"
	"baton/engine/sim"
	"baton/test/harness"
)

// patience bounds every wait for a process. It is far more than anything takes,
// because the machine may be busy.
const patience = 30 * time.Second

// A worker is a simulated one in a process of its own.
type worker struct {
	t       testing.TB
	port    int
	args    []string
	process *harness.Process // nil = it is dead
	frozen  bool
}

func startWorker(t testing.TB, args ...string) *worker {
	t.Helper()
	w := &worker{t: t, port: harness.FreePort(t), args: args}
	w.start()
	return w
}

// id is what the frontend calls the worker.
func (w *worker) id() string  { return fmt.Sprintf("127.0.0.1:%d", w.port) }
func (w *worker) url() string { return "http://" + w.id() }

func (w *worker) start() {
	w.t.Helper()
	w.process = harness.Start(w.t, harness.Binary(w.t), append([]string{"sim", "--port", fmt.Sprint(w.port)}, w.args...)...)
	harness.WaitOK(w.t, w.url()+"/health", patience)
}

// kill is kill -9.
func (w *worker) kill() {
	w.process.Kill()
	w.process, w.frozen = nil, false
}

func (w *worker) freeze() {
	w.frozen = true
	if err := w.process.Signal(syscall.SIGSTOP); err != nil {
		w.t.Error(err)
	}
}

func (w *worker) thaw() {
	w.frozen = false
	if err := w.process.Signal(syscall.SIGCONT); err != nil {
		w.t.Error(err)
	}
}

// script replaces the faults of the worker.
func (w *worker) script(faults ...sim.Fault) {
	w.t.Helper()
	body, err := json.Marshal(append([]sim.Fault{}, faults...))
	if err != nil {
		w.t.Fatal(err)
	}
	post(w.t, w.url()+"/sim/faults", string(body))
}

// running is how many requests the worker is at.
func (w *worker) running() int {
	var stats sim.Stats
	get(w.t, w.url()+"/sim/stats", &stats)
	return stats.Running
}

// modelFolder writes the model's files.
func modelFolder(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sim-model")
	if err := sim.WriteModel(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A frontend is `baton serve` with its admin address.
type frontend struct {
	t          testing.TB
	url, admin string
}

// serve starts a frontend and returns it once its workers are ready.
func serve(t testing.TB, workers []string, args ...string) *frontend {
	t.Helper()
	admin := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	args = append(args, "--admin-address", admin, "--model-path", modelFolder(t))
	for _, url := range workers {
		args = append(args, "--worker", url)
	}
	f := &frontend{t: t, admin: "http://" + admin}
	f.url, _ = harness.Serve(t, args...)
	f.waitReady(len(workers))
	return f
}

func (f *frontend) workers() []admin.Worker {
	f.t.Helper()
	return harness.Workers(f.t, strings.TrimPrefix(f.admin, "http://"))
}

// waitReady waits until n workers are.
func (f *frontend) waitReady(n int) {
	f.t.Helper()
	var list []admin.Worker
	until(f.t, func() bool {
		ready := 0
		list = f.workers()
		for _, w := range list {
			if w.State == "ready" {
				ready++
			}
		}
		return ready == n
	}, func() string { return fmt.Sprintf("want %d ready workers: %+v", n, list) })
}

func (f *frontend) drain(id string)   { post(f.t, f.admin+"/admin/workers/"+id+"/drain", "") }
func (f *frontend) undrain(id string) { post(f.t, f.admin+"/admin/workers/"+id+"/undrain", "") }

// metric is the sum-less value of one series of the frontend.
func (f *frontend) metric(name string, labels map[string]string) float64 {
	return harness.Metric(f.t, f.url, name, labels)
}

// until polls real processes.
func until(t testing.TB, done func() bool, what func() string) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", patience, what())
		}
	}
}

var client = &http.Client{Timeout: patience}

func post(t testing.TB, url, body string) {
	t.Helper()
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode >= 300 {
		t.Fatalf("POST %s: %s", url, resp.Status)
	}
}

func get(t testing.TB, url string, into any) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		t.Fatalf("GET %s: %s: %v", url, resp.Status, err)
	}
}
