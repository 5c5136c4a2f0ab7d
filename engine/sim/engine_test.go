package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
)

// An outcome is how a stream went.
type outcome struct {
	ids      []engine.TokenID
	logprobs []engine.TokenLogprob
	sizes    []int
	finish   engine.FinishReason
	err      *engine.Error
	took     time.Duration
}

func collect(ctx context.Context, e engine.Engine, req *engine.Request) outcome {
	var o outcome
	start := time.Now()
	for d, err := range e.Generate(ctx, req) {
		if err != nil {
			o.err = engine.AsError(err)
			break
		}
		o.ids = append(o.ids, d.TokenIDs...)
		for _, lp := range d.Logprobs {
			lp.Top = slices.Clone(lp.Top) // the delta's memory is the stream's
			o.logprobs = append(o.logprobs, lp)
		}
		o.sizes = append(o.sizes, len(d.TokenIDs))
		if d.FinishReason != "" {
			o.finish = d.FinishReason
		}
	}
	o.took = time.Since(start)
	return o
}

func TestEngineGivesTheReference(t *testing.T) {
	for _, config := range []Config{
		{}, {FinishAlone: true}, {Deltas: []int{3}}, {Deltas: []int{0, 8, 0, 1}}, {Deltas: []int{0}}, {Deltas: []int{2, 5}, FinishAlone: true},
		{Style: StyleWords}, {Kind: KindLlamaCPP}, {VocabSize: 5, EOS: []engine.TokenID{4}},
	} {
		config.Gap = time.Hour // virtual time costs nothing
		synctest.Test(t, func(t *testing.T) {
			e := New(config)
			req := request([]engine.TokenID{1, 2, 3}, 40)
			req.Output = engine.OutputOptions{Logprobs: true, TopLogprobs: 2}
			want, finish := e.Reference(req)
			got := collect(t.Context(), e, req)
			if !slices.Equal(got.ids, want) || got.finish != finish || got.err != nil {
				t.Errorf("%+v: %d ids, finish %q, error %v; want %d ids, %q", config, len(got.ids), got.finish, got.err, len(want), finish)
			}
			if len(got.logprobs) != len(got.ids) || math.IsNaN(got.logprobs[0].Logprob) {
				t.Errorf("%d logprobs for %d ids", len(got.logprobs), len(got.ids))
			}
			if config.FinishAlone != (got.sizes[len(got.sizes)-1] == 0) {
				t.Errorf("%+v: sizes %v", config, got.sizes)
			}
			if want := time.Duration(len(want)-1) * time.Hour; got.took != want {
				t.Errorf("took %v of virtual time, want %v", got.took, want)
			}
			if s := e.Stats(); s.Running != 0 || s.Finished != 1 || s.Tokens != len(want) {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestFaultsAtTheTokenLevel(t *testing.T) {
	const budget = 12
	type want struct {
		tokens int // -1 = all
		kind   engine.Kind
		status int
	}
	tests := []struct {
		fault Fault
		want  want
	}{
		{Fault{Kind: FaultRefuse}, want{0, engine.CannotConnect, 0}},
		{Fault{Kind: FaultDialTimeout}, want{0, engine.ConnectionTimeout, 0}},
		{Fault{Kind: FaultStatus}, want{0, engine.Overloaded, 503}},
		{Fault{Kind: FaultStatus, Status: 429}, want{0, engine.Overloaded, 429}},
		{Fault{Kind: FaultStatus, Status: 400}, want{0, engine.InvalidRequest, 400}},
		{Fault{Kind: FaultStatus, Status: 401}, want{0, engine.WorkerMisconfigured, 401}},
		{Fault{Kind: FaultStatus, Status: 404}, want{0, engine.WorkerMisconfigured, 404}},
		{Fault{Kind: FaultStatus, Status: 500}, want{0, engine.EngineError, 500}},
		{Fault{Kind: FaultReset}, want{0, engine.Disconnected, 0}},
		{Fault{Kind: FaultReset, After: 5}, want{5, engine.Disconnected, 0}},
		{Fault{Kind: FaultCut, After: AfterLast}, want{budget, engine.Disconnected, 0}},
		{Fault{Kind: FaultCut, After: budget}, want{budget, engine.Disconnected, 0}},
		{Fault{Kind: FaultEnd, After: 1}, want{1, engine.Disconnected, 0}},
		{Fault{Kind: FaultDone, After: 1}, want{1, engine.Disconnected, 0}},
		{Fault{Kind: FaultHalfNumber, After: 2}, want{2, engine.Disconnected, 0}},
		{Fault{Kind: FaultHalfString, After: 2}, want{2, engine.Disconnected, 0}},
		{Fault{Kind: FaultAbort, After: 3}, want{3, engine.EngineError, 0}},
		{Fault{Kind: FaultError, After: 3}, want{3, engine.EngineError, 500}},
		{Fault{Kind: FaultError, After: 3, Status: 400}, want{3, engine.EngineError, 400}},
		{Fault{Kind: FaultGarbage, After: 3}, want{3, engine.ProtocolError, 0}},
		{Fault{Kind: FaultShutdown, After: 3}, want{3, engine.EngineShutdown, 0}},
		{Fault{Kind: FaultKill, After: 3}, want{3, engine.Disconnected, 0}},
	}
	for _, tt := range tests {
		for _, config := range []Config{{}, {FinishAlone: true}, {Deltas: []int{5, 0}}} {
			config.MeanLength, config.ID, config.Faults = -1, "w1", []Fault{tt.fault}
			t.Run(fmt.Sprintf("%s after %d %v", tt.fault.Kind, tt.fault.After, config.Deltas), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := New(config)
					req := request(prompt, budget)
					whole, _ := e.Reference(req)
					got := collect(t.Context(), e, req)
					if got.err == nil || got.finish != "" {
						t.Fatalf("no error, finish %q", got.finish)
					}
					if got.err.Kind != tt.want.kind || got.err.Status != tt.want.status || got.err.WorkerID != "w1" {
						t.Errorf("error %v, want kind %v, status %d", got.err, tt.want.kind, tt.want.status)
					}
					if !slices.Equal(got.ids, whole[:tt.want.tokens]) {
						t.Errorf("%d ids, want the first %d", len(got.ids), tt.want.tokens)
					}
				})
			})
		}
	}
}

func TestDeathAfterTheEndID(t *testing.T) {
	config := Config{MeanLength: 5, Faults: []Fault{{Kind: FaultCut, After: AfterLast}}}
	req := request(prompt, 500)
	whole, _ := Reference(config, req)
	got := collect(t.Context(), New(config), req)
	if !slices.Equal(got.ids, whole) || got.finish != "" || got.err == nil || !slices.Contains(ModelEOS(), got.ids[len(got.ids)-1]) {
		t.Errorf("%d of %d ids, finish %q, error %v", len(got.ids), len(whole), got.finish, got.err)
	}
}

func TestStallLastsUntilTheCallerLeaves(t *testing.T) {
	for _, kind := range []FaultKind{FaultStall, FaultMute, FaultVanish, FaultFreeze} {
		synctest.Test(t, func(t *testing.T) {
			e := New(Config{Faults: []Fault{{Kind: kind, After: 2}}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			got := collect(ctx, e, request(prompt, 12))
			if got.err == nil || got.err.Kind != engine.TimedOut || got.took != time.Hour {
				t.Errorf("%s: %v after %v", kind, got.err, got.took)
			}
			if s := e.Stats(); s.Aborted != 1 || s.Running != 0 {
				t.Errorf("%s: stats %+v", kind, s)
			}
			if err := e.Health(t.Context()); (err != nil) != (kind == FaultVanish) {
				t.Errorf("%s: health %v", kind, err)
			}
		})
	}
}

func TestPauseAndDripLoseNothing(t *testing.T) {
	for kind, took := range map[FaultKind]time.Duration{FaultPause: time.Minute, FaultDrip: 9 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			e := New(Config{MeanLength: -1, Faults: []Fault{{Kind: kind, After: 3, Delay: Duration(time.Minute)}}})
			req := request(prompt, 12)
			want, _ := e.Reference(req)
			got := collect(t.Context(), e, req)
			if !slices.Equal(got.ids, want) || got.finish != engine.FinishLength || got.took != took {
				t.Errorf("%s: %d ids, finish %q in %v", kind, len(got.ids), got.finish, got.took)
			}
		})
	}
}

func TestOddEnds(t *testing.T) {
	req := request(prompt, 12)
	whole, _ := Reference(Config{MeanLength: -1}, req)
	with := func(f Fault) outcome {
		return collect(t.Context(), New(Config{MeanLength: -1, Faults: []Fault{f}}), req)
	}
	if got := with(Fault{Kind: FaultLength, After: 4}); !slices.Equal(got.ids, whole[:4]) || got.finish != engine.FinishLength {
		t.Errorf("length: %d ids, finish %q", len(got.ids), got.finish)
	}
	if got := with(Fault{Kind: FaultQuiet, After: 4}); !slices.Equal(got.ids, whole[:4]) || got.finish != "" || got.err != nil {
		t.Errorf("quiet: %d ids, finish %q, error %v", len(got.ids), got.finish, got.err)
	}
	if got := with(Fault{Kind: FaultWrongID, After: 4}); int(got.ids[4]) != ModelVocabSize() || got.ids[5] != whole[4] {
		t.Errorf("wrong id: %v", got.ids)
	}
	if got := with(Fault{Kind: FaultWrongID, After: 0, TokenID: -7}); got.ids[0] != -7 {
		t.Errorf("wrong id: %v", got.ids)
	}
}

func TestScript(t *testing.T) {
	e := New(Config{})
	e.SetFaults(
		Fault{Kind: FaultRefuse, Request: "-m01"},
		Fault{Kind: FaultStatus, Status: 429, RetryAfter: 7, Times: 2},
		Fault{Kind: FaultAbort, Nth: 2, Times: 1},
	)
	var got []engine.Kind
	for _, id := range []string{"a-m00", "b-m01", "c-m00", "d-m00", "e-m00", "f-m00", "g-m01"} {
		req := request(prompt, 4)
		req.ID = id
		o := collect(t.Context(), e, req)
		if o.err == nil {
			o.err = &engine.Error{}
		}
		if o.err.Kind == engine.Overloaded && o.err.RetryAfter != 7*time.Second {
			t.Errorf("retry after %v", o.err.RetryAfter)
		}
		got = append(got, o.err.Kind)
	}
	want := []engine.Kind{engine.Overloaded, engine.CannotConnect, engine.Overloaded, 0, engine.EngineError, 0, engine.CannotConnect}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestKillAndRevive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{MeanLength: -1, Gap: time.Second})
		done := make(chan outcome)
		go func() { done <- collect(t.Context(), e, request(prompt, 100)) }()
		time.Sleep(10*time.Second + time.Millisecond)
		e.Kill()
		e.Kill()
		if o := <-done; o.err == nil || o.err.Kind != engine.Disconnected || len(o.ids) != 11 {
			t.Errorf("%d ids, %v", len(o.ids), o.err)
		}
		if o := collect(t.Context(), e, request(prompt, 3)); o.err == nil || o.err.Kind != engine.CannotConnect {
			t.Errorf("a killed worker says %v", o.err)
		}
		if _, err := e.Probe(t.Context()); err == nil {
			t.Error("a killed worker answers the probe")
		}
		e.Revive()
		if o := collect(t.Context(), e, request(prompt, 3)); o.err != nil || len(o.ids) != 3 {
			t.Errorf("a revived worker says %v", o.err)
		}
		if info, err := e.Probe(t.Context()); err != nil || info.Models[0].VocabSize != ModelVocabSize() {
			t.Errorf("probe %+v, %v", info, err)
		}
	})
}

