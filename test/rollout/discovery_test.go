package rollout

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"baton/admin"
	"baton/engine/sim"
	"baton/test/harness"
)

// The file of the workers changes under load: workers are added, taken away, and all
// of them replaced, several times. No client sees it, every answer is exact, and
// nothing is left of those that are gone.
func TestDiscoveryUnderLoad(t *testing.T) {
	t.Parallel()
	d := startDiscovered(t)
	all := d.f.workers
	d.name(all[:3])
	d.untilOnly(all[:3])
	l := newLoad(d.f, 9, 200) // two seconds each
	goroutines, series := d.goroutines(), d.series()
	l.run()
	for range 2 {
		d.name(all[:4]) // one more
		d.untilOnly(all[:4])
		d.name(all[1:4]) // one less
		d.untilOnly(all[1:4])
		d.name(all[3:]) // all but one are others
		d.untilOnly(all[3:])
		for _, w := range all[:3] {
			w.process.Kill() // nobody misses them
			d.f.start(w)
		}
		d.name(all[:3]) // all are others
		d.untilOnly(all[:3])
	}
	answers := l.stop()
	moves := d.f.moves()
	if moves == 0 {
		t.Error("nothing was moved, so nothing was tested")
	}
	http.DefaultClient.CloseIdleConnections()
	d.eventually("the goroutines are as many as before", func() (bool, string) {
		now := d.goroutines()
		return now <= goroutines+3, fmt.Sprintf("%d, before %d", now, goroutines)
	})
	if now := d.series(); !slices.Equal(now, series) {
		t.Errorf("series of workers now %v, before %v", now, series)
	}
	t.Logf("%d answers over eight changes, %v moves, at most %d of one answer", answers, moves, l.mostMoves)
}

// A worker that is named again while its streams still run is kept, and so are they;
// a damaged file changes nothing.
func TestDiscoveryTakenBack(t *testing.T) {
	t.Parallel()
	d := startDiscovered(t, "--drain-timeout", "30s")
	all := d.f.workers
	d.name(all[:2])
	d.untilOnly(all[:2])
	l := newLoad(d.f, 6, 300) // three seconds each
	l.run()
	for range 2 {
		d.name(all[:1])
		d.f.until(all[1], "is being removed", func(w admin.Worker) bool { return w.State == "removing" && w.InFlight > 0 })
		d.name(all[:2])
		d.f.until(all[1], "is kept", func(w admin.Worker) bool { return w.State == "ready" && w.InFlight > 0 })
		d.write("- targets: [")
		d.eventually("the log names the file", func() (bool, string) {
			return strings.Contains(d.baton.Output(), "the file of workers cannot be used"), ""
		})
		d.write("")
	}
	d.untilOnly(all[:2])
	l.stop()
	if moves := d.f.moves(); moves != 0 {
		t.Errorf("%v requests were moved", moves)
	}
	if n := strings.Count(d.baton.Output(), "worker is gone"); n != 0 {
		t.Errorf("%d workers were forgotten", n)
	}
}

// The last worker of a model may go, and requests wait for the next one.
func TestDiscoveryOfNothing(t *testing.T) {
	t.Parallel()
	d := startDiscovered(t, "--worker-wait-timeout", "20s")
	all := d.f.workers
	d.name(all[:1])
	d.untilOnly(all[:1])
	l := newLoad(d.f, 2, 20)
	d.name(nil)
	d.untilOnly(nil)
	if models := d.models(); strings.Contains(models, `"sim"`) {
		t.Errorf("models without a worker: %s", models)
	}
	l.run()
	d.eventually("the clients wait", func() (bool, string) {
		waiting := harness.Metric(t, d.f.url, "dynamo_frontend_queued_requests", map[string]string{"model": "sim"})
		return waiting == 2, fmt.Sprint(waiting)
	})
	d.name(all[1:2])
	d.untilOnly(all[1:2])
	l.stop()
	if models := d.models(); !strings.Contains(models, `"sim"`) {
		t.Errorf("models: %s", models)
	}
}

// A discovered is a frontend that has its workers from a file.
type discovered struct {
	f     *fleet
	baton *harness.Process
	path  string
}

