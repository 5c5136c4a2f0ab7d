//go:build unix

package soak

import (
	"flag"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/test/harness"
)

var crowd = flag.Int("crowd", 300, "how many slow streams are open when half of them lose their worker")

// Many streams with a token a second are open, and half of them lose their worker
// in one blow: it is killed, or it stands still and the stall bound of each stream
// has to run out in time. All answers are whole, and none waited much longer.
func TestHalfOfACrowdIsMoved(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts processes, and takes half a minute")
	}
	const (
		tokens = 26
		stall  = 4 * time.Second
	)
	for name, blow := range map[string]func(*worker){"killed": (*worker).kill, "stands still": (*worker).freeze} {
		t.Run(name, func(t *testing.T) {
			var workers [2]*worker
			var urls []string
			for i := range workers {
				workers[i] = startWorker(t, "--kind", "vllm", "--style", "whole", "--gap", "1s")
				urls = append(urls, workers[i].url())
			}
			front := serve(t, urls, "--migration-limit", "3", "--migration-spacing", "0", "--stall-timeout", stall.String(), "--log-level", "error")
			front.waitReady(2)
			body := fmt.Sprintf(story, tokens)
			var begun atomic.Int32
			var clients sync.WaitGroup
			allBegun := make(chan struct{})
			texts, gaps := make([]string, *crowd), make([]time.Duration, *crowd)
			pace := time.NewTicker(time.Millisecond)
			defer pace.Stop()
			for i := range *crowd {
				<-pace.C
				clients.Go(func() {
					last := time.Time{}
					a, err := harness.Stream(t.Context(), front.url, "/v1/chat/completions", body, func(n int) {
						if n == 1 && int(begun.Add(1)) == *crowd {
							close(allBegun)
						}
						now := time.Now()
						if !last.IsZero() {
							gaps[i] = max(gaps[i], now.Sub(last))
						}
						last = now
					})
					if err != nil || a.Error != nil {
						t.Errorf("%v %+v", err, a)
						return
					}
					texts[i] = a.Text
				})
			}
			select {
			case <-allBegun:
			case <-time.After(patience):
				t.Fatalf("%d of %d streams began", begun.Load(), *crowd)
			}
			lost := workers[0].running()
			blow(workers[0])
			clients.Wait()
			if workers[0].frozen {
				workers[0].thaw()
			}
			for i, text := range texts {
				if text != texts[0] {
					t.Fatalf("stream %d: %q, stream 0: %q", i, text, texts[0])
				}
			}
			moved := front.metric("dynamo_frontend_model_migration_total", map[string]string{"model": "sim", "migration_type": "ongoing_request"})
			t.Logf("%d streams, %d lost their worker, %v moves; longest silence: median %v, p99 %v, longest %v",
				*crowd, lost, moved, quantile(gaps, .5), quantile(gaps, .99), quantile(gaps, 1))
			if int(moved) < lost || int(moved) > *crowd {
				t.Errorf("%v moves of %d streams", moved, lost)
			}
			if longest := quantile(gaps, 1); longest > stall+10*time.Second {
				t.Errorf("a stream was silent for %v, the bound is %v", longest, stall)
			}
		})
	}
}
