package migration

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"baton/engine"
)

// part returns the request of a further part of an answer, of which carried tokens
// were delivered, under a constraint.
func part(before *engine.Request, carried int) *engine.Request {
	r := *before
	r.ID += "p01"
	for i := range carried {
		r.TokenIDs = append(slices.Clip(r.TokenIDs), engine.TokenID(50+i))
	}
	r.Carried, r.Prefer = carried, "b"
	r.Constraint, r.HoldBack = &engine.Constraint{JSONObject: true}, true
	return &r
}

// TestParts: an answer in two parts is one request to limits, metrics and records.
func TestParts(t *testing.T) {
	lost, drained := step{worker: "a", tokens: 2, fail: engine.Disconnected}, step{worker: "a", tokens: 2, fail: engine.Drained}
	whole := step{worker: "b", tokens: -1}
	for _, test := range []struct {
		name  string
		first step
		limit int
		moved bool // the second part, after its worker was lost
	}{
		{"the limit holds for both", lost, 1, false},
		{"it is not used up", lost, 2, true},
		{"what was drained used up nothing", drained, 1, true},
	} {
		s := &scripted{prompt: 3, eosAt: -1, steps: []step{test.first, whole, {worker: "b", tokens: 1, fail: engine.Disconnected}, {worker: "c", tokens: -1}}}
		var log bytes.Buffer
		op := New(s, Config{Limit: test.limit}, slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry(), "test")
		req := request(4)
		req.ID = "r-007"
		if got := collect(op.Generate(t.Context(), req)); got.err != nil {
			t.Fatalf("%s: the first part: %v", test.name, got.err)
		}
		log.Reset()
		got := collect(op.Generate(t.Context(), part(req, 4)))
		if (got.err == nil) != test.moved {
			t.Errorf("%s: %v", test.name, got.err)
		}
		if !test.moved {
			continue
		}
		last := req.Trace.Last()
		if last.Migration != engine.OngoingRequest || last.Carried != 4 {
			t.Errorf("%s: moved as %s with %d tokens, want those of the first part", test.name, last.Migration, last.Carried)
		}
		if next := s.asked[3]; next.Prefer != "" || next.Carried != 4 || len(next.TokenIDs) != 3+4 {
			t.Errorf("%s: asked %+v", test.name, next)
		}
		if line := log.String(); !strings.Contains(line, "request_id=r choice=007 ") || !strings.Contains(line, "tokens_carried=4 ") {
			t.Errorf("%s: %s", test.name, line)
		}
	}
}

// TestSequenceBoundOfParts: it is counted once, and holds for an answer that is held
// back, too.
func TestSequenceBoundOfParts(t *testing.T) {
	whole := step{worker: "a", tokens: -1}
	for _, test := range []struct {
		name   string
		bound  int
		second step
		failed bool
	}{
		{"the first part is beyond it", 5, whole, false},
		{"the second part is", 8, whole, false},
		{"and is lost then", 8, step{worker: "b", tokens: 2, fail: engine.Disconnected}, true},
	} {
		s := &scripted{prompt: 3, eosAt: -1, steps: []step{whole, test.second, whole}}
		op, _ := newOperator(s, Config{Limit: 3, MaxSeqLen: test.bound})
		req := request(4)
		collect(op.Generate(t.Context(), req))
		got := collect(op.Generate(t.Context(), part(req, 4)))
		if (got.err != nil) != test.failed || test.failed && req.Trace.NotMoved != engine.SequenceTooLong {
			t.Errorf("%s: %v, not moved for %q", test.name, got.err, req.Trace.NotMoved)
		}
		if n := testutil.ToFloat64(op.metrics.exceeded.WithLabelValues("m")); n != 1 {
			t.Errorf("%s: counted %v times", test.name, n)
		}
	}
}