func TestRequestsAreCopies(t *testing.T) {
	e := New(Config{})
	req := request(slices.Clone(prompt), 3)
	req.Stop.TokenIDs = []engine.TokenID{5}
	req.Carried = 2
	collect(t.Context(), e, req)
	req.TokenIDs[0], req.Stop.TokenIDs[0] = 1, 1
	got := e.Requests()
	if len(got) != 1 || !slices.Equal(got[0].TokenIDs, prompt) || got[0].Stop.TokenIDs[0] != 5 || got[0].Carried != 2 || got[0].ID != req.ID {
		t.Errorf("recorded %+v", got)
	}
}

func TestOverlongPromptsAreRefused(t *testing.T) {
	e := New(Config{ContextLength: 4})
	if o := collect(t.Context(), e, request(prompt, 3)); o.err == nil || o.err.Kind != engine.InvalidRequest {
		t.Errorf("error %v", o.err)
	}
}

func TestCallerLeaves(t *testing.T) {
	e := New(Config{})
	for range e.Generate(t.Context(), request(prompt, 30)) {
		break
	}
	if s := e.Stats(); s.Aborted != 1 || s.Running != 0 {
		t.Errorf("stats %+v", s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if o := collect(ctx, e, request(prompt, 30)); o.err == nil || o.err.Kind != engine.Cancelled {
		t.Errorf("error %v", o.err)
	}
}

func TestParseFault(t *testing.T) {
	got, err := ParseFault("reset,after=5,nth=2,times=1,request=-m00")
	if want := (Fault{Kind: FaultReset, After: 5, Nth: 2, Times: 1, Request: "-m00"}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = ParseFault(`{"kind":"pause","after":-1,"delay":"1.5s"}`)
	if want := (Fault{Kind: FaultPause, After: AfterLast, Delay: Duration(1500 * time.Millisecond)}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "explode", "reset,after=x", "reset,colour=red", "status,status=200", `{"kind":1}`, "reset,after=-2"} {
		if _, err := ParseFault(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
	if got, _ := ParseFault("cut,after=last"); got.After != AfterLast {
		t.Errorf("%+v", got)
	}
}

func TestVanishSilencesAllStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{MeanLength: -1, Gap: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		done := make(chan outcome)
		for range 2 {
			go func() { done <- collect(ctx, e, request(prompt, 100)) }()
		}
		time.Sleep(5500 * time.Millisecond)
		e.Vanish()
		for range 2 {
			if o := <-done; o.err == nil || o.err.Kind != engine.TimedOut || len(o.ids) != 6 || o.took != time.Hour {
				t.Errorf("%d ids, %v after %v", len(o.ids), o.err, o.took)
			}
		}
		if o := collect(t.Context(), e, request(prompt, 3)); o.err == nil || o.err.Kind != engine.CannotConnect {
			t.Errorf("later: %v", o.err)
		}
		e.Revive()
		if o := collect(t.Context(), e, request(prompt, 3)); o.err != nil {
			t.Errorf("revived: %v", o.err)
		}
	})
}

func TestKeptSlicesAreSpoiled(t *testing.T) {
	req := request(prompt, 5)
	req.Output.Logprobs = true
	var kept []engine.Delta
	for d := range New(Config{MeanLength: -1}).Generate(t.Context(), req) {
		if d.TokenIDs[0] < 0 {
			t.Error("a delta is spoiled while it is valid")
		}
		kept = append(kept, d)
	}
	for _, d := range kept {
		if d.TokenIDs[0] >= 0 || d.Logprobs[0].ID >= 0 {
			t.Error("a delta of before can still be read")
		}
	}
}
