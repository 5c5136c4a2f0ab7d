package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"baton/backend"
	"baton/engine"
	"baton/engine/enginetest"
)

const baton = "baton:8000" // the address within a bubble

// inBubble runs f with virtual time, a server and a network to reach it.
func inBubble(t *testing.T, text Generator, change func(*Config), f func(t *testing.T, rig *rig, dial func() net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rig := newRig(text, change)
		var network enginetest.Network // no buffers: a client that does not read stops the server at once
		srv := &http.Server{Handler: rig.Handler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Protocols: &http.Protocols{}}
		srv.Protocols.SetHTTP1(true)
		srv.Protocols.SetUnencryptedHTTP2(true)
		go srv.Serve(rig.Listen(network.Listen(baton), srv))
		f(t, rig, func() net.Conn {
			conn, err := network.DialContext(t.Context(), "tcp", baton)
			if err != nil {
				panic(err)
			}
			return conn
		})
		srv.Close()
		synctest.Wait()
	})
}

// send writes a request by hand; what comes back is read from the connection.
func send(conn net.Conn, path, body string, headers ...string) *http.Response {
	req := httptest.NewRequest("POST", path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if err := req.Write(conn); err != nil {
		panic(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		panic(err)
	}
	return resp
}

// waits generates a token after each pause and then finishes.
func waits(pauses ...time.Duration) fakeText {
	return func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		for i, d := range pauses {
			select {
			case <-time.After(d):
			case <-ctx.Done():
				yield(backend.Delta{}, engine.CauseOf(ctx))
				return
			}
			if !yield(token(i+1, "x"), nil) {
				return
			}
		}
		yield(finish(len(pauses)+1), nil)
	}
}

func keepAlive(d time.Duration) func(*Config) {
	return func(c *Config) { c.SSEKeepAliveInterval = d }
}

// Silence is filled, before the first token and between tokens; headers come
// with the first sign of life.
func TestKeepAlive(t *testing.T) {
	inBubble(t, waits(40*time.Second, 31*time.Second, time.Second), keepAlive(15*time.Second), func(t *testing.T, rig *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		start := time.Now()
		resp := send(conn, chatPath, `{"model":"m","stream":true}`)
		if d := time.Since(start); d != 15*time.Second {
			t.Errorf("headers after %v", d)
		}
		raw, _ := io.ReadAll(resp.Body)
		s := readStrict(t, raw, "chat.completion.chunk")
		if len(s.comments) != 4 || !s.done || s.text(0) != "xxx" {
			t.Errorf("stream %s", raw)
		}
		if d := time.Since(start); d != 72*time.Second {
			t.Errorf("the stream took %v", d)
		}
	})
}

// Without a keep-alive the headers wait for the first output.
func TestHeadersWaitForOutput(t *testing.T) {
	inBubble(t, waits(10*time.Second), keepAlive(15*time.Second), func(t *testing.T, rig *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		start := time.Now()
		resp := send(conn, chatPath, `{"model":"m","stream":true}`)
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("headers after %v", d)
		}
		io.Copy(io.Discard, resp.Body)
	})
}

// An error after the first keep-alive is an event, since the status is gone.
func TestErrorAfterKeepAlive(t *testing.T) {
	text := fakeText(func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
		time.Sleep(20 * time.Second)
		yield(backend.Delta{}, &engine.Error{Kind: engine.NoWorker})
	})
	inBubble(t, text, keepAlive(15*time.Second), func(t *testing.T, rig *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		resp := send(conn, chatPath, `{"model":"m","stream":true}`)
		raw, _ := io.ReadAll(resp.Body)
		if s := readStrict(t, raw, "chat.completion.chunk"); resp.StatusCode != 200 || s.err == nil || *s.err.Error.Code != "no_worker_available" || len(s.comments) != 1 {
			t.Errorf("stream %s", raw)
		}
	})
}

