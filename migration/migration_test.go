package migration

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"baton/engine"
)

func request(budget int) *engine.Request {
	return &engine.Request{
		ID: "r", Model: "m", TokenIDs: []engine.TokenID{7, 8, 9},
		Stop:  engine.StopConditions{MaxTokens: budget, EOS: []engine.TokenID{eos}},
		Trace: &engine.Trace{},
	}
}

func TestSeriesExistBeforeTheFirstEvent(t *testing.T) {
	op, reg := newOperator(&scripted{}, Config{Limit: 3})
	op.AddModel("m")
	want := `
# HELP test_model_migration_total Requests moved to another worker.
# TYPE test_model_migration_total counter
test_model_migration_total{migration_type="new_request",model="m"} 0
test_model_migration_total{migration_type="ongoing_request",model="m"} 0
# HELP test_model_migration_max_seq_len_exceeded_total Requests for which the sequence bound switched migration off.
# TYPE test_model_migration_max_seq_len_exceeded_total counter
test_model_migration_max_seq_len_exceeded_total{model="m"} 0
# HELP test_model_migration_limit How often one request may be moved.
# TYPE test_model_migration_limit gauge
test_model_migration_limit{model="m"} 3
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "test_model_migration_total", "test_model_migration_max_seq_len_exceeded_total", "test_model_migration_limit"); err != nil {
		t.Fatal(err)
	}
}

func TestSequenceBoundIsStrict(t *testing.T) {
	for _, tc := range []struct {
		name     string
		bound    int // prompt 3, two tokens before the cut: 5
		moved    bool
		exceeded float64
	}{
		{"exactly the bound still migrates", 5, true, 1}, // the token after it is beyond
		{"one above does not", 4, false, 1},
		{"a prompt above the bound switches both types off", 2, false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "a", tokens: 2, fail: engine.Disconnected}, {worker: "b", tokens: -1}}}
			op, _ := newOperator(s, Config{Limit: 3, MaxSeqLen: tc.bound})
			got := collect(op.Generate(t.Context(), request(3)))
			if moved := got.err == nil; moved != tc.moved {
				t.Errorf("moved %v, want %v (%v)", moved, tc.moved, got.err)
			}
			if n := testutil.ToFloat64(op.metrics.exceeded.WithLabelValues("m")); n != tc.exceeded {
				t.Errorf("counted %v times, want %v", n, tc.exceeded)
			}
		})
	}
	t.Run("not counted where migration is off", func(t *testing.T) {
		s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "a", tokens: -1}}}
		op, _ := newOperator(s, Config{Limit: 0, MaxSeqLen: 2})
		collect(op.Generate(t.Context(), request(3)))
		if n := testutil.CollectAndCount(op.metrics.exceeded); n != 0 {
			t.Errorf("%d series counted", n)
		}
	})
}

func TestWhatTriggersAMove(t *testing.T) {
	for kind := engine.Internal; kind <= engine.Poison; kind++ {
		for _, delivered := range []int{0, 2} {
			s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "a", tokens: delivered, fail: kind}, {worker: "b", tokens: -1}}}
			op, _ := newOperator(s, Config{Limit: 1})
			got := collect(op.Generate(t.Context(), request(4)))
			want := true
			switch kind {
			case engine.Internal, engine.InvalidRequest, engine.NoWorker, engine.Cancelled, engine.TimedOut, engine.Poison:
				want = false
			case engine.Overloaded, engine.WorkerMisconfigured:
				want = delivered > 0
			}
			if moved := got.err == nil; moved != want {
				t.Errorf("%v after %d tokens: moved %v, want %v", kind, delivered, moved, want)
			}
		}
	}
}

func TestAWorkerCannotMakeAnAnswerLonger(t *testing.T) {
	t.Run("beyond the budget", func(t *testing.T) {
		s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "a", tokens: 9, finish: engine.FinishLength, perID: 4}}}
		op, _ := newOperator(s, Config{})
		got := collect(op.Generate(t.Context(), request(5)))
		if len(got.ids) != 5 || got.finish != engine.FinishLength {
			t.Errorf("%d ids, %q", len(got.ids), got.finish)
		}
	})
	t.Run("beyond the end id", func(t *testing.T) {
		s := &scripted{prompt: 3, eosAt: 2, steps: []step{{worker: "a", tokens: 9, finish: engine.FinishLength, perID: 4}}}
		op, _ := newOperator(s, Config{})
		got := collect(op.Generate(t.Context(), request(5)))
		if len(got.ids) != 3 || got.finish != engine.FinishStop {
			t.Errorf("%d ids, %q", len(got.ids), got.finish)
		}
	})
}

func TestLengthBelowBudgetAndContextIsNoEnd(t *testing.T) {
	steps := []step{{worker: "small", tokens: 2, finish: engine.FinishLength}, {worker: "b", tokens: -1}}
	t.Run("moved", func(t *testing.T) {
		s := &scripted{prompt: 3, eosAt: -1, steps: steps}
		op, _ := newOperator(s, Config{Limit: 1})
		req := request(6)
		req.ContextLength = 100
		req.Trace = new(engine.Trace)
		want, _ := s.reference(req)
		got := collect(op.Generate(t.Context(), req))
		if len(got.ids) != len(want) || got.err != nil {
			t.Fatalf("got %v, %v", got.ids, got.err)
		}
		if avoid := s.asked[1].Avoid; len(avoid) != 1 || avoid[0] != "small" {
			t.Errorf("avoids %v", avoid)
		}
		if a := req.Trace.Attempts; a[0].Err == nil || a[0].Err.Kind != engine.EngineError || a[1].Err != nil {
			t.Errorf("the trace says %v and %v", a[0].Err, a[1].Err) // why it was moved
		}
	})
	t.Run("the model's own context is an end", func(t *testing.T) {
		s := &scripted{prompt: 3, eosAt: -1, steps: steps}
		op, _ := newOperator(s, Config{Limit: 1})
		req := request(6)
		req.ContextLength = 5
		got := collect(op.Generate(t.Context(), req))
		if len(got.ids) != 2 || got.finish != engine.FinishLength {
			t.Errorf("%d ids, %q, %v", len(got.ids), got.finish, got.err)
		}
	})
	t.Run("a death there is finished here", func(t *testing.T) {
		s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "a", tokens: 2, fail: engine.Disconnected}}}
		op, _ := newOperator(s, Config{Limit: 0})
		req := request(6)
		req.ContextLength = 5
		got := collect(op.Generate(t.Context(), req))
		if len(got.ids) != 2 || got.finish != engine.FinishLength || len(s.asked) != 1 {
			t.Errorf("%d ids, %q, %v", len(got.ids), got.finish, got.err)
		}
	})
}

func TestMinTokens(t *testing.T) {
	for _, tc := range []struct{ cut, min, want int }{{5, 8, 3}, {9, 8, 0}} {
		s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "a", tokens: tc.cut, fail: engine.Stalled}, {worker: "b", tokens: -1}}}
		op, _ := newOperator(s, Config{Limit: 1})
		req := request(20)
		req.Stop.MinTokens = tc.min
		collect(op.Generate(t.Context(), req))
		if got := s.asked[1].Stop.MinTokens; got != tc.want {
			t.Errorf("cut after %d: asked for at least %d, want %d", tc.cut, got, tc.want)
		}
	}
	t.Run("an end id before the minimum is no end", func(t *testing.T) {
		s := &scripted{prompt: 3, eosAt: 1, steps: []step{{worker: "a", tokens: 2, fail: engine.Stalled}, {worker: "b", tokens: -1}}}
		op, _ := newOperator(s, Config{Limit: 1})
		req := request(6)
		req.Stop.MinTokens = 4
		if got := collect(op.Generate(t.Context(), req)); len(got.ids) != 6 || len(s.asked) != 2 {
			t.Errorf("%d ids in %d attempts, finish %q", len(got.ids), len(s.asked), got.finish)
		}
	})
}

func TestAttemptIDsDiffer(t *testing.T) {
	s := &scripted{prompt: 3, eosAt: -1}
	for range 12 {
		s.steps = append(s.steps, step{worker: "a", tokens: 1, fail: engine.Disconnected})
	}
	op, _ := newOperator(s, Config{Limit: 11})
	collect(op.Generate(t.Context(), request(50)))
	for i, a := range s.asked {
		for j, b := range s.asked {
			if i != j && strings.HasPrefix(a.ID, b.ID) {
				t.Errorf("%q is a prefix of %q", b.ID, a.ID)
			}
		}
	}
}

func TestAMoveIsCountedOnceItReachedAWorker(t *testing.T) {
	count := func(steps []step, limit int) (newRequest, ongoing float64) {
		s := &scripted{prompt: 3, eosAt: -1, steps: steps}
		op, _ := newOperator(s, Config{Limit: limit})
		collect(op.Generate(context.Background(), request(4)))
		return testutil.ToFloat64(op.metrics.total.WithLabelValues("m", "new_request")), testutil.ToFloat64(op.metrics.total.WithLabelValues("m", "ongoing_request"))
	}
	dead := func(tokens int) step { return step{worker: "a", tokens: tokens, fail: engine.Disconnected} }
	for _, tc := range []struct {
		name         string
		steps        []step
		limit        int
		news, onging float64
	}{
		{"before and after the first token", []step{dead(0), dead(1), {worker: "b", tokens: -1}}, 3, 1, 1},
		{"a continuation that dies before its first token is ongoing too", []step{dead(1), dead(0), {worker: "b", tokens: -1}}, 3, 0, 2},
		{"not for the last failure", []step{dead(1), dead(1)}, 1, 0, 1},
		{"not if no worker was there", []step{dead(1)}, 3, 0, 0},
		{"not for a refusal", []step{dead(1), {worker: "b", tokens: 0, fail: engine.Overloaded}}, 3, 0, 0},
	} {
		if n, o := count(tc.steps, tc.limit); n != tc.news || o != tc.onging {
			t.Errorf("%s: new %v, ongoing %v", tc.name, n, o)
		}
	}
}

func TestTheTraceSaysWhyThereWasNoMove(t *testing.T) {
	dead := step{worker: "a", tokens: 2, fail: engine.Disconnected}
	gone := step{worker: "a", fail: engine.Disconnected, gone: true}
	shared := step{worker: "a", fail: engine.Disconnected, shared: true}
	for _, tc := range []struct {
		steps []step
		cfg   Config
		want  engine.NotMoved
	}{
		{[]step{dead}, Config{}, engine.MigrationOff},
		{[]step{dead, dead}, Config{Limit: 1}, engine.MovesUsedUp},
		{[]step{dead}, Config{Limit: 3, MaxSeqLen: 4}, engine.SequenceTooLong},
		{[]step{gone, gone}, Config{Limit: 3}, engine.PoisonousRequest},
		{[]step{shared, shared, {fail: engine.NoWorker}}, Config{Limit: 3}, engine.PoisonSuspected},
		{[]step{shared, {fail: engine.NoWorker}}, Config{Limit: 3}, ""},
		{[]step{{worker: "a", fail: engine.InvalidRequest}}, Config{Limit: 3}, ""},
		{[]step{dead, {worker: "b", tokens: -1}}, Config{Limit: 3}, ""},
	} {
		req := request(9)
		op, _ := newOperator(&scripted{prompt: 3, eosAt: -1, steps: tc.steps}, tc.cfg)
		collect(op.Generate(t.Context(), req))
		if req.Trace.NotMoved != tc.want {
			t.Errorf("%+v: %q, want %q", tc.cfg, req.Trace.NotMoved, tc.want)
		}
	}
}

func TestDrainUsesUpNoLimit(t *testing.T) {
	drained := func(tokens int) step { return step{worker: "a", tokens: tokens, fail: engine.Drained} }
	s := &scripted{prompt: 3, eosAt: -1, steps: []step{drained(1), {worker: "b", tokens: 1, fail: engine.Disconnected}, drained(1), drained(0), {worker: "c", tokens: -1}}}
	op, _ := newOperator(s, Config{Limit: 1})
	req := request(9)
	want, _ := s.reference(req)
	got := collect(op.Generate(t.Context(), req))
	if !slices.Equal(got.ids, want) || len(s.asked) != 5 {
		t.Errorf("%v after %d attempts, want %v (%v)", got.ids, len(s.asked), want, got.err)
	}
	for i, r := range s.asked {
		if !r.Movable() {
			t.Errorf("attempt %d cannot be moved", i)
		}
		if want := []string{"", "a", "", "a", "a"}[i]; r.DrainedFrom != want {
			t.Errorf("attempt %d says that %q gave it up, want %q", i, r.DrainedFrom, want)
		}
	}
	if n := testutil.ToFloat64(op.metrics.total.WithLabelValues("m", "ongoing_request")); n != 4 {
		t.Errorf("%v moves counted", n)
	}
	t.Run("with limit 0 nothing is moved", func(t *testing.T) {
		s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "a", tokens: -1}}}
		op, _ := newOperator(s, Config{})
		collect(op.Generate(t.Context(), request(4)))
		if s.asked[0].Movable() {
			t.Error("offered to be moved")
		}
	})
	t.Run("nor beyond the sequence bound", func(t *testing.T) {
		s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "a", tokens: -1}}}
		op, _ := newOperator(s, Config{Limit: 3, MaxSeqLen: 4})
		movable := []bool{}
		for range op.Generate(t.Context(), request(4)) {
			movable = append(movable, s.asked[0].Movable())
		}
		if !slices.Equal(movable, []bool{true, false, false, false}) {
			t.Errorf("movable after each token: %v", movable)
		}
	})
}

func TestPoison(t *testing.T) {
	gone := func(worker string, tokens int, kind engine.Kind) step {
		return step{worker: worker, tokens: tokens, fail: kind, gone: true}
	}
	for _, tc := range []struct {
		name     string
		steps    []step
		attempts int // 3 = it was given a third worker
		suspects []string
	}{
		{"two deaths in a row", []step{gone("a", 2, engine.Disconnected), gone("b", 0, engine.Disconnected)}, 2, []string{"a"}},
		{"before any token", []step{gone("a", 0, engine.Disconnected), gone("b", 0, engine.EngineShutdown)}, 2, []string{"a"}},
		{"a token between them is progress", []step{gone("a", 2, engine.Disconnected), gone("b", 1, engine.Disconnected)}, 3, []string{"a"}},
		{"the second worker lives", []step{gone("a", 2, engine.Disconnected), {worker: "b", fail: engine.Disconnected}}, 3, []string{"a"}},
		{"refused from the start is no death", []step{gone("a", 2, engine.Disconnected), gone("b", 0, engine.CannotConnect)}, 3, []string{"a"}},
		{"a stall is no death", []step{gone("a", 0, engine.Stalled), gone("b", 0, engine.Disconnected)}, 3, nil},
	} {
		s := &scripted{prompt: 3, eosAt: -1, steps: append(tc.steps, step{worker: "c", tokens: -1})}
		op, _ := newOperator(s, Config{Limit: 9})
		got := collect(op.Generate(t.Context(), request(6)))
		if len(s.asked) != tc.attempts || (got.err != nil) != (tc.attempts == 2) {
			t.Errorf("%s: %d attempts, %v", tc.name, len(s.asked), got.err)
		}
		if got.err != nil && got.err.Kind != engine.Poison {
			t.Errorf("%s: %v", tc.name, got.err)
		}
		if !slices.Equal(s.asked[1].Suspects, tc.suspects) {
			t.Errorf("%s: suspects %v", tc.name, s.asked[1].Suspects)
		}
	}
}

// Who had no token on a worker that was lost with others is cautious, until the
// next token.
func TestCaution(t *testing.T) {
	lost := func(tokens int, kind engine.Kind, shared bool) step {
		return step{worker: "a", tokens: tokens, fail: kind, shared: shared}
	}
	for _, tc := range []struct {
		name     string
		steps    []step
		cautious []bool // of each attempt
	}{
		{"alone", []step{lost(0, engine.Disconnected, false)}, []bool{false, false}},
		{"with others", []step{lost(0, engine.Disconnected, true)}, []bool{false, true}},
		{"a dead engine", []step{lost(0, engine.EngineShutdown, true)}, []bool{false, true}},
		{"after a token", []step{lost(1, engine.Disconnected, true)}, []bool{false, false}},
		{"another failure", []step{lost(0, engine.EngineError, true)}, []bool{false, false}},
		{"twice with others", []step{lost(1, engine.Disconnected, true), lost(0, engine.Disconnected, true)}, []bool{false, false, true}},
		{"the second worker is alive", []step{lost(0, engine.Disconnected, true), lost(0, engine.Disconnected, false)}, []bool{false, true, false}},
		{"a token proves it", []step{lost(0, engine.Disconnected, true), lost(1, engine.Disconnected, true)}, []bool{false, true, false}},
	} {
		s := &scripted{prompt: 3, eosAt: -1, steps: append(tc.steps, step{worker: "c", tokens: -1})}
		op, _ := newOperator(s, Config{Limit: 9})
		if got := collect(op.Generate(t.Context(), request(6))); got.err != nil {
			t.Errorf("%s: %v", tc.name, got.err)
		}
		var cautious []bool
		for _, r := range s.asked {
			cautious = append(cautious, r.Cautious)
		}
		if !slices.Equal(cautious, tc.cautious) {
			t.Errorf("%s: %v, want %v", tc.name, cautious, tc.cautious)
		}
	}
}

func TestALeavingClientIsNoFailure(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "a", tokens: 2, fail: engine.Disconnected}, {worker: "b", tokens: -1}}}
	op, _ := newOperator(s, Config{Limit: 3})
	var last error
	for _, err := range op.Generate(ctx, request(9)) {
		cancel()
		last = err
	}
	if e := engine.AsError(last); e.Kind != engine.Cancelled || len(s.asked) != 1 {
		t.Errorf("%v after %d attempts", last, len(s.asked))
	}
}

func TestRequestErrorOnAContinuationNamesTheLoss(t *testing.T) {
	s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "a", tokens: 2, fail: engine.Disconnected}, {worker: "b", tokens: 0, fail: engine.InvalidRequest}}}
	op, _ := newOperator(s, Config{Limit: 3})
	got := collect(op.Generate(t.Context(), request(9)))
	if got.err == nil || !strings.Contains(got.err.Message, "lost with its worker after 2 tokens") {
		t.Errorf("%v", got.err)
	}
}

// A gap is what the client sees: from the last token before to the first after.
func TestGapAndRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "10.0.0.1:8000", tokens: 2, fail: engine.Stalled}, {worker: "10.0.0.2:8000", tokens: -1}}}
		op, _ := newOperator(s, Config{Limit: 3})
		op.log = slog.New(slog.NewTextHandler(&log, nil))
		req := request(4)
		req.ID = "chatcmpl-x-002"
		n := 0
		for _, err := range op.Generate(t.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 2 {
				time.Sleep(250 * time.Millisecond) // the scripted silence
			}
		}
		if gap := req.Trace.Attempts[1].Gap; gap != 250*time.Millisecond {
			t.Errorf("gap %v", gap)
		}
		for _, want := range []string{`msg="request migrated"`, "request_id=chatcmpl-x choice=002 ", "from=10.0.0.1:8000", "to=10.0.0.2:8000", "kind=ongoing_request", "reason=stalled", "tokens_carried=2", "moves_left=2", "gap_ms=250"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no %s in %s", want, log.String())
			}
		}
	})
}

// A request that was moved before its first token has no gap between tokens.
func TestGapLiesBetweenTokens(t *testing.T) {
	for _, tc := range []struct{ delivered, gaps int }{{0, 0}, {2, 1}} {
		s := &scripted{prompt: 3, eosAt: -1, steps: []step{{worker: "a", tokens: tc.delivered, fail: engine.Disconnected}, {worker: "b", tokens: -1}}}
		op, reg := newOperator(s, Config{Limit: 1})
		op.AddModel("m")
		collect(op.Generate(t.Context(), request(4)))
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "test_model_migration_gap_seconds" {
				if n := f.GetMetric()[0].GetHistogram().GetSampleCount(); n != uint64(tc.gaps) {
					t.Errorf("after %d tokens: %d gaps, want %d", tc.delivered, n, tc.gaps)
				}
			}
		}
	}
}

func TestNoAllocationPerToken(t *testing.T) {
	c := newContinuation(request(1<<20), Config{Limit: 3})
	ids := []engine.TokenID{5}
	if n := testing.AllocsPerRun(100_000, func() { c.observe(engine.Delta{TokenIDs: ids}) }); n != 0 {
		t.Errorf("%v allocations a token", n)
	}
}

func BenchmarkToken(b *testing.B) {
	for name, limit := range map[string]int{"limit=0": 0, "limit=3": 3} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			s := &endless{n: b.N}
			op := New(s, Config{Limit: limit}, slog.New(slog.DiscardHandler), newRegistry(), "bench")
			for range op.Generate(b.Context(), request(b.N+1)) {
			}
		})
	}
}
