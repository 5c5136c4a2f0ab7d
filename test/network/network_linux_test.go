package network

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"baton/admin"
	"baton/engine/sim"
	"baton/test/harness"
)

const story = `{"model":"sim","messages":[{"role":"user","content":"the sea"}],"max_tokens":60,"ignore_eos":true,"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`

// connectTimeout is what the frontend waits for a host that does not answer.
const connectTimeout = 500 * time.Millisecond

// soon bounds what should take a second of silence and the connect bound. It is
// far below the stall bound, which is the default.
const soon = 15 * time.Second

// A fleet is the hosts and the frontend.
type fleet struct {
	t          testing.TB
	url, admin string
	hosts      []*host
	frontend   *harness.Process
}

// startFleet starts two hosts, whose workers get workerArgs, and a frontend that
// finds them by the given names; none = by their addresses.
func startFleet(t testing.TB, workerArgs []string, names ...string) *fleet {
	t.Helper()
	model := filepath.Join(t.TempDir(), "model")
	if err := sim.WriteModel(model); err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, admin: fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))}
	args := []string{"--admin-address", f.admin, "--model-path", model, "--migration-limit", "3", "--connect-timeout", connectTimeout.String(),
		"--health-interval", "200ms", "--inhibit-duration", "500ms", "--worker-wait-timeout", "2s"}
	for i := range 2 {
		h := startHost(t, i+1, workerArgs...)
		f.hosts = append(f.hosts, h)
		at := h.id()
		if len(names) > 0 {
			at = fmt.Sprintf("%s:%d", names[i], port)
		}
		args = append(args, "--worker", "http://"+at)
	}
	f.url, f.frontend = harness.Serve(t, args...)
	f.untilStates("ready", "ready")
	return f
}

func (f *fleet) workers() []admin.Worker {
	f.t.Helper()
	return harness.Workers(f.t, f.admin)
}

// untilStates waits until the workers are in these states; "" = any.
func (f *fleet) untilStates(want ...string) {
	f.t.Helper()
	for end := time.Now().Add(patience); ; {
		ok := true
		workers := f.workers()
		for i, w := range workers {
			ok = ok && (want[i] == "" || w.State == want[i])
		}
		if ok {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("workers never were %v: %+v", want, workers)
		}
		<-time.After(20 * time.Millisecond) // polls a real process
	}
}

// busy is the host that writes an answer.
func (f *fleet) busy() *host {
	f.t.Helper()
	for i, w := range f.workers() {
		if w.InFlight > 0 {
			return f.hosts[i]
		}
	}
	f.t.Error("no host writes an answer")
	return f.hosts[0]
}