func TestRequestTimeout(t *testing.T) {
	limit := func(c *Config) { c.RequestTimeout = 3 * time.Second }
	inBubble(t, waits(time.Hour), limit, func(t *testing.T, rig *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		for header, want := range map[string]time.Duration{"": 3 * time.Second, "1": time.Second, "1h": 3 * time.Second} {
			start := time.Now()
			resp := send(conn, chatPath, `{"model":"m","stream":true}`, "X-Request-Timeout", header)
			raw, _ := io.ReadAll(resp.Body)
			wantError(t, resp, raw, 504, "request_timeout")
			if d := time.Since(start); d != want {
				t.Errorf("%q: error after %v, want %v", header, d, want)
			}
		}
	})
	inBubble(t, waits(0, time.Hour), limit, func(t *testing.T, rig *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		resp := send(conn, chatPath, `{"model":"m","stream":true}`)
		raw, _ := io.ReadAll(resp.Body)
		if s := readStrict(t, raw, "chat.completion.chunk"); s.err == nil || *s.err.Error.Code != "request_timeout" || s.text(0) != "x" {
			t.Errorf("stream %s", raw)
		}
	})
}

// A client that reads nothing is given up after the write time-out, while tokens
// come and while only keep-alives would be sent.
func TestClientThatDoesNotRead(t *testing.T) {
	for name, pauses := range map[string][]time.Duration{"tokens": {0, 0, 0, 0}, "silence": {0, time.Hour}} {
		var cancelledAfter atomic.Int64
		inner := waits(pauses...)
		text := fakeText(func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
			start := time.Now()
			inner(ctx, req, yield)
			cancelledAfter.Store(int64(time.Since(start)))
		})
		change := func(c *Config) { c.WriteTimeout, c.SSEKeepAliveInterval = 8*time.Second, 15*time.Second }
		inBubble(t, text, change, func(t *testing.T, rig *rig, dial func() net.Conn) {
			conn := dial()
			defer conn.Close()
			send(conn, chatPath, `{"model":"m","stream":true}`) // reads the headers, and a buffer full
			time.Sleep(time.Minute)
			want := 9 * time.Second // 9/8 of the time-out
			if name == "silence" {
				want = 24 * time.Second // after the keep-alive at 15 s
			}
			if got := time.Duration(cancelledAfter.Load()); got != want {
				t.Errorf("%s: cancelled after %v, want %v", name, got, want)
			}
			if n := rig.running.count(); n != 0 {
				t.Errorf("%s: %d requests still run", name, n)
			}
			rig.wantEnd(t, "cancelled", 1)
		})
	}
}

// A slow client is bounded only by the silence of its reading.
func TestSlowClientGetsAll(t *testing.T) {
	change := func(c *Config) { c.WriteTimeout, c.SSEKeepAliveInterval = 8*time.Second, 15*time.Second }
	inBubble(t, waits(make([]time.Duration, 20)...), change, func(t *testing.T, rig *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		resp := send(conn, chatPath, `{"model":"m","stream":true}`)
		var raw []byte
		for buf := make([]byte, 1024); ; {
			time.Sleep(2 * time.Second)
			n, err := resp.Body.Read(buf)
			raw = append(raw, buf[:n]...)
			if err != nil {
				break
			}
		}
		if s := readStrict(t, raw, "chat.completion.chunk"); !s.done || s.text(0) != strings.Repeat("x", 20) {
			t.Errorf("stream %s", raw)
		}
	})
}

