//go:build unix

package soak

import (
	"flag"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/test/harness"
)

var atOnce = flag.Int("streams", 200, "how many are moved at once")

const story = `{"model":"sim","messages":[{"role":"user","content":"the sea"}],"max_tokens":%d,"ignore_eos":true,"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`

// A pair is two workers behind proxies, and a frontend.
type pair struct {
	workers [2]*worker
	proxies [2]*proxy
	seen    *sightings
	front   *frontend
}

func newPair(t *testing.T, gap string, args ...string) *pair {
	p := &pair{seen: newSightings()}
	var urls []string
	for i := range p.workers {
		p.workers[i] = startWorker(t, "--kind", "vllm", "--style", "whole", "--gap", gap)
		p.proxies[i] = startProxy(t, p.workers[i].id(), p.seen)
		urls = append(urls, p.proxies[i].url())
	}
	p.front = serve(t, urls, append([]string{"--migration-limit", "3", "--health-interval", "100ms", "--inhibit-duration", "100ms", "--log-level", "error"}, args...)...)
	return p
}

// busy is the worker that runs requests.
func (p *pair) busy() *worker {
	for _, w := range p.workers {
		if w.running() > 0 {
			return w
		}
	}
	return nil
}

// quantile returns what the given part of the durations does not exceed.
func quantile(list []time.Duration, part float64) time.Duration {
	slices.Sort(list)
	return list[min(int(part*float64(len(list))), len(list)-1)]
}

// After kill -9 the request is on the survivor's socket at once.
func TestKilledWorkersRequestIsSoonElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many processes")
	}
	const (
		rounds  = 20
		claimed = time.Millisecond // the median
		allowed = 10 * claimed     // the machine may be busy
	)
	p := newPair(t, "5ms")
	body := fmt.Sprintf(story, 40)
	want := answers(t, p.front, chat, []string{body})[0]
	for range rounds {
		p.front.waitReady(2)
		a, err := harness.Stream(t.Context(), p.front.url, "/v1/chat/completions", body, func(n int) {
			if n == 10 {
				if w := p.busy(); w != nil {
					w.kill()
				}
			}
		})
		if err != nil || a.Error != nil || a.Text != want.Text {
			t.Fatalf("%v %+v", err, a)
		}
		for _, w := range p.workers {
			if w.process == nil {
				w.start()
			}
		}
	}
	gaps := p.seen.gaps()
	if len(gaps) != rounds {
		t.Fatalf("%d of %d requests were seen elsewhere", len(gaps), rounds)
	}
	median := quantile(gaps, .5)
	t.Logf("from the end of the dead worker's connection to the request on the survivor's: median %v, p90 %v, least %v", median, quantile(gaps, .9), gaps[0])
	if median > allowed {
		t.Errorf("median %v, the claim is %v", median, claimed)
	}
}

// Without spacing all streams of a killed worker are on the survivor's sockets soon.
func TestManyStreamsAreMovedAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	const (
		claimed = 50 * time.Millisecond // p99
		allowed = 10 * claimed
	)
	streams := *atOnce
	p := newPair(t, "100ms", "--migration-spacing", "0")
	body := fmt.Sprintf(story, 60) // 6 s: all shall run when the worker dies
	want := answers(t, p.front, chat, []string{body})[0]

	// All go to one worker, because the other one is drained until they run.
	survivor := p.proxies[1].listener.Addr().String()
	p.front.drain(survivor)
	var begun atomic.Int32
	var clients sync.WaitGroup
	allBegun := make(chan struct{})
	for range streams {
		clients.Go(func() {
			a, err := harness.Stream(t.Context(), p.front.url, "/v1/chat/completions", body, func(n int) {
				if n == 1 && int(begun.Add(1)) == streams {
					close(allBegun)
				}
			})
			if err != nil || a.Error != nil || a.Text != want.Text {
				t.Errorf("%v %+v", err, a)
			}
		})
	}
	select {
	case <-allBegun:
	case <-time.After(patience):
		t.Fatalf("%d of %d streams began", begun.Load(), streams)
	}
	p.front.undrain(survivor)
	p.workers[0].kill()
	clients.Wait()
	gaps := p.seen.gaps()
	if len(gaps) != streams {
		t.Fatalf("%d of %d streams were seen elsewhere", len(gaps), streams)
	}
	t.Logf("%d streams moved at once: median %v, p99 %v, last %v", streams, quantile(gaps, .5), quantile(gaps, .99), gaps[len(gaps)-1])
	if p99 := quantile(gaps, .99); p99 > allowed {
		t.Errorf("p99 %v, the claim is %v", p99, claimed)
	}
}

// The streams of the worker that takes over a dead one's do not stand still
// meanwhile.
func TestTheSurvivorsOwnStreamsFlow(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes")
	}
	const (
		own     = 100
		tokens  = 250
		claimed = 50 * time.Millisecond // more than before
		allowed = 10 * claimed
	)
	for _, c := range []struct {
		moved   int
		spacing string
	}{{50, "0"}, {200, "0"}, {200, "5ms"}} {
		t.Run(fmt.Sprintf("%d moved, spacing %s", c.moved, c.spacing), func(t *testing.T) {
			p := newPair(t, "20ms", "--migration-spacing", c.spacing, "--drain-timeout", "5m")
			body := fmt.Sprintf(story, tokens)
			want := answers(t, p.front, chat, []string{body})[0]
			dying, survivor := p.proxies[0].listener.Addr().String(), p.proxies[1].listener.Addr().String()

			var killed atomic.Int64 // in Unix nanoseconds
			var mu sync.Mutex       // guards the gaps
			var before, after time.Duration
			var clients sync.WaitGroup
			begin := func(n int, token func(from, to time.Time)) {
				var begun sync.WaitGroup
				begun.Add(n)
				for range n {
					clients.Go(func() {
						var last time.Time
						a, err := harness.Stream(t.Context(), p.front.url, "/v1/chat/completions", body, func(n int) {
							now := time.Now()
							if n == 1 {
								begun.Done()
							} else if token != nil {
								token(last, now)
							}
							last = now
						})
						if err != nil || a.Error != nil || a.Text != want.Text {
							t.Errorf("%v %+v", err, a)
						}
					})
				}
				begun.Wait()
			}
			p.front.drain(dying)
			begin(own, func(from, to time.Time) {
				gap := to.Sub(from)
				mu.Lock()
				defer mu.Unlock()
				switch at := killed.Load(); {
				case at == 0:
					before = max(before, gap)
				case to.UnixNano() > at && from.UnixNano() < at+int64(time.Second): // what the blow costs is paid soon
					after = max(after, gap)
				}
			})
			p.front.undrain(dying)
			p.front.drain(survivor)
			begin(c.moved, nil)
			p.front.undrain(survivor)
			mu.Lock()
			before = 0 // the beginning of so many streams is no time to compare with
			mu.Unlock()
			time.Sleep(time.Second)
			killed.Store(time.Now().UnixNano())
			p.workers[0].kill()
			clients.Wait()
			if n := len(p.seen.gaps()); n != c.moved {
				t.Errorf("%d of %d streams were moved", n, c.moved)
			}
			t.Logf("%d streams with a token each 20ms; longest gap %v in the second before, %v in the second after %d others were moved to their worker",
				own, before.Round(time.Millisecond), after.Round(time.Millisecond), c.moved)
			if after > before+allowed {
				t.Errorf("a gap of %v, and %v before: the claim is no more than %v on top", after, before, claimed)
			}
		})
	}
}
