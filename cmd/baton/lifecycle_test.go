package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/config"
)

// recorder is a stopper that writes down what it is asked to do, and when.
type recorder struct {
	start time.Time
	runs  time.Duration // how long the running requests need
	steps []string
}

func (r *recorder) note(what string) {
	r.steps = append(r.steps, fmt.Sprintf("%v %s", time.Since(r.start), what))
}

func (r *recorder) Listen(l net.Listener, _ *http.Server) net.Listener { return l }

func (r *recorder) BeginShutdown() { r.note("health 503") }

func (r *recorder) Running() int {
	if r.runs > 0 {
		return 1
	}
	return 0
}

func (r *recorder) Drain(ctx context.Context) int {
	r.note("drain")
	select {
	case <-time.After(r.runs):
		r.note("all ended")
		return 0
	case <-ctx.Done():
		r.note("cut")
		return 1
	}
}

func TestStopInSteps(t *testing.T) {
	tests := []struct {
		name            string
		lameDuck, bound time.Duration
		runs            time.Duration
		why             error
		want            []string
	}{
		{"requests end in time", 5 * time.Second, 30 * time.Second, 20 * time.Second, nil,
			[]string{"0s health 503", "5s drain", "25s all ended"}},
		{"requests take too long", 5 * time.Second, 30 * time.Second, time.Hour, nil,
			[]string{"0s health 503", "5s drain", "35s cut"}},
		{"no lame duck, no patience", 0, 0, time.Hour, nil,
			[]string{"0s health 503", "0s drain", "0s cut"}},
		{"nothing runs", 5 * time.Second, 30 * time.Second, 0, nil,
			[]string{"0s health 503", "5s drain", "5s all ended"}},
		{"Ctrl-C while nothing runs", 5 * time.Second, 30 * time.Second, 0, errInterrupted,
			[]string{"0s health 503", "0s drain", "0s all ended"}},
		{"Ctrl-C while a request runs", 5 * time.Second, 30 * time.Second, 20 * time.Second, errInterrupted,
			[]string{"0s health 503", "5s drain", "25s all ended"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{start: time.Now(), runs: tt.runs}
				cfg := &config.Serve{LameDuck: tt.lameDuck, ShutdownTimeout: tt.bound}
				stopInSteps(t.Context(), tt.why, r, cfg, slog.New(slog.DiscardHandler))
				if !reflect.DeepEqual(r.steps, tt.want) {
					t.Errorf("got %q, want %q", r.steps, tt.want)
				}
			})
		})
	}
}

func TestListenErrorsAreSentences(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	_, err = listen(&config.Serve{HTTPHost: "127.0.0.1", HTTPPort: port})
	if want := fmt.Sprintf("127.0.0.1:%d is in use by another process; choose another port with --http-port", port); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = listen(&config.Serve{HTTPHost: "no.such.host.invalid", HTTPPort: port})
	if err == nil || !strings.Contains(err.Error(), "see --http-host and --http-port") {
		t.Errorf("got %v", err)
	}
}
