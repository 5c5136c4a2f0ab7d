package router

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
)

func TestKindsThatInhibit(t *testing.T) {
	want := map[engine.Kind]gate{
		engine.Internal: open, engine.Overloaded: open, engine.InvalidRequest: open,
		engine.NoWorker: open, engine.Cancelled: open, engine.TimedOut: open,
		engine.CannotConnect: untilTime, engine.ConnectionTimeout: untilTime, engine.Disconnected: untilTime,
		engine.Stalled: untilProbe, engine.EngineShutdown: untilProbe, engine.EngineError: untilProbe,
		engine.ProtocolError: untilProbe, engine.WorkerMisconfigured: untilProbe,
	}
	if len(want) != int(engine.TimedOut)+1 {
		t.Fatal("the table does not hold every kind")
	}
	for kind, g := range want {
		if got := gateOf(kind); got != g {
			t.Errorf("%v: gate %d, want %d", kind, got, g)
		}
	}
}

func TestInhibitedWorkerIsNotAsked(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(thenFails(1, engine.EngineError))
		r.mustFail(t, request(), engine.EngineError)
		for range 4 {
			r.mustAnswer(t, request(), "w2")
		}
		if n := r.workers["w1"].asked(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// After a stall, health is not enough: only a generated token counts.
func TestOnlyAGenerationBringsAHungEngineBack(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(thenSilent(1))
		r.mustFail(t, request(), engine.Stalled)
		if r.log.count(`until="a probe generates a token"`) != 1 {
			t.Errorf("the log does not say what brings it back: %s", r.log)
		}
		before := f.count(&f.attaches)
		time.Sleep(5 * time.Minute) // health is fine all the time
		r.mustBe(t, "w1", stateInhibited)
		if attaches := f.count(&f.attaches) - before; f.count(&f.probes) < 10 || attaches != 0 {
			t.Errorf("%d generation probes, %d attaches", f.count(&f.probes), attaches)
		}
		f.plays(tokens(1, 0))
		time.Sleep(proofTimeout + 2*testConfig.HealthInterval)
		r.mustBe(t, "w1", stateReady)
		r.mustAnswer(t, request(), "w1")
	})
}

func TestFailingHealthIsNoGoodProbe(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(fails(engine.EngineError, 500))
		r.mustFail(t, request(), engine.EngineError)
		f.do(func() { f.play, f.health = tokens(1, 0), errors.New("503") })
		time.Sleep(time.Minute)
		r.mustBe(t, "w1", stateInhibited)
		f.do(func() { f.health = nil })
		time.Sleep(3 * time.Second)
		r.mustBe(t, "w1", stateReady)
	})
}

func TestPassiveInhibitionDoublesAndOneGoesFirst(t *testing.T) {
	newRig(t, 1, passive(), func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		for _, want := range []time.Duration{5, 10, 20, 40, 60, 60} {
			want *= time.Second
			f.plays(fails(engine.Disconnected, 0))
			r.mustFail(t, request(), engine.Disconnected)
			time.Sleep(want - time.Millisecond)
			r.mustBe(t, "w1", stateInhibited)
			time.Sleep(time.Millisecond)
			r.mustBe(t, "w1", stateSuspect)
		}
		// One goes first. Nine wait until its first token.
		f.plays(tokens(2, time.Second))
		for range 10 {
			go r.ask(t.Context(), request())
		}
		synctest.Wait()
		before := f.asked()
		time.Sleep(500 * time.Millisecond)
		if n := f.asked() - before; n > 0 {
			t.Errorf("%d more requests before the first token", n)
		}
		time.Sleep(time.Second)
		if n := f.asked() - before; n != 9 {
			t.Errorf("%d of 9 requests followed", n)
		}
		time.Sleep(3 * time.Second)
		// The success reset the doubling.
		f.plays(fails(engine.Disconnected, 0))
		r.mustFail(t, request(), engine.Disconnected)
		time.Sleep(5 * time.Second)
		r.mustBe(t, "w1", stateSuspect)
		if f.count(&f.probes) != 0 {
			t.Errorf("%d probes in passive mode", f.count(&f.probes))
		}
	})
}

// In passive mode there is no other way back than time.
func TestPassiveStallComesBackByTime(t *testing.T) {
	newRig(t, 1, passive(), func(t *testing.T, r *rig) {
		r.workers["w1"].plays(thenSilent(1))
		r.mustFail(t, request(), engine.Stalled)
		r.workers["w1"].plays(tokens(1, 0))
		time.Sleep(5 * time.Second)
		r.mustAnswer(t, request(), "w1")
		r.mustBe(t, "w1", stateReady)
	})
}

