package router

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/engine"
)

// stallOf asks once and returns after how long the attempt failed, and how.
func (r *rig) stallOf(t *testing.T) (time.Duration, *engine.Error) {
	t.Helper()
	start := time.Now()
	_, _, e := r.ask(t.Context(), request())
	if e == nil {
		t.Fatal("no error")
	}
	return time.Since(start), e
}

// offGrid is no time at which looks fall together, so that bounds have to be exact
// on their own.
const offGrid = 37 * time.Millisecond

func TestSilenceBounds(t *testing.T) {
	for _, c := range []struct {
		name         string
		first, stall time.Duration
		play         script
		after        time.Duration
	}{
		{"no first token", 5 * time.Minute, 30 * time.Second, thenSilent(0), 5 * time.Minute},
		{"no further token", 5 * time.Minute, 30 * time.Second, thenSilent(2), 30 * time.Second},
		{"bounds below a second", 500 * time.Millisecond, 20 * time.Millisecond, thenSilent(1), 20 * time.Millisecond},
		{"first below stall", 700 * time.Millisecond, 2500 * time.Millisecond, thenSilent(0), 700 * time.Millisecond},
		{"no bound before the first token", 0, time.Second, thenSilent(1), time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig
			cfg.FirstTokenTimeout, cfg.StallTimeout = c.first, c.stall
			newRig(t, 1, cfg, func(t *testing.T, r *rig) {
				r.workers["w1"].plays(c.play)
				time.Sleep(offGrid)
				after, e := r.stallOf(t)
				if after != c.after || e.Kind != engine.Stalled || e.WorkerID != "w1" {
					t.Errorf("after %v: %v", after, e)
				}
				r.workers["w1"].plays(tokens(1, 0))
			})
		})
	}
}

// A worker that has delivered all that was asked for is not waited for as long as
// for a token, and one that only is a little late with its finish reason is not
// to blame.
func TestSilenceAfterTheLastToken(t *testing.T) {
	for _, c := range []struct {
		name    string
		stall   time.Duration
		budget  int
		context int
		after   time.Duration
	}{
		{"the budget is used up", 30 * time.Second, 2, 0, finishGrace},
		{"the context is full", 30 * time.Second, 9, 5, finishGrace},
		{"one token is missing", 30 * time.Second, 3, 6, 30 * time.Second},
		{"the stall bound is shorter", 200 * time.Millisecond, 2, 0, 200 * time.Millisecond},
		{"no stall bound", 0, 2, 0, finishGrace},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig
			cfg.StallTimeout = c.stall
			newRig(t, 1, cfg, func(t *testing.T, r *rig) {
				r.workers["w1"].plays(thenSilent(2))
				req := request()
				req.Stop.MaxTokens, req.ContextLength = c.budget, c.context
				time.Sleep(offGrid)
				start := time.Now()
				if e := r.mustFail(t, req, engine.Stalled); time.Since(start) != c.after {
					t.Errorf("after %v: %v", time.Since(start), e)
				}
				r.workers["w1"].plays(tokens(1, 0))
			})
		})
	}
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(func(ctx context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
			if yield(engine.Delta{TokenIDs: []engine.TokenID{1}}, nil) && sleep(ctx, finishGrace-time.Millisecond) {
				yield(engine.Delta{FinishReason: engine.FinishLength}, nil)
			}
		})
		req := request()
		req.Stop.MaxTokens = 1
		r.mustAnswer(t, req, "w1")
		r.mustBe(t, "w1", stateReady)
	})
}

func TestBoundsOff(t *testing.T) {
	cfg := testConfig
	cfg.FirstTokenTimeout, cfg.StallTimeout = 0, 0
	newRig(t, 1, cfg, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(tokens(3, 10*time.Hour))
		r.mustAnswer(t, request(), "w1")
	})
}

func TestSlowWorkerWithinTheBoundIsLeftAlone(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(tokens(10, 29*time.Second))
		r.mustAnswer(t, request(), "w1")
	})
}

// A client that takes a minute per token makes no worker look dead.
func TestSlowConsumerIsNoSilence(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(tokens(5, 20500*time.Millisecond))
		n := 0
		for d, err := range r.Generate(t.Context(), request()) {
			if err != nil {
				t.Fatal(err)
			}
			n += len(d.TokenIDs)
			f := r.workers["w1"]
			dials := f.count(&f.dials)
			time.Sleep(time.Hour)
			if f.count(&f.dials) != dials {
				t.Error("the router looked while the consumer held a delta")
			}
		}
		if n != 5 {
			t.Errorf("%d tokens", n)
		}
	})
}