// startDiscovered starts six workers and a frontend that knows none of them.
func startDiscovered(t *testing.T, serveArgs ...string) *discovered {
	t.Helper()
	dir := t.TempDir()
	model := filepath.Join(dir, "model")
	if err := sim.WriteModel(model); err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, admin: fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))}
	for range 6 {
		port := harness.FreePort(t)
		w := &worker{id: fmt.Sprintf("127.0.0.1:%d", port), port: port, args: []string{"--gap", "10ms", "--mean-length", "-1"}}
		f.workers = append(f.workers, w)
		f.start(w)
	}
	d := &discovered{f: f, path: filepath.Join(dir, "workers.json")}
	d.name(nil)
	port := harness.FreePort(t)
	args := []string{"serve", "--http-host", "127.0.0.1", "--http-port", fmt.Sprint(port), "--admin-address", f.admin,
		"--discovery", "file", "--discovery-file", d.path, "--model-path", model,
		"--migration-limit", "1", "--health-interval", "200ms"}
	given := strings.Join(serveArgs, " ")
	for _, setting := range [][2]string{{"--drain-timeout", "100ms"}, {"--worker-wait-timeout", "1s"}} {
		if !strings.Contains(given, setting[0]) {
			args = append(args, setting[0], setting[1])
		}
	}
	d.baton = harness.Start(t, harness.Binary(t), append(args, serveArgs...)...)
	f.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	harness.WaitOK(t, f.url+"/live", patience)
	return d
}

// name makes these the workers in the file.
func (d *discovered) name(workers []*worker) {
	d.f.t.Helper()
	groups := []map[string][]string{{"targets": {}}}
	for _, w := range workers {
		groups[0]["targets"] = append(groups[0]["targets"], w.id)
	}
	content, err := json.Marshal(groups)
	if err != nil {
		d.f.t.Fatal(err)
	}
	if err := os.WriteFile(d.path+".new", content, 0o600); err != nil {
		d.f.t.Fatal(err)
	}
	if err := os.Rename(d.path+".new", d.path); err != nil {
		d.f.t.Fatal(err)
	}
}

// write makes the content of the file, in place.
func (d *discovered) write(content string) {
	d.f.t.Helper()
	if err := os.WriteFile(d.path, []byte(content), 0o600); err != nil {
		d.f.t.Fatal(err)
	}
}

// untilOnly polls until these are the workers, and all of them are ready.
func (d *discovered) untilOnly(workers []*worker) {
	d.f.t.Helper()
	var want []string
	for _, w := range workers {
		want = append(want, w.id+" ready")
	}
	d.eventually("the workers are "+strings.Join(want, ", "), func() (bool, string) {
		var have []string
		for _, w := range harness.Workers(d.f.t, d.f.admin) {
			have = append(have, w.ID+" "+w.State)
		}
		return slices.Equal(have, want), strings.Join(have, ", ")
	})
}

func (d *discovered) models() string {
	d.f.t.Helper()
	return d.get(d.f.url + "/v1/models")
}

var totalInProfile = regexp.MustCompile(`(?m)^goroutine profile: total (\d+)`)

// goroutines is how many run in the frontend.
func (d *discovered) goroutines() int {
	d.f.t.Helper()
	m := totalInProfile.FindStringSubmatch(d.get("http://" + d.f.admin + "/debug/pprof/goroutine?debug=1"))
	if m == nil {
		d.f.t.Fatal("a profile without a total")
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

var workerLabel = regexp.MustCompile(`(?m)^([^#{]+\{.*worker="[^"]*".*\}) `)

// series are the names and labels of the series that name a worker.
func (d *discovered) series() (all []string) {
	d.f.t.Helper()
	for _, m := range workerLabel.FindAllStringSubmatch(d.get(d.f.url+"/metrics"), -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	if len(all) == 0 {
		d.f.t.Fatal("no series names a worker")
	}
	return all
}

func (d *discovered) get(url string) string {
	d.f.t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		d.f.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		d.f.t.Fatalf("GET %s: status %d, %v", url, resp.StatusCode, err)
	}
	return string(body)
}

// eventually polls until ok.
func (d *discovered) eventually(what string, ok func() (bool, string)) {
	d.f.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		is, state := ok()
		if is {
			return
		}
		if time.Now().After(deadline) {
			d.f.t.Fatalf("it never came that %s: %s", what, state)
		}
		<-time.After(20 * time.Millisecond) // polls a real process
	}
}
