package engine

import (
	"sync"
	"testing"
)

// What anyone may see of a request follows its attempts and moves, also while
// they happen (run it with -race).
func TestProgress(t *testing.T) {
	var trace Trace
	var watchers sync.WaitGroup
	done := make(chan struct{})
	watchers.Go(func() {
		for last := 0; ; {
			p := trace.Progress()
			if p.Attempts < last || p.Migrations > p.Attempts {
				t.Errorf("progress went back, or makes no sense: %+v after %d attempts", p, last)
			}
			last = p.Attempts
			select {
			case <-done:
				return
			default:
			}
		}
	})
	check := func(when string, want Progress) {
		t.Helper()
		if got := trace.Progress(); got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	check("before all", Progress{})
	a := trace.Begin("r-0", "a:1")
	check("on the first worker", Progress{WorkerID: "a:1", Attempts: 1})
	a.Tokens = 3
	trace.Ended()
	trace.SetMoving(true)
	check("between workers", Progress{Attempts: 1, Moving: true})
	trace.Begin("r-1", "b:1")
	check("before the next token", Progress{WorkerID: "b:1", Attempts: 2, Moving: true})
	trace.Moved(OngoingRequest, 3)
	trace.SetMoving(false)
	check("moved", Progress{WorkerID: "b:1", Attempts: 2, Migrations: 1})
	if last := trace.Last(); last.Migration != OngoingRequest || last.Carried != 3 {
		t.Errorf("the entry of the move is %+v", last)
	}
	close(done)
	watchers.Wait()
}

// Nobody need ask for a trace.
func TestNilTrace(t *testing.T) {
	var trace *Trace
	trace.Begin("r-0", "a:1").Tokens = 1
	trace.SetMoving(true)
	trace.Moved(NewRequest, 0)
	trace.Ended()
	if trace.Progress() != (Progress{}) || trace.Last() != nil || trace.Migrations() != 0 {
		t.Error("a trace that is not there knows something")
	}
}