// ask streams the story and calls onChunk with the number of chunks so far.
func (f *fleet) ask(onChunk func(n int)) *harness.Answer {
	f.t.Helper()
	a, err := harness.Stream(f.t.Context(), f.url, "/v1/chat/completions", story, onChunk)
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

func (f *fleet) moves(kind string) float64 {
	f.t.Helper()
	return harness.Metric(f.t, f.url, "dynamo_frontend_model_migration_total", map[string]string{"model": "sim", "migration_type": kind})
}

// A machine that loses its power in the middle of an answer says nothing: the
// answer goes on elsewhere long before the stall bound. When the machine is back,
// so is its worker.
func TestHostIsLostInMidStream(t *testing.T) {
	if !inside(t) {
		return
	}
	f := startFleet(t, []string{"--gap", "10ms"})
	want := f.ask(nil)
	var lost *host
	var at time.Time
	a := f.ask(func(n int) {
		if n == 10 {
			lost = f.busy()
			at = time.Now()
			lost.vanish()
		}
	})
	took := time.Since(at)
	if a.Error != nil || a.Text != want.Text || a.Usage.CompletionTokens != want.Usage.CompletionTokens {
		t.Fatalf("%+v, want the text of %+v", a, want)
	}
	t.Logf("complete %v after the loss", took)
	if took > soon {
		t.Errorf("it took %v", took)
	}
	if n := f.moves("ongoing_request"); n != 1 {
		t.Errorf("%v moves of a running answer", n)
	}
	lost.appear()
	f.untilStates("ready", "ready")
}

// The same before the first token, when nothing but time tells a lost machine
// from a long prompt.
func TestHostIsLostInPrefill(t *testing.T) {
	if !inside(t) {
		return
	}
	f := startFleet(t, []string{"--prefill", "3s"})
	begun := time.Now()
	done := make(chan *harness.Answer)
	go func() {
		defer close(done)
		if a, err := harness.Stream(t.Context(), f.url, "/v1/chat/completions", story, nil); err == nil {
			done <- a
		}
	}()
	for end := time.Now().Add(patience); f.workers()[0].InFlight+f.workers()[1].InFlight == 0; {
		if time.Now().After(end) {
			t.Fatal("the request reached no worker")
		}
		<-time.After(20 * time.Millisecond) // polls a real process
	}
	f.busy().vanish()
	a := <-done
	if a == nil || a.Error != nil || a.Finish != "length" {
		t.Fatalf("%+v", a)
	}
	if took := time.Since(begun); took > 3*time.Second+soon {
		t.Errorf("it took %v", took)
	}
	if n := f.moves("new_request"); n != 1 {
		t.Errorf("%v moves of a request without a token", n)
	}
}

// Requests that come while a host is lost, on connections that were open before
// and on new ones, are answered by the other.
func TestHostIsLostWhileIdle(t *testing.T) {
	if !inside(t) {
		return
	}
	f := startFleet(t, nil)
	want := f.ask(nil)
	f.ask(nil) // both hosts have idle connections, whichever is asked first
	f.hosts[0].vanish()
	for range 6 {
		begun := time.Now()
		a := f.ask(nil)
		if a.Error != nil || a.Text != want.Text {
			t.Fatalf("%+v", a)
		}
		if took := time.Since(begun); took > soon {
			t.Errorf("an answer took %v", took)
		}
	}
	f.untilStates("inhibited", "ready")
}

// With all hosts lost a request is refused in bounded time, with a word on when to
// come back, and everything works once they are back.
func TestAllHostsAreLost(t *testing.T) {
	if !inside(t) {
		return
	}
	f := startFleet(t, nil)
	want := f.ask(nil)
	for _, h := range f.hosts {
		h.vanish()
	}
	begun := time.Now()
	a := f.ask(nil)
	if a.Status != http.StatusServiceUnavailable || a.Error == nil {
		t.Fatalf("%+v", a)
	}
	if took := time.Since(begun); took > soon {
		t.Errorf("the refusal took %v", took)
	}
	for _, h := range f.hosts {
		h.appear()
	}
	f.untilStates("ready", "ready")
	if a := f.ask(nil); a.Text != want.Text {
		t.Errorf("%+v", a)
	}
}

// A worker whose name no longer resolves is a worker that cannot be reached; it
// comes back with its name.
func TestNameIsLost(t *testing.T) {
	if !inside(t) {
		return
	}
	hosts := filepath.Join(t.TempDir(), "hosts")
	name := func(lines string) {
		if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"+lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const a, b = "10.77.1.2 worker-a.test\n", "10.77.2.2 worker-b.test\n"
	name(a + b)
	run(t, "mount", "--bind", hosts, "/etc/hosts")
	f := startFleet(t, nil, "worker-a.test", "worker-b.test")
	want := f.ask(nil)
	// As long as connections live, nobody asks for the name.
	name(b)
	forgotten := time.Now().Add(6 * time.Second) // the resolver knows the file for 5 s
	f.hosts[0].vanish()
	f.untilStates("inhibited", "ready")
	<-time.After(time.Until(forgotten))
	f.hosts[0].appear()
	for begun := time.Now(); time.Since(begun) < 2*time.Second; {
		if a := f.ask(nil); a.Error != nil || a.Text != want.Text {
			t.Fatalf("%+v", a)
		}
		f.untilStates("inhibited", "ready")
		<-time.After(200 * time.Millisecond)
	}
	name(a + b)
	f.untilStates("ready", "ready")
}
