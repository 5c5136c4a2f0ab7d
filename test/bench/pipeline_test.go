package main

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"baton/backend"
	"baton/engine/transport"
	"baton/engine/vllm"
	"baton/migration"
	"baton/model"
	"baton/preprocess"
	"baton/router"
	"baton/server"
)

// A pipeline is the whole frontend in this process, wired as `baton serve` does
// it, between a worker and a client over loopback.
type pipeline struct{ client *client }

func newPipeline(t testing.TB, migrationLimit int) *pipeline {
	dir := t.TempDir()
	if err := writeModel(dir); err != nil {
		t.Fatal(err)
	}
	models, err := model.NewSet(model.Options{Paths: map[string]string{modelName: dir}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); newWorker().serveAll(l) }()
	t.Cleanup(func() { l.Close(); <-served })

	attach := func(_ context.Context, spec router.Spec) (*router.Worker, error) {
		link, err := transport.New(transport.Options{URL: spec.URL, ConnectTimeout: time.Second})
		return &router.Worker{Client: vllm.New(link), Models: []router.Model{{Name: modelName, Own: modelName, ContextLength: contextLength}}}, err
	}
	log, reg := slog.New(slog.DiscardHandler), prometheus.NewRegistry()
	workers := router.New([]router.Spec{{ID: "w", URL: "http://" + l.Addr().String()}}, attach, router.Config{
		FirstTokenTimeout: time.Minute, StallTimeout: time.Minute, WorkerWaitTimeout: 10 * time.Second,
	}, log, reg, "x", rand.IntN)
	tokens := migration.New(workers, migration.Config{Limit: migrationLimit}, log, reg, "x")
	prepare := preprocess.New(models, preprocess.Options{ContextLength: workers.ContextLength}, log)
	front := server.New(prepare, backend.New(tokens), workers, server.Config{
		SSEKeepAliveInterval: time.Minute, WriteTimeout: time.Minute, MetricsNamespace: "x",
	}, log, reg, reg)
	api := httptest.NewUnstartedServer(front.Handler())
	api.Listener = front.Listen(api.Listener, api.Config)
	api.Start()
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); workers.Run(ctx) }()
	c := &client{target: target{address: strings.TrimPrefix(api.URL, "http://")}, prompt: prompt(promptWords), inOrder: true, onToken: func(int, time.Time) {}}
	t.Cleanup(func() { c.close(); api.Close(); cancel(); <-ran })
	return &pipeline{client: c}
}

// stream runs one answer of so many tokens and returns the allocations that all
// of the process made meanwhile.
func (p *pipeline) stream(t testing.TB, tokens int) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := p.client.ask(tokens); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// In the whole process, the worker and the client included, a token costs no
// allocation once its stream runs. What remains is one of net/http for each
// chunk of more than 255 bytes, as many tokens together make it.
func TestPipelineAllocations(t *testing.T) {
	const short, long = 100, 5100
	p := newPipeline(t, 3)
	p.stream(t, short) // connections, pools
	perToken := (float64(p.stream(t, long)) - float64(p.stream(t, short))) / (long - short)
	if perToken > 0.2 {
		t.Errorf("%.3f allocations a token", perToken)
	}
}

// Many streams that are all behind share the buffers that are lent to such: each
// gets its own tokens, in order, and several answers over one connection.
func TestPipelineSharesNothing(t *testing.T) {
	const streams, answers, tokens = 64, 3, 400
	p := newPipeline(t, 3)
	var group errgroup.Group
	for range streams {
		c := &client{target: p.client.target, prompt: p.client.prompt, inOrder: true, onToken: func(int, time.Time) {}}
		group.Go(func() error {
			defer c.close()
			for range answers {
				if err := c.ask(tokens); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// BenchmarkPipeline is a token on its way through everything, loopback included,
// and a request of one token with a prompt of 128 words.
func BenchmarkPipeline(b *testing.B) {
	for name, tokens := range map[string]int{"stream of 1000": 1000, "one token": 1} {
		b.Run(name, func(b *testing.B) {
			p := newPipeline(b, 3)
			p.stream(b, tokens)
			var allocations uint64
			for b.Loop() {
				allocations += p.stream(b, tokens)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tokens), "ns/token")
			b.ReportMetric(float64(allocations)/float64(b.N*tokens), "allocs/token")
		})
	}
}
