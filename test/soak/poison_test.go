//go:build unix

package soak

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/engine/sim"
	"baton/test/harness"
)

// The prompt that no worker survives, and how long one reads any prompt.
const (
	deadly  = "7,7,7,7,7,7,7,7"
	reading = 200 * time.Millisecond
)

// A mortal is a worker that dies while it reads the deadly prompt: its port is
// closed and all its connections are cut.
type mortal struct {
	*httptest.Server
	dead atomic.Bool
}

func startMortal(t *testing.T) *mortal {
	w := sim.NewServer(sim.Config{Style: sim.StyleWhole, MeanLength: -1, Prefill: reading, Gap: 10 * time.Millisecond})
	m := &mortal{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if bytes.Contains(body, []byte(deadly)) && r.Method == http.MethodPost {
			time.Sleep(reading / 2)
			m.dead.Store(true)
			m.Listener.Close()
			w.Kill()
			m.CloseClientConnections()
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.ServeHTTP(rw, r)
	}))
	t.Cleanup(m.Close)
	return m
}

// One client's prompt kills workers. It is told so, after two of them, and nobody
// else notices, whether their answers run or their prompts are being read.
func TestOnlyThePoisonIsRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds and many connections")
	}
	const (
		workers = 4
		running = 40
		coming  = 40 // in the next second
	)
	var fleet []*mortal
	var urls []string
	for range workers {
		fleet = append(fleet, startMortal(t))
		urls = append(urls, fleet[len(fleet)-1].URL)
	}
	f := serve(t, urls, "--migration-limit", "3", "--log-level", "error")
	var bodies []string
	for i := range 8 {
		bodies = append(bodies, fmt.Sprintf(
			`{"model":"sim","prompt":[%d,9,8],"max_tokens":%d,"ignore_eos":true,"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`, 10+i, 150+10*i))
	}
	want := answers(t, f, "/v1/completions", bodies)

	var clients sync.WaitGroup
	var whole atomic.Int32
	ask := func(i int, began func()) {
		a, err := harness.Stream(t.Context(), f.url, "/v1/completions", bodies[i%len(bodies)], func(n int) {
			if n == 1 {
				began()
			}
		})
		expected := want[i%len(bodies)]
		if err != nil || a.Error != nil || a.Text != expected.Text || a.Finish != expected.Finish || *a.Usage != *expected.Usage {
			t.Errorf("stream %d: %v %+v", i, err, a)
			return
		}
		whole.Add(1)
	}
	var begun sync.WaitGroup
	begun.Add(running)
	for i := range running {
		clients.Go(func() { ask(i, begun.Done) })
	}
	begun.Wait()
	for i := range coming {
		clients.Go(func() {
			<-time.After(time.Duration(i) * time.Second / coming)
			ask(running+i, func() {})
		})
	}
	a, err := harness.Stream(t.Context(), f.url, "/v1/completions",
		`{"model":"sim","prompt":[`+deadly+`],"max_tokens":20,"stream":true}`, nil)
	if err != nil || a.Status != http.StatusBadRequest || a.Error == nil || a.Error.Code != "request_lost_workers" {
		t.Errorf("the poison got %v %+v", err, a)
	}
	clients.Wait()
	deaths := 0
	for _, w := range fleet {
		if w.dead.Load() {
			deaths++
		}
	}
	moves := 0.0
	for _, kind := range []string{"new_request", "ongoing_request"} {
		moves += f.metric("dynamo_frontend_model_migration_total", map[string]string{"migration_type": kind})
	}
	t.Logf("%d of %d answers are whole, after %v moves; %d of %d workers died", whole.Load(), running+coming, moves, deaths, workers)
	if deaths != 2 {
		t.Errorf("%d workers died", deaths)
	}
}
