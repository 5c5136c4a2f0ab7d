package enginetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
	"baton/engine/transport"
)

// connections: what goes wrong before an answer begins.
func (s suite) connections(t *testing.T) {
	dial := func(err error) func(context.Context, string, string) (net.Conn, error) {
		return func(context.Context, string, string) (net.Conn, error) { return nil, err }
	}
	empty, garbage, half := "", "\x15\x03\x01 no HTTP\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	tests := []struct {
		name string
		dial func(context.Context, string, string) (net.Conn, error)
		raw  *string
		kind engine.Kind
	}{
		{"refused", (&Network{}).DialContext, nil, engine.CannotConnect},
		{"name not found", dial(&net.DNSError{Err: "no such host", Name: "worker", IsNotFound: true}), nil, engine.CannotConnect},
		{"no answer", func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, nil, engine.ConnectionTimeout},
		{"closed before the headers", nil, &empty, engine.Disconnected},
		{"closed inside the headers", nil, &half, engine.Disconnected},
		{"no HTTP", nil, &garbage, engine.ProtocolError},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			newClient := func(t testing.TB, opts transport.Options) engine.Client {
				if test.dial != nil {
					opts.DialContext = test.dial
				}
				return s.newClient(t, opts)
			}
			inBubble(t, newClient, Reply{Raw: test.raw}, func(w *worker) {
				o := w.generate(w.Context(), NewRequest())
				wantKind(t, o, test.kind)
				if len(w.requests) > 1 {
					t.Errorf("the request was sent %d times; a new connection that dies is no reason to repeat it", len(w.requests))
				}
				if test.kind == engine.ConnectionTimeout && o.took != 3*time.Second {
					t.Errorf("it took %v, the connect timeout is 3s", o.took)
				}
			})
		})
	}
}

// staleConnection: a kept connection that died in the meantime is not held
// against the worker; one that dies under a request is.
func (s suite) staleConnection(t *testing.T) {
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(s.whole()), s.whole())
	tests := []struct {
		name  string
		wait  time.Duration // from the second request to the death of its connection
		alive bool          // new connections are accepted after that
		kind  engine.Kind   // Internal = success
	}{
		{"closed in the meantime", 0, true, engine.Internal},
		{"died under the request", 5 * time.Second, true, engine.Disconnected},
		{"died, and the port is closed", 0, false, engine.Disconnected},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var network Network
				stop := rawServer(&network, workerAddress, func(conn net.Conn, r *bufio.Reader) {
					for request := 0; ; request++ {
						req, err := http.ReadRequest(r)
						if err != nil {
							return
						}
						io.Copy(io.Discard, req.Body)
						if request == 1 { // each connection bears one request
							time.Sleep(test.wait)
							if !test.alive {
								network.mu.Lock()
								delete(network.listeners, workerAddress)
								network.mu.Unlock()
							}
							return
						}
						io.WriteString(conn, answer)
					}
				})
				client := s.newClient(t, transport.Options{URL: "http://" + workerAddress, WorkerID: "w1", DialContext: network.DialContext})
				wantScript(t, consume(t, client, t.Context(), NewRequest()))
				o := consume(t, client, t.Context(), NewRequest())
				if test.kind == engine.Internal {
					wantScript(t, o)
					for range 4 { // the connections of second tries are not kept
						wantScript(t, consume(t, client, t.Context(), NewRequest()))
					}
				} else {
					wantKind(t, o, test.kind)
				}
				time.Sleep(time.Minute) // the client gives its kept connection up
				stop()
			})
		})
	}
}

// brokenConnection: an answer that ends properly but makes no sense may be another
// one's, and takes its connection with it. What its consumer does afterwards must not
// touch the next request.
func (s suite) brokenConnection(t *testing.T) {
	inBubbleReplies(t, s.newClient, func(n int) Reply {
		if n == 0 {
			return Reply{Pieces: []string{s.steps(1)}} // ends too early, but properly
		}
		return Reply{Pieces: strings.SplitAfter(s.whole(), "\n\n"), Pause: time.Second}
	}, func(w *worker) {
		next, stop := iter.Pull2(w.client.Generate(w.Context(), NewRequest()))
		defer stop()
		var ids []engine.TokenID
		for _, err := range w.client.Generate(w.Context(), NewRequest()) {
			if err != nil {
				delta, err, _ := next() // not on the connection that has just come to rest
				if err != nil {
					w.Fatal(err)
				}
				ids = append(ids, delta.TokenIDs...)
			}
		}
		for delta, err, ok := next(); ok; delta, err, ok = next() {
			if err != nil {
				w.Fatalf("the second request: %v", err)
			}
			ids = append(ids, delta.TokenIDs...)
		}
		if !slices.Equal(ids, scriptIDs) || w.network.Made() != 2 {
			w.Errorf("ids %v over %d connections", ids, w.network.Made())
		}
	})
}

// leaving: when the range statement has returned, the connection is closed.
func (s suite) leaving(t *testing.T) {
	inBubble(t, s.newClient, Reply{Pieces: []string{s.steps(1)}, End: Silent}, func(w *worker) {
		for delta, err := range w.client.Generate(w.Context(), NewRequest()) {
			if err != nil || len(delta.TokenIDs) == 0 {
				t.Fatalf("%v, %v", delta, err)
			}
			break
		}
		if w.network.Open() != 0 {
			t.Error("the connection is still open")
		}
	})
	t.Run("by a panic", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Pieces: []string{s.steps(1)}, End: Silent}, func(w *worker) {
			func() {
				defer func() { _ = recover() }()
				for range w.client.Generate(w.Context(), NewRequest()) {
					panic("consumer")
				}
			}()
			if w.network.Open() != 0 {
				t.Error("the connection is still open")
			}
		})
	})
	t.Run("nothing is sent before the range", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{}, func(w *worker) {
			_ = w.client.Generate(w.Context(), NewRequest())
			synctest.Wait()
			if n := w.network.Made(); n != 0 {
				t.Errorf("%d connections", n)
			}
		})
	})
}