func TestTrialThatProvesNothing(t *testing.T) {
	newRig(t, 1, passive(), func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(fails(engine.CannotConnect, 0))
		r.mustFail(t, request(), engine.CannotConnect)
		time.Sleep(5 * time.Second)
		f.plays(thenSilent(0))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.ask(ctx, request())
		r.mustBe(t, "w1", stateSuspect) // the client left: nothing learned, nobody locked out
		f.plays(refuses(503, 0))
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r.ask(ctx, request())
		time.Sleep(time.Second)
		r.mustBe(t, "w1", stateSuspect)
		f.plays(tokens(1, 0))
		r.mustAnswer(t, request(), "w1")
		r.mustBe(t, "w1", stateReady)
	})
}

// Fifty streams that die with their worker are one death.
func TestOneDeathOfManyStreamsInhibitsOnce(t *testing.T) {
	newRig(t, 1, passive(), func(t *testing.T, r *rig) {
		die := make(chan struct{})
		r.workers["w1"].plays(func(ctx context.Context, req *engine.Request, yield func(engine.Delta, error) bool) {
			if yield(engine.Delta{TokenIDs: []engine.TokenID{1}}, nil) {
				<-die
				yield(engine.Delta{}, &engine.Error{Kind: engine.Disconnected})
			}
		})
		for range 50 {
			go r.ask(t.Context(), request())
		}
		synctest.Wait()
		close(die)
		synctest.Wait()
		r.mustBe(t, "w1", stateInhibited)
		time.Sleep(5 * time.Second)
		r.mustBe(t, "w1", stateSuspect)
		if n := r.log.count("worker inhibited"); n != 1 {
			t.Errorf("%d warnings", n)
		}
	})
}

func TestGoodProbeEndsAnInhibitionEarly(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(thenFails(1, engine.Disconnected))
		r.mustFail(t, request(), engine.Disconnected)
		if r.log.count(`until="5s have passed or a probe generates a token"`) != 1 {
			t.Errorf("the log does not say what brings it back: %s", r.log)
		}
		f.plays(tokens(1, 0))
		time.Sleep(time.Second)
		r.mustBe(t, "w1", stateReady)
		if f.count(&f.attaches) != 2 {
			t.Errorf("attached %d times", f.count(&f.attaches))
		}
	})
}

// While probes find a worker dead, no request has to find that out.
func TestNoRequestIsSpentOnADeadWorker(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.do(func() { f.down, f.play = true, fails(engine.CannotConnect, 0) })
		r.mustFail(t, request(), engine.CannotConnect)
		for range 100 {
			time.Sleep(time.Second)
			r.mustAnswer(t, request(), "w2")
		}
		if n := f.asked(); n != 1 {
			t.Errorf("%d requests were sent to the dead worker", n)
		}
	})
}

// The process answers everything but generations, so it can be attached again;
// the probes find out what is wrong with it, and no request has to.
func TestNoRequestIsSpentWhileProbesFail(t *testing.T) {
	newRig(t, 2, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(fails(engine.Disconnected, 0))
		r.mustFail(t, request(), engine.Disconnected)
		for range 100 {
			time.Sleep(time.Second)
			r.mustAnswer(t, request(), "w2")
		}
		if n := f.asked(); n != 1 {
			t.Errorf("%d requests were sent to the worker", n)
		}
	})
}

func TestAnotherModelAtTheSameAddress(t *testing.T) {
	for _, cfg := range []Config{testConfig, passive()} {
		newRig(t, 2, cfg, func(t *testing.T, r *rig) {
			f := r.workers["w1"]
			f.plays(thenFails(1, engine.Disconnected))
			r.mustFail(t, request(), engine.Disconnected)
			f.do(func() { f.models, f.play = []Model{{Name: "other", Own: "x"}}, tokens(1, 0) })
			for range 20 {
				time.Sleep(time.Second)
				r.mustAnswer(t, request(), "w2")
			}
			req := request()
			req.Model = "other"
			r.mustAnswer(t, req, "w1")
			if got := f.requests[len(f.requests)-1].Model; got != "x" {
				t.Errorf("asked for model %q", got)
			}
		})
	}
}

func TestInhibitionOff(t *testing.T) {
	cfg := testConfig
	cfg.InhibitDuration = 0
	newRig(t, 1, cfg, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(thenFails(1, engine.Disconnected))
		r.mustFail(t, request(), engine.Disconnected)
		r.mustFail(t, request(), engine.Disconnected)
		f.plays(fails(engine.WorkerMisconfigured, 404))
		r.mustFail(t, request(), engine.WorkerMisconfigured)
		f.plays(tokens(1, 0))
		r.mustAnswer(t, request(), "w1")
	})
}