// Deltas without ids do not feed the watchdog, nor does the time in which they
// are looked at count twice; they are not passed on either.
func TestEmptyDeltasDoNotFeed(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(func(ctx context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
			if !yield(engine.Delta{TokenIDs: []engine.TokenID{1}}, nil) {
				return
			}
			for sleep(ctx, 700*time.Millisecond) {
				if !yield(engine.Delta{}, nil) {
					return
				}
			}
			yield(engine.Delta{}, &engine.Error{Kind: engine.Disconnected})
		})
		start, deltas := time.Now(), 0
		for d, err := range r.Generate(t.Context(), request()) {
			if err != nil {
				if e := err.(*engine.Error); e.Kind != engine.Stalled || time.Since(start) != 30*time.Second {
					t.Errorf("%v after %v", e, time.Since(start))
				}
				continue
			}
			if deltas++; len(d.TokenIDs) == 0 {
				t.Error("an empty delta was passed on")
			}
		}
		if deltas != 1 {
			t.Errorf("%d deltas", deltas)
		}
	})
}

// What arrives after the verdict was never there.
func TestNoTokenAfterTheVerdict(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		r.workers["w1"].plays(func(ctx context.Context, req *engine.Request, yield func(engine.Delta, error) bool) {
			<-ctx.Done()
			if yield(engine.Delta{TokenIDs: []engine.TokenID{1}}, nil) && req.ID == "q-r000" {
				t.Error("the loop went on")
			}
		})
		ids, _, e := r.ask(t.Context(), request())
		if len(ids) != 0 || e == nil || e.Kind != engine.Stalled {
			t.Errorf("ids %v, error %v", ids, e)
		}
	})
}

func TestClosedPortIsADeath(t *testing.T) {
	for _, c := range []struct {
		name  string
		play  script
		after time.Duration
	}{
		{"before the first token", thenSilent(0), time.Second},
		{"in the middle", thenSilent(3), time.Second},
		{"of a slow stream", func(ctx context.Context, req *engine.Request, yield func(engine.Delta, error) bool) {
			n := 0
			tokens(100, 300*time.Millisecond)(ctx, req, func(d engine.Delta, err error) bool {
				if n++; n == 11 {
					<-ctx.Done()
					yield(engine.Delta{}, &engine.Error{Kind: engine.Disconnected})
					return false
				}
				return yield(d, err)
			})
		}, 6 * time.Second}, // ten tokens and ten times their pace,
	} {
		t.Run(c.name, func(t *testing.T) {
			newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
				f := r.workers["w1"]
				f.plays(c.play)
				f.do(func() { f.down = true })
				after, e := r.stallOf(t)
				if after != c.after {
					t.Errorf("found after %v, want %v", after, c.after)
				}
				if e.Kind != engine.Disconnected || e.WorkerID != "w1" || !strings.Contains(e.Error(), "port is closed") || !errors.Is(e, syscall.ECONNREFUSED) {
					t.Errorf("error %v", e)
				}
				r.mustBe(t, "w1", stateInhibited)
			})
		})
	}
}

// The port closes later, long into a silence: looks are repeated.
func TestLooksAreRepeated(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(thenSilent(0))
		time.AfterFunc(100*time.Second+time.Millisecond, func() { f.do(func() { f.down = true }) })
		if after, e := r.stallOf(t); after != 101*time.Second || e.Kind != engine.Disconnected {
			t.Errorf("after %v: %v", after, e)
		}
		if f.count(&f.dials) != 101 {
			t.Errorf("%d looks in 101 s", f.count(&f.dials))
		}
	})
}

func TestStreamsShareALook(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(thenSilent(1))
		r.cfg.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { // a black hole
			f.do(func() { f.dials++ })
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Err: ctx.Err()}
		}
		ends := make(chan string)
		start := time.Now()
		for range 50 {
			go func() {
				_, _, e := r.ask(t.Context(), request())
				ends <- fmt.Sprint(e.Kind, " ", time.Since(start))
			}()
		}
		for range 50 {
			if end := <-ends; end != "disconnected 4s" { // 1 s of silence and the connect bound
				t.Error(end)
			}
		}
		if f.count(&f.dials) != 1 {
			t.Errorf("%d looks", f.count(&f.dials))
		}
		if n := r.log.count("worker inhibited"); n != 1 {
			t.Errorf("%d warnings", n)
		}
	})
}