// callersEnd: the end of the caller's context is never the worker's fault.
func (s suite) callersEnd(t *testing.T) {
	for name, reply := range map[string]Reply{
		"in the stream":      {Pieces: []string{s.steps(1)}, End: Silent},
		"before the headers": {Delay: time.Hour},
		"in an error body":   {Status: 400, Pieces: []string{"{"}, End: Silent},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, s.newClient, reply, func(w *worker) {
				ctx, cancel := context.WithCancelCause(w.Context())
				defer cancel(nil)
				time.AfterFunc(time.Second, func() { cancel(errors.New("the client left")) })
				wantKind(t, w.generate(ctx, NewRequest()), engine.Cancelled)
				if w.network.Open() != 0 {
					t.Error("the connection is still open")
				}
			})
			inBubble(t, s.newClient, reply, func(w *worker) {
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				wantKind(t, w.generate(ctx, NewRequest()), engine.TimedOut)
			})
		})
	}
	t.Run("while connecting", func(t *testing.T) {
		newClient := func(t testing.TB, opts transport.Options) engine.Client {
			opts.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return s.newClient(t, opts)
		}
		inBubble(t, newClient, Reply{}, func(w *worker) {
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			time.AfterFunc(time.Second, cancel)
			wantKind(t, w.generate(ctx, NewRequest()), engine.Cancelled)
			time.Sleep(time.Minute) // net/http finishes dialing for a later request, within the connect timeout
		})
	})
	t.Run("with events buffered", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Pieces: []string{s.whole()}}, func(w *worker) {
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			var last error
			for _, err := range w.client.Generate(ctx, NewRequest()) {
				last = err
				cancel()
			}
			if e := engine.AsError(last); last == nil || e.Kind != engine.Cancelled {
				t.Errorf("%v, want cancelled", last)
			}
		})
	})
}

// silence: a slow consumer is no silence of the worker.
func (s suite) silence(t *testing.T) {
	t.Run("slow consumer", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Pieces: strings.SplitAfter(s.whole(), "\n\n")}, func(w *worker) {
			n := 0
			for delta, err := range w.client.Generate(w.Context(), NewRequest()) {
				if err != nil {
					t.Fatal(err)
				}
				n += len(delta.TokenIDs)
				time.Sleep(10 * time.Minute)
			}
			if n != len(scriptIDs) {
				t.Errorf("%d ids", n)
			}
		})
	})
	t.Run("keep-alives", func(t *testing.T) {
		pieces := []string{s.steps(1)}
		for range 60 {
			pieces = append(pieces, ":\n\n")
		}
		pieces = append(pieces, strings.TrimPrefix(s.whole(), s.steps(1)))
		inBubble(t, s.newClient, Reply{Pieces: pieces, Pause: time.Second}, func(w *worker) {
			wantScript(t, w.generate(w.Context(), NewRequest()))
		})
	})
	if s.d.MaxSilence == 0 {
		return
	}
	t.Run("too long", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Pieces: []string{s.steps(2)}, End: Silent}, func(w *worker) {
			o := w.generate(w.Context(), NewRequest())
			wantKind(t, o, engine.Disconnected)
			if o.took != s.d.MaxSilence {
				t.Errorf("after %v, want %v", o.took, s.d.MaxSilence)
			}
			if w.network.Open() != 0 {
				t.Error("the connection is still open")
			}
		})
	})
}

// requestHeaders: the worker gets what the protocol needs and nothing else.
func (s suite) requestHeaders(t *testing.T) {
	inBubble(t, s.newClient, Reply{Pieces: []string{s.whole()}}, func(w *worker) {
		wantScript(t, w.generate(w.Context(), NewRequest()))
		want := map[string]string{
			"Content-Type":  "application/json",
			"X-Request-Id":  NewRequest().ID,
			"Authorization": "Bearer " + workerKey,
			"User-Agent":    "baton",
		}
		header := w.requests[0].header
		for name, value := range want {
			if got := header.Get(name); got != value {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		}
		for name := range header {
			if _, ok := want[name]; !ok && name != "Content-Length" {
				t.Errorf("unexpected header %s", name)
			}
		}
	})
}

// lifetime: what a delta holds does not change before the next iteration, though
// the following events have long arrived.
func (s suite) lifetime(t *testing.T) {
	inBubble(t, s.newClient, Reply{Pieces: []string{s.whole()}}, func(w *worker) {
		req := NewRequest()
		req.Output = engine.OutputOptions{Logprobs: true, TopLogprobs: 2}
		for delta, err := range w.client.Generate(w.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			ids, logprobs := slices.Clone(delta.TokenIDs), fmt.Sprint(delta.Logprobs)
			synctest.Wait()
			if !slices.Equal(ids, delta.TokenIDs) || fmt.Sprint(delta.Logprobs) != logprobs {
				t.Errorf("a delta changed under its consumer: %v, was %v", delta.TokenIDs, ids)
			}
		}
	})
}
