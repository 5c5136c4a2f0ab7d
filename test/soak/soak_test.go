//go:build unix

package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/engine/sim"
	"baton/test/harness"
)

var howLong = flag.Duration("for", 20*time.Second, "how long faults come")

const (
	streams     = 12 // at once
	eachRequest = time.Minute
	limit       = 20 // moves: no request meets so many faults
)

// bodies are the requests, all of which have one answer only.
func bodies() []string {
	var list []string
	for i := range 8 {
		rest := `"temperature":0`
		if i%2 == 1 {
			rest = fmt.Sprintf(`"temperature":0.8,"seed":%d`, i)
		}
		list = append(list, fmt.Sprintf(
			`{"model":"sim","messages":[{"role":"user","content":"story %d of the sea"}],"max_tokens":%d,"ignore_eos":true,%s,"stream":true,"stream_options":{"include_usage":true}}`,
			i, 60+30*i, rest))
	}
	return list
}

func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	s := &soak{t: t, random: rand.New(rand.NewPCG(1, 2))}
	var urls []string
	for range 3 {
		w := startWorker(t, "--kind", "vllm", "--style", "hash", "--gap", "5ms", "--prefill", "20ms")
		s.fleet = append(s.fleet, w)
		urls = append(urls, w.url())
	}
	s.front = serve(t, urls, "--migration-limit", fmt.Sprint(limit), "--stall-timeout", "1500ms", "--first-token-timeout", "2s",
		"--connect-timeout", "1s", "--inhibit-duration", "500ms", "--health-interval", "300ms", "--drain-timeout", "300ms",
		"--worker-wait-timeout", "20s", "--log-level", "error")

	s.bodies = bodies()
	s.want = answers(t, s.front, chat, s.bodies)
	before := s.measure()

	var clients sync.WaitGroup
	over := make(chan struct{})
	for i := range streams {
		clients.Go(func() { s.ask(i, over) })
	}
	s.torment(over)
	clients.Wait()
	s.heal()
	s.report(before)
}

const chat = "/v1/chat/completions"

