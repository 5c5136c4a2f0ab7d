package migration

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"baton/engine"
)

// workersFunc is a set of workers whose answers are one function.
type workersFunc func(req *engine.Request, yield func(engine.Delta, error) bool)

func (f workersFunc) Generate(_ context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) { f(req, yield) }
}

// What operators see of a request says that it moves from the failure to the next
// worker's first token, and no longer.
func TestAMoveCanBeSeenWhileItHappens(t *testing.T) {
	req := request(4)
	var seen []engine.Progress
	look := func() { seen = append(seen, req.Trace.Progress()) }
	workers := workersFunc(func(r *engine.Request, yield func(engine.Delta, error) bool) {
		look() // waits for a worker
		id := string(rune('a' + len(req.Trace.Attempts)))
		r.Trace.Begin(r.ID, id)
		look() // waits for its token
		yield(engine.Delta{TokenIDs: []engine.TokenID{1}}, nil)
		r.Trace.Ended()
		yield(engine.Delta{}, &engine.Error{Kind: engine.Disconnected, WorkerID: id})
	})
	op := New(workers, Config{Limit: 1}, slog.New(slog.DiscardHandler), newRegistry(), "test")
	for _, err := range op.Generate(t.Context(), req) {
		if err == nil {
			look() // has it
		}
	}
	look() // the limit is used up
	want := []engine.Progress{
		{}, {WorkerID: "a", Attempts: 1}, {WorkerID: "a", Attempts: 1},
		{Attempts: 1, Moving: true}, {WorkerID: "b", Attempts: 2, Moving: true}, {WorkerID: "b", Attempts: 2, Migrations: 1},
		{Attempts: 2, Migrations: 1},
	}
	if !slices.Equal(seen, want) {
		t.Errorf("got\n%+v\nwant\n%+v", seen, want)
	}
}