// On HTTP/2 a passed deadline resets the stream, even in silence, so none is
// left behind: neither that of writing nor that of the body.
func TestHTTP2StreamOutlivesDeadlines(t *testing.T) {
	change := func(c *Config) { c.WriteTimeout = 8 * time.Second }
	inBubble(t, waits(time.Second, 10*time.Minute), change, func(t *testing.T, rig *rig, dial func() net.Conn) {
		transport := &http.Transport{
			DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(), nil },
			Protocols:   &http.Protocols{},
		}
		transport.Protocols.SetUnencryptedHTTP2(true)
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport}).Post("http://x"+chatPath, "application/json", strings.NewReader(`{"model":"m","stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil || resp.ProtoMajor != 2 {
			t.Errorf("HTTP/%d: %v", resp.ProtoMajor, err)
		}
		if s := readStrict(t, raw, "chat.completion.chunk"); !s.done || s.text(0) != "xx" {
			t.Errorf("stream %s", raw)
		}
	})
}

// A client that leaves cancels its request, in every phase and both shapes.
func TestClientLeaves(t *testing.T) {
	for name, test := range map[string]struct {
		pauses []time.Duration
		body   string
		leave  time.Duration
	}{
		"before the first token": {[]time.Duration{time.Hour}, `{"model":"m","stream":true}`, 2 * time.Second},
		"after a keep-alive":     {[]time.Duration{time.Hour}, `{"model":"m","stream":true}`, 20 * time.Second},
		"while streaming":        {[]time.Duration{time.Second, time.Hour}, `{"model":"m","stream":true}`, 2 * time.Second},
		"without a stream":       {[]time.Duration{time.Hour}, `{"model":"m"}`, 2 * time.Second},
		"with several choices":   {[]time.Duration{time.Hour}, `{"model":"m","n":20,"stream":true}`, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, waits(test.pauses...), keepAlive(15*time.Second), func(t *testing.T, rig *rig, dial func() net.Conn) {
				conn := dial()
				req := httptest.NewRequest("POST", chatPath, strings.NewReader(test.body))
				if err := req.Write(conn); err != nil {
					t.Fatal(err)
				}
				go io.Copy(io.Discard, conn)
				time.Sleep(test.leave)
				if n := rig.running.count(); n != 1 {
					t.Fatalf("%d requests run", n)
				}
				conn.Close()
				synctest.Wait()
				if n := rig.running.count(); n != 0 {
					t.Errorf("%d requests run on", n)
				}
				rig.wantEnd(t, "cancelled", 1)
				if log := rig.log.String(); strings.Contains(log, "WARN") || !strings.Contains(log, "status=499") {
					t.Errorf("log %s", log)
				}
			})
		})
	}
}

// Whoever still reads after a half-close must not take a cut answer for a whole
// one: the connection is broken off, without the end of the body.
func TestCancelledStreamHasNoCleanEnd(t *testing.T) {
	for _, body := range []string{`{"model":"m","stream":true}`, `{"model":"m"}`} {
		rig := newRig(untilCancelled("x"))
		ts := rig.serve(t)
		conn, err := net.Dial("tcp", ts.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		req := httptest.NewRequest("POST", chatPath, strings.NewReader(body))
		if err := req.Write(conn); err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(conn)
		if strings.Contains(string(raw), "\r\n0\r\n\r\n") || strings.Contains(string(raw), "[DONE]") || strings.Contains(string(raw), "Content-Length: 0") {
			t.Errorf("answer %q", raw)
		}
	}
}

func TestStalledBody(t *testing.T) {
	for path, status := range map[string]int{chatPath: 408, "/nowhere": 404} {
		inBubble(t, says("x"), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
			conn := dial()
			defer conn.Close()
			start := time.Now()
			head := "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
			if _, err := io.WriteString(conn, head); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := io.ReadAll(resp.Body)
			wantError(t, resp, raw, status, map[int]string{408: "body_timeout", 404: "not_found"}[status])
			if d := time.Since(start); d != plainRequestTime+bodyIdleTimeout {
				t.Errorf("%s: answer after %v", path, d)
			}
		})
	}
}

// A body that comes slowly but steadily is read.
func TestSlowBody(t *testing.T) {
	inBubble(t, says("x"), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		body := `{"model":"m"}`
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", chatPath, len(body))
		for i := range len(body) {
			time.Sleep(bodyIdleTimeout / 2)
			if _, err := io.WriteString(conn, body[i:i+1]); err != nil {
				t.Fatal(err)
			}
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("%v, %v", resp, err)
		}
	})
}

// The read deadline of the body must not outlive it.
func TestLongAnswerAfterBody(t *testing.T) {
	inBubble(t, waits(10*bodyIdleTimeout), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		for range 2 {
			resp := send(conn, chatPath, `{"model":"m"}`)
			if raw, _ := io.ReadAll(resp.Body); resp.StatusCode != 200 {
				t.Errorf("%d %s", resp.StatusCode, raw)
			}
		}
	})
}

// A failingWriter fails from the n-th write on, and nobody else tells the
// request that its client is gone, as on HTTP/2.
type failingWriter struct {
	mu     sync.Mutex
	header http.Header
	good   int // writes that succeed
	writes int
}

func (w *failingWriter) Header() http.Header { return w.header }
func (w *failingWriter) WriteHeader(int)     {}
func (w *failingWriter) FlushError() error   { return nil }

func (w *failingWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if w.writes > w.good {
		return 0, errors.New("broken pipe")
	}
	return len(p), nil
}

// serveBroken answers a streaming request through w and wants it to be aborted.
func serveBroken(t *testing.T, rig *rig, w http.ResponseWriter, body string) {
	t.Helper()
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("the handler ended with %v", v)
		}
		rig.wantEnd(t, "cancelled", 1)
	}()
	rig.Handler().ServeHTTP(w, httptest.NewRequest("POST", chatPath, strings.NewReader(body)))
}

func TestWriteErrorCancels(t *testing.T) {
	for _, pauses := range [][]time.Duration{
		{0, 0, 0},      // a delta cannot be written
		{0, time.Hour}, // a keep-alive cannot be written
	} {
		for _, body := range []string{`{"model":"m","stream":true}`, `{"model":"m","stream":true,"n":3}`} {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				rig := newRig(waits(pauses...), keepAlive(15*time.Second))
				serveBroken(t, rig, &failingWriter{header: http.Header{}, good: 1}, body)
				if d := time.Since(start); d > 15*time.Second {
					t.Errorf("ended after %v", d)
				}
			})
		}
	}
}

// When the handler has returned, nothing is written any more.
func TestNothingIsWrittenAfterTheEnd(t *testing.T) {
	for name, text := range map[string]fakeText{"success": says("x"), "failure": fails(&engine.Error{Kind: engine.Stalled}, "x"), "early failure": fails(&engine.Error{Kind: engine.Stalled})} {
		synctest.Test(t, func(t *testing.T) {
			w := &failingWriter{header: http.Header{}, good: 1000}
			newRig(text, keepAlive(15*time.Second)).Handler().ServeHTTP(w, httptest.NewRequest("POST", chatPath, strings.NewReader(`{"model":"m","stream":true}`)))
			before := w.writes
			time.Sleep(time.Minute)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.writes != before || before == 0 {
				t.Errorf("%s: %d writes, then %d", name, before, w.writes)
			}
		})
	}
}

// Of many choices some run at a time, and those whose turn has not come when one
// fails never start.
func TestParallelChoices(t *testing.T) {
	const n = 2*maxParallelChoices + 5
	for _, failing := range []int{-1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var running, started, most atomicMax
			text := fakeText(func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
				started.add(1)
				most.see(running.add(1))
				defer running.add(-1)
				if choiceIndex(req) == failing {
					time.Sleep(time.Second / 2)
					yield(backend.Delta{}, &engine.Error{Kind: engine.Stalled})
					return
				}
				waits(time.Second)(ctx, req, yield)
			})
			start := time.Now()
			newRig(text).Handler().ServeHTTP(&nullWriter{header: http.Header{}},
				httptest.NewRequest("POST", chatPath, strings.NewReader(fmt.Sprintf(`{"model":"m","n":%d}`, n))))
			wantStarted, wantTime := int64(n), 3*time.Second
			if failing >= 0 {
				wantStarted, wantTime = maxParallelChoices, time.Second/2
			}
			if started.load() != wantStarted || most.load() != maxParallelChoices || time.Since(start) != wantTime {
				t.Errorf("failing %d: %d started, %d at a time, %v", failing, started.load(), most.load(), time.Since(start))
			}
		})
	}
}