// answers are what a frontend says while nothing fails.
func answers(t *testing.T, f *frontend, path string, bodies []string) []*harness.Answer {
	t.Helper()
	list := make([]*harness.Answer, len(bodies))
	var all sync.WaitGroup
	for i, body := range bodies {
		all.Go(func() {
			a, err := harness.Stream(t.Context(), f.url, path, body, nil)
			if err != nil || a.Error != nil {
				t.Errorf("without faults: %v %+v", err, a)
			}
			list[i] = a
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return list
}

// A soak is the run of a fleet and its clients.
type soak struct {
	t      *testing.T
	random *rand.Rand
	fleet  []*worker
	front  *frontend
	bodies []string
	want   []*harness.Answer

	drained *worker
	faults  map[string]int

	whole, wrong, failed atomic.Int64
	longest              atomic.Int64 // request, in nanoseconds
}

// ask sends one request after the other until over is closed.
func (s *soak) ask(first int, over <-chan struct{}) {
	for i := first; ; i++ {
		select {
		case <-over:
			return
		default:
		}
		n := i % len(s.bodies)
		ctx, cancel := context.WithTimeout(context.Background(), eachRequest)
		start := time.Now()
		a, err := harness.Stream(ctx, s.front.url, "/v1/chat/completions", s.bodies[n], nil)
		cancel()
		for took := int64(time.Since(start)); ; {
			longest := s.longest.Load()
			if took <= longest || s.longest.CompareAndSwap(longest, took) {
				break
			}
		}
		want := s.want[n]
		switch {
		case err != nil:
			s.wrong.Add(1)
			s.t.Errorf("a broken stream: %v", err)
		case a.Error != nil:
			s.failed.Add(1)
			if !strings.Contains(a.Error.Message, "its limit of moves is used up") {
				s.t.Errorf("an error that nothing allows: %d %+v after %q", a.Status, a.Error, a.Comments)
			}
			if !strings.HasPrefix(want.Text, a.Text) {
				s.wrong.Add(1)
				s.t.Errorf("%q is no beginning of %q", a.Text, want.Text)
			}
		case a.Text != want.Text || a.Finish != want.Finish || *a.Usage != *want.Usage:
			s.wrong.Add(1)
			s.t.Errorf("request %s:\n got %s %+v %q\nwant %s %+v %q", a.RequestID, a.Finish, *a.Usage, a.Text, want.Finish, *want.Usage, want.Text)
		default:
			s.whole.Add(1)
		}
	}
}

// torment does something to one worker each second. What it did to a process it
// undoes before it does the next such thing, so that a survivor is always there.
func (s *soak) torment(over chan struct{}) {
	defer close(over)
	s.faults = map[string]int{}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for end := time.Now().Add(*howLong); time.Now().Before(end); {
		<-tick.C
		w := s.fleet[s.random.IntN(len(s.fleet))]
		switch what := s.random.IntN(5); what {
		case 0:
			s.heal()
			w.kill()
			s.faults["kill -9, later a restart"]++
		case 1:
			s.heal()
			w.freeze()
			s.faults["SIGSTOP, later SIGCONT"]++
		case 2:
			s.heal()
			s.front.drain(w.id())
			s.drained = w
			s.faults["drain, later undrain"]++
		default:
			if w.process == nil || w.frozen {
				s.heal()
			}
			f := broken[s.random.IntN(len(broken))]
			f.Times, f.Nth, f.After, f.Request = 1+s.random.IntN(3), 1, s.random.IntN(50), "-m"
			w.script(f)
			s.faults[string(f.Kind)]++
		}
	}
}

// broken are the ways in which streams are broken.
var broken = []sim.Fault{
	{Kind: sim.FaultReset}, {Kind: sim.FaultCut}, {Kind: sim.FaultEnd}, {Kind: sim.FaultDone}, {Kind: sim.FaultHalfNumber},
	{Kind: sim.FaultHalfString}, {Kind: sim.FaultAbort}, {Kind: sim.FaultError}, {Kind: sim.FaultStall}, {Kind: sim.FaultGarbage},
	{Kind: sim.FaultWrongID}, {Kind: sim.FaultLength}, {Kind: sim.FaultRefuse}, {Kind: sim.FaultStatus, Status: 503}, {Kind: sim.FaultMute},
}

// heal undoes what was done to the workers' processes.
func (s *soak) heal() {
	for _, w := range s.fleet {
		switch {
		case w.process == nil:
			w.start()
		case w.frozen:
			w.thaw()
		}
	}
	if s.drained != nil {
		s.front.undrain(s.drained.id())
		s.drained = nil
	}
}

// A measure is what a run must not leave behind.
type measure struct{ goroutines, descriptors, memory float64 }

// quiet is longer than connections are kept for another request.
const quiet = 3 * time.Second

// measure waits for quiet and takes the least of what it then sees: probes come
// and go.
func (s *soak) measure() measure {
	http.DefaultClient.CloseIdleConnections()
	var least measure
	deadline := time.Now().Add(quiet)
	for first := true; time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		m := measure{s.front.metric("go_goroutines", nil), s.front.metric("process_open_fds", nil), s.front.metric("process_resident_memory_bytes", nil)}
		if first {
			least, first = m, false
			continue
		}
		least.goroutines, least.descriptors = min(least.goroutines, m.goroutines), min(least.descriptors, m.descriptors)
		least.memory = max(least.memory, m.memory)
	}
	return least
}

// What a run may leave: a probe that is just under way, and memory that the
// runtime has not given back.
const (
	spareGoroutines  = 6
	spareDescriptors = 3
	spareMemory      = 64 << 20
)

// report checks that everything is as it was, and says how it went.
func (s *soak) report(before measure) {
	s.t.Helper()
	model := map[string]string{"model": "sim"}
	for _, w := range s.fleet {
		w.script()
	}
	s.front.waitReady(len(s.fleet))
	for _, gauge := range []string{"dynamo_frontend_inflight_requests", "dynamo_frontend_queued_requests"} {
		if n := s.front.metric(gauge, model); n != 0 {
			s.t.Errorf("%s is %v at the end", gauge, n)
		}
	}
	for _, w := range s.front.workers() {
		if w.InFlight != 0 {
			s.t.Errorf("%d requests in flight on %s", w.InFlight, w.ID)
		}
	}
	for _, w := range s.fleet {
		until(s.t, func() bool { return w.running() == 0 }, func() string { return fmt.Sprintf("%s still runs %d requests", w.id(), w.running()) })
	}
	after := s.measure()
	if after.goroutines > before.goroutines+spareGoroutines || after.descriptors > before.descriptors+spareDescriptors ||
		after.memory > before.memory+spareMemory {
		s.t.Errorf("left behind: %+v, before %+v", after, before)
	}
	moves := 0.0
	for _, kind := range []string{"new_request", "ongoing_request"} {
		moves += s.front.metric("dynamo_frontend_model_migration_total", map[string]string{"migration_type": kind})
	}
	s.t.Logf("%v: %d answers whole, %d wrong, %d failed at the limit; %v moves; the longest request took %v; faults %v",
		*howLong, s.whole.Load(), s.wrong.Load(), s.failed.Load(), moves, time.Duration(s.longest.Load()).Round(time.Millisecond), s.faults)
	s.t.Logf("before %+v, after %+v", before, after)
	if s.whole.Load() == 0 || moves == 0 {
		s.t.Error("nothing happened")
	}
}
