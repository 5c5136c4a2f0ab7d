package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/config"
	"baton/discovery"
	"baton/engine"
	"baton/engine/sim"
	"baton/model"
	"baton/router"
)

// Over a thousand workers come, answer and go: no goroutine, no connection and no
// series stays. One server plays them all, at as many addresses of this machine.
func TestWorkersThatGoLeaveNothingBehind(t *testing.T) {
	models, err := model.NewSet(model.Options{Paths: map[string]string{"": modelFolder(t)}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	if l, err = net.Listen("tcp", fmt.Sprintf("0.0.0.0:%d", port)); err != nil {
		t.Skip("the port is taken:", err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: sim.NewServer(sim.Config{Style: sim.StyleHash, MeanLength: -1})}}
	s.Start()
	defer s.Close()

	log := slog.New(slog.DiscardHandler)
	cfg, err := config.LoadServe([]string{"--worker", fmt.Sprintf("http://127.0.0.1:%d", port), "--health-interval", "0"}, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	found := newAttacher(cfg, models, log)
	found.onModel = func(string) {}
	reg := prometheus.NewRegistry()
	workers := router.New(specs(cfg), found.attach, routerConfig(cfg, found), log, reg, "test", func(int) int { return 0 })
	const rounds, size = 24, 50
	next := make(chan int)
	source := sets(func(ctx context.Context, report func([]discovery.Target)) {
		for n := range next {
			targets := []discovery.Target{{URL: cfg.Workers[0].URL}}
			for i := range size {
				targets = append(targets, discovery.Target{URL: fmt.Sprintf("http://127.0.%d.%d:%d", 1+n, 1+i, port)})
			}
			report(targets[:min(1+n*size, len(targets))]) // none but the first in round 0
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- together(workers.Run, following(source, workers))(ctx) }()

	until := func(what string, ok func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !ok(); {
			if time.Now().After(deadline) {
				t.Fatalf("it never came that %s: %d workers", what, len(workers.Workers()))
			}
			<-time.After(time.Millisecond) // polls real connections
		}
	}
	round := func(n int) {
		t.Helper()
		next <- n
		want := min(1+n*size, 1+size)
		until(fmt.Sprintf("all workers of round %d are ready, and no others are there", n), func() bool {
			all := workers.Workers()
			return len(all) == want && !slices.ContainsFunc(all, func(w router.WorkerStatus) bool { return w.State != "ready" })
		})
		for i := range want {
			req := &engine.Request{ID: fmt.Sprintf("q%d-%d", n, i), Model: "sim", TokenIDs: []engine.TokenID{100, 200},
				Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1}, Stop: engine.StopConditions{MaxTokens: 3, EOS: sim.ModelEOS()}}
			for _, err := range workers.Generate(ctx, req) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	round(0)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for n := range rounds {
		round(n + 1)
	}
	round(0)
	until("all goroutines of before are the only ones", func() bool { return runtime.NumGoroutine() <= goroutines+2 })
	until("all files of before are the only ones", func() bool { return openFiles(t) <= files+2 })
	if n := len(found.links); n != 1 {
		t.Errorf("%d links are kept", n)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if n := len(f.GetMetric()); n > 10 {
			t.Errorf("%d series of %s", n, f.GetName())
		}
	}
	close(next)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// sets is a source that a test writes.
type sets func(ctx context.Context, report func([]discovery.Target))

func (s sets) Run(ctx context.Context, report func([]discovery.Target)) error {
	s(ctx, report)
	return nil
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
