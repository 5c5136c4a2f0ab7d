package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/engine"
	"baton/engine/transport"
	"baton/engine/vllm"
	"baton/migration"
	"baton/router"
)

// A rawWorker answers each request with a token and then with its end, or, if it
// is mortal, with a token and nothing until it is cut. It is as cheap as can be, so
// that what is measured is the frontend.
type rawWorker struct {
	address  string
	mortal   bool
	cutAtEnd bool         // a mortal one cuts by itself, after the token
	asked    func()       // called when a request is here
	begun    atomic.Int32 // requests that are being answered

	mu    sync.Mutex // guards conns
	conns []net.Conn
}

func startRaw(t testing.TB, w *rawWorker) *rawWorker {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.address = l.Addr().String()
	t.Cleanup(func() { l.Close(); w.cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			w.conns = append(w.conns, c)
			w.mu.Unlock()
			go w.serve(c)
		}
	}()
	return w
}

func rawAnswer(whole bool) []byte {
	event := func(id int, finish string) string {
		data := fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"token_ids\":[%d],\"finish_reason\":%s}]}\n\n", id, finish)
		return fmt.Sprintf("%x\r\n%s\r\n", len(data), data)
	}
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	if !whole {
		return []byte(head + event(5, "null"))
	}
	return []byte(head + event(5, `"length"`) + "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
}

func (w *rawWorker) serve(c net.Conn) {
	answer := rawAnswer(!w.mortal)
	r := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			c.Close()
			return
		}
		if w.asked != nil {
			w.asked()
		}
		io.Copy(io.Discard, req.Body)
		if _, err := c.Write(answer); err != nil || w.cutAtEnd {
			c.Close()
			return
		}
		w.begun.Add(1)
	}
}

// cut closes all connections.
func (w *rawWorker) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.Close()
	}
	w.conns = nil
}

// newMover returns the part of the pipeline below the text, over workers of which
// the first one is asked first.
func newMover(t testing.TB, workers ...*rawWorker) engine.Engine {
	attach := func(_ context.Context, spec router.Spec) (*router.Worker, error) {
		link, err := transport.New(transport.Options{URL: spec.URL, ConnectTimeout: 10 * time.Second})
		return &router.Worker{Client: vllm.New(link), Models: []router.Model{{Name: "m", Own: "m"}}}, err
	}
	var specs []router.Spec
	for _, w := range workers {
		specs = append(specs, router.Spec{ID: w.address, URL: "http://" + w.address})
	}
	log, reg := slog.New(slog.NewTextHandler(io.Discard, nil)), prometheus.NewRegistry()
	r := router.New(specs, attach, router.Config{
		Policy:            func(*engine.Request, []router.Candidate) int { return 0 },
		FirstTokenTimeout: time.Minute, StallTimeout: time.Minute, WorkerWaitTimeout: 10 * time.Second,
	}, log, reg, "x", func(int) int { return 0 })
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan struct{})
	go func() { defer close(ran); r.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ran })
	for slices.ContainsFunc(r.Workers(), func(w router.WorkerStatus) bool { return w.State != "ready" }) {
		time.Sleep(time.Millisecond)
	}
	return migration.New(r, migration.Config{Limit: 3}, log, reg, "x")
}

func moved(tokens int) *engine.Request {
	return &engine.Request{
		ID: "chatcmpl-0123456789-000", Model: "m", TokenIDs: make([]engine.TokenID, promptWords), Trace: new(engine.Trace),
		Stop: engine.StopConditions{MaxTokens: tokens},
	}
}

// BenchmarkMove is a request of two tokens that is moved after the first one, and
// one of a token that is not: the difference is what a move costs, the worker's
// part of two connections and a request included.
func BenchmarkMove(b *testing.B) {
	for _, moves := range []int{0, 1} {
		b.Run(fmt.Sprintf("moves=%d", moves), func(b *testing.B) {
			workers := []*rawWorker{startRaw(b, &rawWorker{})}
			if moves > 0 {
				workers = append([]*rawWorker{startRaw(b, &rawWorker{mortal: true, cutAtEnd: true})}, workers...)
			}
			e := newMover(b, workers...)
			b.ReportAllocs()
			for b.Loop() {
				req := moved(1 + moves)
				for _, err := range e.Generate(b.Context(), req) {
					if err != nil {
						b.Fatal(err)
					}
				}
				if n := req.Trace.Migrations(); n != moves {
					b.Fatalf("%d moves", n)
				}
			}
		})
	}
}

// BenchmarkMovesAtOnce cuts so many running streams of one worker in one blow and
// measures when each is asked for on the other one. The floor is as many bare
// connections made at once, with a request of the same size each.
func BenchmarkMovesAtOnce(b *testing.B) {
	for _, streams := range []int{100, 500} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			var moves, floor quantiles
			for b.Loop() {
				moves.add(movesAtOnce(b, streams))
				floor.add(connectAtOnce(b, streams))
			}
			b.ReportMetric(0, "ns/op")
			moves.report(b, "")
			floor.report(b, "floor-")
		})
	}
}

// quantiles are those of each round. What is told is their median, because a busy
// machine spoils whole rounds.
type quantiles struct{ p50, p99 []time.Duration }

func (q *quantiles) add(round []time.Duration) {
	slices.Sort(round)
	q.p50, q.p99 = append(q.p50, round[len(round)/2]), append(q.p99, round[len(round)*99/100])
}

func (q *quantiles) report(b *testing.B, prefix string) {
	for name, list := range map[string][]time.Duration{"p50-ms": q.p50, "p99-ms": q.p99} {
		slices.Sort(list)
		b.ReportMetric(list[len(list)/2].Seconds()*1000, prefix+name)
	}
}

// arrivals are the times at which requests come, after the start.
type arrivals struct {
	mu    sync.Mutex
	start time.Time
	list  []time.Duration
}

func (a *arrivals) note() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, time.Since(a.start))
}

func movesAtOnce(b *testing.B, streams int) []time.Duration {
	var a arrivals
	dying := startRaw(b, &rawWorker{mortal: true})
	survivor := startRaw(b, &rawWorker{asked: a.note})
	e := newMover(b, dying, survivor)
	var all sync.WaitGroup
	for range streams {
		all.Go(func() {
			for _, err := range e.Generate(b.Context(), moved(2)) {
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	for deadline := time.Now().Add(10 * time.Second); dying.begun.Load() < int32(streams); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d streams run", dying.begun.Load(), streams)
		}
	}
	time.Sleep(20 * time.Millisecond) // the tokens are read
	a.start = time.Now()
	dying.cut()
	all.Wait()
	if len(a.list) != streams {
		b.Fatalf("%d of %d streams were asked for", len(a.list), streams)
	}
	return a.list
}

func connectAtOnce(b *testing.B, streams int) []time.Duration {
	var a arrivals
	w := startRaw(b, &rawWorker{asked: a.note})
	body := bytes.Repeat([]byte("12345,"), promptWords)
	request := fmt.Appendf(nil, "POST /v1/completions HTTP/1.1\r\nHost: w\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	var all sync.WaitGroup
	a.start = time.Now()
	for range streams {
		all.Go(func() {
			c, err := net.Dial("tcp", w.address)
			if err != nil {
				b.Error(err)
				return
			}
			defer c.Close()
			c.Write(request)
			c.Read(make([]byte, 1<<10))
		})
	}
	all.Wait()
	return a.list
}