// Streams that fall silent one after the other find the same death.
func TestLaterLooksAreTheSameDeath(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(thenSilent(1))
		ends := make(chan time.Duration)
		start := time.Now()
		for i := range 5 {
			go func() {
				time.Sleep(time.Duration(i) * 200 * time.Millisecond)
				r.ask(t.Context(), request())
				ends <- time.Since(start)
			}()
		}
		f.do(func() { f.down = true })
		for i := range 5 {
			if d, want := <-ends, time.Second+time.Duration(i)*200*time.Millisecond; d < want || d > want+lookSlack {
				t.Errorf("stream %d ended after %v, want %v or a little later", i, d, want)
			}
		}
		if n := r.log.count("worker inhibited"); n != 1 {
			t.Errorf("%d warnings", n)
		}
	})
}

// A server that stops may let its streams finish behind its closed port.
func TestFlowingStreamsSurviveAClosedPort(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(tokens(100, 100*time.Millisecond))
		done := make(chan *engine.Error)
		go func() {
			_, _, e := r.ask(t.Context(), request())
			done <- e
		}()
		time.Sleep(time.Second)
		f.plays(thenSilent(1))
		f.do(func() { f.down = true })
		if after, e := r.stallOf(t); after != time.Second || e.Kind != engine.Disconnected {
			t.Errorf("the silent stream after %v: %v", after, e)
		}
		r.mustBe(t, "w1", stateInhibited) // new requests would fail
		if e := <-done; e != nil {
			t.Errorf("the flowing stream: %v", e)
		}
	})
}

// The client leaves while its stream's look hangs: it does not wait for it, and
// the next silent stream looks again.
func TestLookEndsWithItsStream(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(thenSilent(1))
		r.cfg.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		start := time.Now()
		r.ask(ctx, request())
		if d := time.Since(start); d != 1500*time.Millisecond {
			t.Errorf("left after %v", d)
		}
		r.mustBe(t, "w1", stateReady)
		if after, e := r.stallOf(t); after != 4*time.Second || e.Kind != engine.Disconnected {
			t.Errorf("after %v: %v", after, e)
		}
	})
}

// A look that hangs puts off no bound.
func TestABoundDuringALook(t *testing.T) {
	for _, c := range []struct {
		name  string
		stall time.Duration
		play  script
		after time.Duration
	}{
		{"the stall bound", 2 * time.Second, thenSilent(1), 2 * time.Second},
		{"of a finish reason", 30 * time.Second, thenSilent(3), finishGrace},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig
			cfg.StallTimeout = c.stall
			newRig(t, 1, cfg, func(t *testing.T, r *rig) {
				r.workers["w1"].plays(c.play)
				looks := 0
				r.cfg.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					looks++
					<-ctx.Done()
					return nil, ctx.Err()
				}
				req := request()
				req.Stop.MaxTokens = 3
				time.Sleep(offGrid)
				start := time.Now()
				e := r.mustFail(t, req, engine.Stalled)
				if after := time.Since(start); after != c.after || looks != 1 {
					t.Errorf("after %v and %d looks: %v", after, looks, e)
				}
			})
		})
	}
}

// However a stream lies in time, a closed port is found as soon as it matters, or a
// little later, and looked for once a second.
func TestLooksFallTogether(t *testing.T) {
	for _, begin := range []time.Duration{0, time.Millisecond, offGrid, 124999 * time.Microsecond, 900 * time.Millisecond} {
		newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
			f := r.workers["w1"]
			f.plays(thenSilent(1))
			start := time.Now()
			var looks []time.Duration
			r.cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
				looks = append(looks, time.Since(start))
				return nil, &net.OpError{Op: "dial", Err: syscall.EMFILE} // says nothing of the worker
			}
			time.Sleep(begin)
			r.stallOf(t)
			for i, at := range looks {
				due := begin + time.Duration(i+1)*time.Second
				if late := at - due; late < 0 || late > lookSlack || at%lookSlack != 0 {
					t.Errorf("begun after %v: look %d at %v", begin, i, at)
				}
			}
			if len(looks) != 29 {
				t.Errorf("begun after %v: %d looks", begin, len(looks))
			}
		})
	}
}

func TestOurOwnTroublesAreNotTheWorkers(t *testing.T) {
	for _, cause := range []error{syscall.EMFILE, syscall.EADDRNOTAVAIL, &net.DNSError{Err: "server misbehaving", IsTemporary: true}} {
		newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
			r.workers["w1"].plays(thenSilent(1))
			r.cfg.Dial = func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: cause}
			}
			if after, e := r.stallOf(t); after != 30*time.Second || e.Kind != engine.Stalled {
				t.Errorf("%v: after %v: %v", cause, after, e)
			}
		})
	}
}

