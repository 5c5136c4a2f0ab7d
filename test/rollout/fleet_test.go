package rollout

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/admin"
	"baton/engine/sim"
	"baton/test/harness"
)

// patience bounds every wait: far more than anything takes.
const patience = 30 * time.Second

// A fleet is three simulated workers behind one frontend.
type fleet struct {
	t       *testing.T
	url     string // of the API
	admin   string // host:port
	workers []*worker
}

type worker struct {
	id      string // host:port
	port    int
	args    []string
	process *harness.Process
}

// startFleet starts the workers with workerArgs and the frontend with serveArgs.
func startFleet(t *testing.T, workerArgs, serveArgs []string) *fleet {
	t.Helper()
	model := filepath.Join(t.TempDir(), "model")
	if err := sim.WriteModel(model); err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, admin: fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))}
	args := append([]string{"--admin-address", f.admin, "--model-path", model, "--health-interval", "200ms", "--inhibit-duration", "200ms"}, serveArgs...)
	for range 3 {
		port := harness.FreePort(t)
		w := &worker{id: fmt.Sprintf("127.0.0.1:%d", port), port: port, args: workerArgs}
		f.workers = append(f.workers, w)
		f.start(w)
		args = append(args, "--worker", "http://"+w.id)
	}
	f.url, _ = harness.Serve(t, args...)
	for _, w := range f.workers {
		f.until(w, "is ready", func(w admin.Worker) bool { return w.State == "ready" })
	}
	return f
}

// start starts a worker's process, also for a second time, and waits for it.
func (f *fleet) start(w *worker) {
	f.t.Helper()
	args := append([]string{"sim", "--port", fmt.Sprint(w.port), "--style", "words"}, w.args...)
	w.process = harness.Start(f.t, harness.Binary(f.t), args...)
	harness.WaitOK(f.t, "http://"+w.id+"/health", patience)
}

// status is what the admin address says of a worker.
func (f *fleet) status(w *worker) admin.Worker {
	f.t.Helper()
	list := harness.Workers(f.t, f.admin)
	for _, s := range list {
		if s.ID == w.id {
			return s
		}
	}
	f.t.Fatalf("no worker %s in %+v", w.id, list)
	return admin.Worker{}
}

// until polls until a worker is as wanted.
func (f *fleet) until(w *worker, what string, ok func(admin.Worker) bool) {
	f.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		s := f.status(w)
		if ok(s) {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("worker %s never %s: %+v", w.id, what, s)
		}
		<-time.After(20 * time.Millisecond) // polls a real process
	}
}

// operate runs baton with a command that talks to the frontend.
func (f *fleet) operate(args ...string) string {
	f.t.Helper()
	out, err := exec.Command(harness.Binary(f.t), append(args, "--admin-address", f.admin)...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("baton %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// moves is how many requests were moved so far.
func (f *fleet) moves() (count float64) {
	f.t.Helper()
	for _, kind := range []string{"new_request", "ongoing_request"} {
		count += harness.Metric(f.t, f.url, "dynamo_frontend_model_migration_total", map[string]string{"model": "sim", "migration_type": kind})
	}
	return count
}

// A load is clients that ask again as soon as they have their answer, until stop.
type load struct {
	f       *fleet
	tokens  int
	wanted  []string // the answer to each client's question, when nothing happens
	stopped chan struct{}
	clients sync.WaitGroup

	mu        sync.Mutex // guards what follows
	answers   int
	failures  []string
	mostMoves int // of one answer
}

// newLoad asks each client's question once, while nothing happens.
func newLoad(f *fleet, clients, tokens int) *load {
	f.t.Helper()
	l := &load{f: f, tokens: tokens, wanted: make([]string, clients), stopped: make(chan struct{})}
	l.each(func(i int) {
		text, failure := l.ask(i)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.wanted[i] = text; failure != "" {
			l.failures = append(l.failures, failure)
		}
	})
	l.clients.Wait()
	if len(l.failures) > 0 {
		f.t.Fatalf("without a fault: %s", l.failures[0])
	}
	if l.wanted[0] == l.wanted[1] {
		f.t.Fatal("two questions have the same answer, so a mix-up would not be seen")
	}
	return l
}

func (l *load) each(do func(i int)) {
	for i := range l.wanted {
		l.clients.Go(func() { do(i) })
	}
}

// run starts the clients.
func (l *load) run() {
	l.each(func(i int) {
		for {
			text, failure := l.ask(i)
			if failure == "" && text != l.wanted[i] {
				failure = fmt.Sprintf("client %d: got %q, want %q", i, text, l.wanted[i])
			}
			l.mu.Lock()
			l.answers++
			if failure != "" {
				l.failures = append(l.failures, failure)
			}
			l.mu.Unlock()
			select {
			case <-l.stopped:
				return
			default:
			}
		}
	})
}

// ask returns the answer to client i's question, or what is wrong with it.
func (l *load) ask(i int) (text, failure string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	body := fmt.Sprintf(`{"model":"sim","stream":true,"temperature":0,"ignore_eos":true,"max_tokens":%d,"stream_options":{"include_usage":true},`+
		`"messages":[{"role":"user","content":"question %d"}]}`, l.tokens, i)
	a, err := harness.Stream(ctx, l.f.url, "/v1/chat/completions", body, nil)
	switch {
	case err != nil:
		return "", fmt.Sprintf("client %d: %v", i, err)
	case a.Error != nil:
		return "", fmt.Sprintf("client %d: status %d, %s", i, a.Status, a.Error.Message)
	case !a.Done || a.Finish != "length" || a.Usage == nil || a.Usage.CompletionTokens != l.tokens:
		return "", fmt.Sprintf("client %d: incomplete: %+v", i, a)
	}
	l.noteMoves(a)
	return a.Text, ""
}

var movesInDebug = regexp.MustCompile(`^baton \{.*"migrations":(\d+)`)

// noteMoves reads how often an answer moved from the comment at its end.
func (l *load) noteMoves(a *harness.Answer) {
	for _, c := range a.Comments {
		if m := movesInDebug.FindStringSubmatch(c); m != nil {
			n, _ := strconv.Atoi(m[1])
			l.mu.Lock()
			l.mostMoves = max(l.mostMoves, n)
			l.mu.Unlock()
		}
	}
}

// stop lets every client have its last answer, and fails the test if any was wrong.
func (l *load) stop() (answers int) {
	l.f.t.Helper()
	close(l.stopped)
	l.clients.Wait()
	for _, failure := range l.failures {
		l.f.t.Error(failure)
	}
	return l.answers
}
