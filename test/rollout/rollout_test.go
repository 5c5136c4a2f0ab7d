package rollout

import (
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"baton/admin"
)

// A rolling restart under load, with time for the streams to finish: no client
// sees it, and nothing has to move.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	f := startFleet(t, []string{"--gap", "10ms", "--mean-length", "-1"}, []string{"--migration-limit", "1", "--drain-timeout", "30s"})
	l := newLoad(f, 9, 100)
	l.run()
	for _, w := range f.workers {
		f.roll(w)
	}
	answers := l.stop()
	if moves := f.moves(); moves != 0 {
		t.Errorf("%v requests were moved, although all had the time to finish", moves)
	}
	t.Logf("%d answers over three restarts, nothing moved", answers)
}

// The same with streams that are longer than the drain timeout: they move.
func TestRollingRestartWithLongStreams(t *testing.T) {
	t.Parallel()
	f := startFleet(t, []string{"--gap", "10ms", "--mean-length", "-1"}, []string{"--migration-limit", "1", "--drain-timeout", "100ms"})
	l := newLoad(f, 9, 200)
	l.run()
	for _, w := range f.workers {
		f.until(w, "runs something", func(w admin.Worker) bool { return w.InFlight > 0 })
		f.roll(w)
	}
	answers := l.stop()
	moves := f.moves()
	if moves == 0 { // about nine, a third of the clients at each restart
		t.Error("nothing was moved, so nothing was tested")
	}
	t.Logf("%d answers over three restarts, %v moves", answers, moves)
}

// A stream may be driven from worker to worker by drains as often as they come:
// that uses up nothing of a limit of 1. With a limit of 0 nothing is moved.
func TestDrainsUseUpNoMoves(t *testing.T) {
	for limit, least := range map[string]int{"1": 2, "0": 0} {
		t.Run("limit "+limit, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, []string{"--gap", "10ms", "--mean-length", "-1"}, []string{"--migration-limit", limit, "--drain-timeout", "1ms"})
			l := newLoad(f, 3, 300)
			l.run()
			for _, w := range slices.Concat(f.workers, f.workers) {
				f.until(w, "runs something", func(w admin.Worker) bool { return w.InFlight > 0 })
				f.operate("drain", w.id)
				if limit == "1" {
					f.until(w, "was left", func(w admin.Worker) bool { return w.InFlight == 0 })
				}
				f.operate("undrain", w.id)
			}
			l.stop()
			if l.mostMoves < least || l.mostMoves > 100*least {
				t.Errorf("the stream that moved most moved %d times, want at least %d, and none for 0", l.mostMoves, least)
			}
		})
	}
}

// roll restarts one worker as an operator would.
func (f *fleet) roll(w *worker) {
	f.t.Helper()
	out := f.operate("drain", w.id, "--wait", patience.String())
	if !strings.HasPrefix(out, w.id+" gets no new requests; ") {
		f.t.Errorf("baton drain says %q", out)
	}
	if s := f.status(w); s.State != "draining" || s.InFlight != 0 {
		f.t.Errorf("after the drain: %+v", s)
	}
	w.process.Kill()
	f.start(w)
	if s := f.status(w); s.State != "draining" {
		f.t.Errorf("the restart ended the drain: %+v", s)
	}
	f.operate("undrain", w.id)
	f.until(w, "came back", func(w admin.Worker) bool { return w.State == "ready" && w.InFlight > 0 })
}

// Workers that are told to stop by their own orchestrator, which tells baton
// nothing: each way in which engines end is invisible too, within the limit.
func TestSIGTERMOfWorkers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM")
	}
	for _, how := range []string{"silent", "cut", "drain"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, []string{"--gap", "10ms", "--mean-length", "-1", "--on-sigterm", how}, []string{"--migration-limit", "3"})
			l := newLoad(f, 6, 100)
			l.run()
			for _, w := range f.workers[:2] {
				f.until(w, "runs something", func(w admin.Worker) bool { return w.InFlight > 0 })
				if err := w.process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				f.until(w, "was noticed", func(w admin.Worker) bool { return w.State != "ready" && w.InFlight == 0 })
				w.process.Kill() // what a supervisor does in the end
				f.start(w)
				f.until(w, "came back", func(w admin.Worker) bool { return w.State == "ready" && w.InFlight > 0 })
			}
			answers := l.stop()
			moves := f.moves()
			if how != "drain" && moves == 0 {
				t.Error("nothing was moved, so nothing was tested")
			}
			t.Logf("%d answers over two stops, %v moves", answers, moves)
		})
	}
}