func TestStalledAttemptIsCancelledWithItsCause(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		var cause error
		r.workers["w1"].plays(func(ctx context.Context, req *engine.Request, yield func(engine.Delta, error) bool) {
			thenSilent(1)(ctx, req, yield)
			cause = context.Cause(ctx)
		})
		_, e := r.stallOf(t)
		if cause != error(e) {
			t.Errorf("cause %v, error %v", cause, e)
		}
	})
}

func TestAddressOf(t *testing.T) {
	for in, want := range map[string]string{
		"http://10.0.0.1:8000": "10.0.0.1:8000", "http://host": "host:80", "https://host/x": "host:443",
		"http://[::1]:8000": "[::1]:8000", "": "", "::": "",
	} {
		if got := addressOf(in); got != want {
			t.Errorf("addressOf(%q) = %q, want %q", in, got, want)
		}
	}
}

// instant yields n deltas of one token without any work.
type instant struct {
	fakeWorker
	n   int
	ids []engine.TokenID
}

func (c *instant) Generate(context.Context, *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		for range c.n {
			if !yield(engine.Delta{TokenIDs: c.ids}, nil) {
				return
			}
		}
		yield(engine.Delta{TokenIDs: c.ids, FinishReason: engine.FinishLength}, nil)
	}
}

// BenchmarkPerToken is what the router adds to each delta of a stream.
func BenchmarkPerToken(b *testing.B) {
	r, stop := attached(b, &instant{n: b.N, ids: []engine.TokenID{7}})
	defer stop()
	b.ReportAllocs()
	b.ResetTimer()
	for _, err := range r.Generate(b.Context(), request()) {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPerRequest is what a request of one token costs in the router.
func BenchmarkPerRequest(b *testing.B) {
	r, stop := attached(b, &instant{ids: []engine.TokenID{7}})
	defer stop()
	req := request()
	req.Trace = nil
	b.ReportAllocs()
	for b.Loop() {
		for range r.Generate(b.Context(), req) {
		}
	}
}

func TestNoAllocationPerToken(t *testing.T) {
	const n = 2000
	r, stop := attached(t, &instant{n: n, ids: []engine.TokenID{7}})
	defer stop()
	perRequest := testing.AllocsPerRun(20, func() {
		for range r.Generate(t.Context(), request()) {
		}
	})
	if perRequest > n/10 {
		t.Errorf("%v allocations for a stream of %d tokens", perRequest, n)
	}
}

// attached returns a running router over one worker, outside a bubble.
func attached(t testing.TB, client engine.Client) (*Router, func()) {
	up := &Worker{Client: client, Models: []Model{{Name: "m", Own: "m"}}}
	attach := func(context.Context, Spec) (*Worker, error) { return up, nil }
	r := New([]Spec{{ID: "w", URL: "http://127.0.0.1:1"}}, attach, passive(), discard, noMetrics{}, "test", func(int) int { return 0 })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx) }()
	for len(r.Models()) == 0 {
		time.Sleep(time.Millisecond)
	}
	return r, func() { cancel(); <-done }
}

// The same over real sockets: a worker whose port is closed and one whose port is open.
func TestRealPorts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	r := New(nil, nil, passive(), discard, noMetrics{}, "test", func(int) int { return 0 })
	address := listener.Addr().String()
	if err := r.portClosed(t.Context(), address); err != nil {
		t.Errorf("open port: %v", err)
	}
	listener.Close()
	if err := r.portClosed(t.Context(), address); err == nil {
		t.Error("a closed port looks open")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.portClosed(ctx, address); err != nil {
		t.Errorf("a look that was cancelled: %v", err)
	}
}

// A stream that was quick and becomes slow is measured again.
func TestPaceFollowsTheStream(t *testing.T) {
	newRig(t, 1, testConfig, func(t *testing.T, r *rig) {
		f := r.workers["w1"]
		f.plays(func(ctx context.Context, _ *engine.Request, yield func(engine.Delta, error) bool) {
			for i := range 500 {
				pause := 10 * time.Millisecond
				if i >= 300 {
					pause = 1500 * time.Millisecond
				}
				if !sleep(ctx, pause) || !yield(engine.Delta{TokenIDs: []engine.TokenID{1}}, nil) {
					return
				}
			}
			yield(engine.Delta{FinishReason: engine.FinishLength}, nil)
		})
		r.mustAnswer(t, request(), "w1")
		if n := f.count(&f.dials); n == 0 || n > 3 {
			t.Errorf("%d looks at a stream that became slow", n)
		}
	})
}
