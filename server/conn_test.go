package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"baton/alarm"
	"baton/backend"
)

func plainPost(body string, lines ...string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n%s", chatPath, len(body), strings.Join(lines, ""), body)
}

// exchange sends a request and reads its answer to the end.
func exchange(t *testing.T, conn net.Conn, in *bufio.Reader, request string) (*http.Response, string) {
	t.Helper()
	go io.WriteString(conn, request)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// Who leaves is noticed whatever kind of answer is made, also without one byte of it.
func TestLeavingIsNoticed(t *testing.T) {
	for _, body := range []string{`{"model":"m"}`, `{"model":"m","stream":true}`} {
		for _, words := range [][]string{nil, {"x"}} {
			inBubble(t, untilCancelled(words...), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
				conn := dial()
				go io.Copy(io.Discard, conn)
				io.WriteString(conn, plainPost(body))
				synctest.Wait()
				if n := rig.running.count(); n != 1 {
					t.Fatalf("%s: %d requests run", body, n)
				}
				conn.Close()
				synctest.Wait()
				if n := rig.running.count(); n != 0 {
					t.Errorf("%s, after %d words: %d requests run", body, len(words), n)
				}
			})
		}
	}
}

// A connection is closed when its first request, or the next one, does not come; one
// whose answer takes longer than that is not.
func TestIdleConnection(t *testing.T) {
	slow := fakeText(func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
		time.Sleep(2 * defaultIdleTimeout)
		yield(finish(1), nil)
	})
	inBubble(t, slow, func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
		rig.Server.http.ReadHeaderTimeout = time.Second
		closed := func(conn net.Conn) time.Duration {
			start := time.Now()
			if n, err := conn.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("%d bytes, %v", n, err)
			}
			return time.Since(start)
		}
		if after := closed(dial()); after != time.Second {
			t.Errorf("without a request it is closed after %v", after)
		}
		conn := dial()
		in := bufio.NewReader(conn)
		for range 2 {
			if resp, _ := exchange(t, conn, in, plainPost(`{"model":"m"}`)); resp.StatusCode != http.StatusOK || resp.ContentLength < 0 {
				t.Fatalf("status %d, length %d", resp.StatusCode, resp.ContentLength)
			}
		}
		if after := closed(conn); after != defaultIdleTimeout {
			t.Errorf("after its answers it is closed after %v", after)
		}
	})
}

// After a pause of the whole process idle connections have time for the requests
// that came meanwhile.
func TestIdleConnectionAfterAPause(t *testing.T) {
	inBubble(t, says("x"), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		exchange(t, conn, bufio.NewReader(conn), plainPost(`{"model":"m"}`))
		synctest.Wait()
		start := time.Now()
		rig.conns.mu.Lock()
		rig.conns.due -= alarm.StoodStill + 1 // as if it were that late
		rig.conns.mu.Unlock()
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF || time.Since(start) != defaultIdleTimeout+defaultIdleTimeout/8 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// lateConn is a connection that is closed from outside when a request has just come.
type lateConn struct {
	net.Conn
	close func()
}

func (c lateConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 1 { // not only its first byte
		c.close()
	}
	return n, err
}

func (lateConn) OnHangup(func()) error { return nil }
func (lateConn) Forget()               {}

// A request that comes when its connection is being closed is not answered for nobody.
func TestCloseMeetsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		defer client.Close()
		rig := newRig(untilCancelled())
		rig.Server.http = &http.Server{Handler: rig.Handler()}
		go io.WriteString(client, plainPost(`{"model":"m"}`))
		start := time.Now()
		rig.serveConn(lateConn{conn, rig.conns.close})
		if rig.preparer.calls.Load() != 1 || time.Since(start) > 0 {
			t.Errorf("%d requests, %v", rig.preparer.calls.Load(), time.Since(start))
		}
	})
}

// What is too large or too slow for us goes over to net/http whole, and nothing else.
func TestHandOver(t *testing.T) {
	inBubble(t, says("x"), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
		var ours bool
		inner := rig.Server.http.Handler
		rig.Server.http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, ours = w.(*direct)
			inner.ServeHTTP(w, r)
		})
		conn := dial()
		defer conn.Close()
		in := bufio.NewReader(conn)
		wantOurs := true
		answers := func(request string) {
			t.Helper()
			if resp, body := exchange(t, conn, in, request); resp.StatusCode != http.StatusOK || !strings.Contains(body, "[DONE]") {
				t.Errorf("status %d, %q", resp.StatusCode, body)
			}
			if ours != wantOurs {
				t.Errorf("read by us: %v", ours)
			}
		}
		const body = `{"model":"m","stream":true}`
		answers(plainPost(body))
		for _, size := range []int{plainHeadBytes - 200, plainHeadBytes, maxPlainBodyBytes} { // in one piece with the head
			answers(plainPost(strings.Repeat(" ", size-len(body)) + body))
		}
		wantOurs = false
		answers(plainPost(strings.Repeat(" ", maxPlainBodyBytes) + body))
		answers(plainPost(body))

		conn = dial()
		defer conn.Close()
		in = bufio.NewReader(conn)
		answers(plainPost(body, "X-Long: ", strings.Repeat("y", plainHeadBytes), "\r\n"))

		for _, cut := range []int{1, 20, len(plainPost(body)) - 1} {
			conn = dial()
			defer conn.Close()
			in = bufio.NewReader(conn)
			request := plainPost(body)
			wantOurs = cut == 1 // whose connection is idle for as long as that
			io.WriteString(conn, request[:cut])
			time.Sleep(plainRequestTime + time.Second)
			answers(request[cut:])
		}
	})
}

// A client that wants its connection closed gets all of its answer first, and is
// told so; and so is every one once the server shuts down.
func TestConnectionClose(t *testing.T) {
	for _, body := range []string{`{"model":"m"}`, `{"model":"m","stream":true}`, "no JSON"} {
		inBubble(t, says("x"), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
			for _, line := range []string{"Connection: close\r\n", ""} {
				conn := dial()
				in := bufio.NewReader(conn)
				synctest.Wait()
				if line == "" {
					rig.conns.closed.Store(true)
				}
				if resp, _ := exchange(t, conn, in, plainPost(body, line)); !resp.Close {
					t.Errorf("%s: the answer does not say that the connection is closed", body)
				}
				if b, err := in.ReadByte(); err != io.EOF {
					t.Errorf("%s: %q, %v", body, b, err)
				}
			}
		})
	}
}

// What cannot become a plain request does not wait for more of it.
func TestHandOverAtOnce(t *testing.T) {
	inBubble(t, says("x"), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
		for _, request := range []string{"GET /version HTTP/1.1\nHost: x\n\n", "HEAD /version HTTP/1.1\r\nHost: x\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\n"} {
			conn := dial()
			start := time.Now()
			go io.WriteString(conn, request)
			if _, err := conn.Read(make([]byte, 1)); err != nil || time.Since(start) > 0 {
				t.Errorf("%q: %v after %v", request, err, time.Since(start))
			}
			conn.Close()
		}
	})
}

// Whatever the answer, a client that takes none of it does not keep the process.
func TestAnswerThatNobodyReads(t *testing.T) {
	for _, request := range []string{"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", plainPost("no JSON"), plainPost(`{"model":"m"}`), plainPost(`{"model":"m","stream":true}`)} {
		inBubble(t, says("x"), func(c *Config) { c.WriteTimeout = 8 * time.Second }, func(t *testing.T, rig *rig, dial func() net.Conn) {
			conn := dial()
			defer conn.Close()
			io.WriteString(conn, request)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start := time.Now()
			if rig.Drain(ctx); time.Since(start) > 9*time.Second {
				t.Errorf("%q: drained after %v", request, time.Since(start))
			}
		})
	}
}

// What has come when the listener was being closed leaves nothing behind that watches.
func TestConnectionOfAClosedListener(t *testing.T) {
	_, accepted := tcpPair(t)
	var s conns
	s.close()
	watched, ok := s.watch(accepted)
	if !ok {
		t.Skip("net/http has all connections here")
	}
	if s.add(&conn{watchedConn: watched}) {
		t.Error("it is served")
	}
	if watched.OnHangup(func() {}) == nil {
		t.Error("it is watched")
	}
}

// panickingConn is a connection that cannot bear to be read.
type panickingConn struct{ net.Conn }

func (panickingConn) Read([]byte) (int, error) { panic("read") }
func (panickingConn) RemoteAddr() net.Addr     { return nil }
func (panickingConn) OnHangup(func()) error    { return nil }
func (panickingConn) Forget()                  {}

// What goes wrong with one connection ends no other.
func TestPanicOfAConnection(t *testing.T) {
	client, conn := net.Pipe()
	defer client.Close()
	rig := newRig(says("x"))
	rig.Server.http = &http.Server{}
	rig.serveConn(panickingConn{conn})
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("it is not closed: %v", err)
	}
	if log := rig.log.String(); !strings.Contains(log, "panickingConn.Read") || len(rig.conns.open) > 0 {
		t.Errorf("%d are open, log: %s", len(rig.conns.open), log)
	}
}

// However far an answer had come when its handler panicked, its client cannot take it
// for a whole one, nothing of it keeps the process from ending, and others are served.
func TestPanicOfAHandler(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"before a word": func(http.ResponseWriter, *http.Request) { panic("x") },
		"behind a word": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "word"); panic("x") },
		"behind a flush": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "word")
			http.NewResponseController(w).Flush()
			panic("x")
		},
		"behind a length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9")
			io.WriteString(w, "word")
			http.NewResponseController(w).Flush()
			panic("x")
		},
		"as detached": func(w http.ResponseWriter, _ *http.Request) { w.(*direct).detach(func() { panic("x") }) },
		"of itself":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"with nil":    func(http.ResponseWriter, *http.Request) { panic(nil) },
	} {
		inBubble(t, says("x"), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
			inner := rig.Server.http.Handler
			rig.Server.http.Handler = handler
			conn := dial()
			go io.WriteString(conn, plainPost("{}"))
			in := bufio.NewReader(conn)
			if resp, err := http.ReadResponse(in, nil); err == nil {
				if _, err = io.ReadAll(resp.Body); err == nil {
					t.Errorf("%s: a whole answer", name)
				}
			}
			if _, err := in.ReadByte(); err == nil {
				t.Errorf("%s: the connection is open", name)
			}
			synctest.Wait()
			rig.Server.http.Handler = inner
			conn = dial()
			defer conn.Close()
			if resp, _ := exchange(t, conn, bufio.NewReader(conn), plainPost(`{"model":"m"}`)); resp.StatusCode != http.StatusOK {
				t.Errorf("%s: status %d afterwards", name, resp.StatusCode)
			}
			synctest.Wait()
			rig.conns.mu.Lock()
			open := len(rig.conns.open)
			rig.conns.mu.Unlock()
			if answers := rig.running.answers; answers != 0 || open != 1 {
				t.Errorf("%s: %d answers run, %d connections are open", name, answers, open)
			}
		})
	}
}

// tcpPair returns the two ends of a connection.
func tcpPair(t *testing.T) (client, accepted net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if accepted, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return client, accepted
}

// A connection that cannot be watched is answered all the same, and the log says so once.
func TestUnwatchedConnections(t *testing.T) {
	rig := newRig(says("x"))
	srv := &http.Server{Handler: rig.Handler()}
	defer srv.Close()
	rig.Listen(nil, srv)
	for range 2 {
		client, accepted := tcpPair(t)
		go rig.serveConn(unwatchable{accepted})
		io.WriteString(client, plainPost(`{"model":"m"}`))
		resp, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		client.Close()
	}
	if n := strings.Count(rig.log.String(), "clients that leave are not told of"); n != 1 {
		t.Errorf("the log says it %d times: %s", n, rig.log.String())
	}
}

// unwatchable is a connection of which nobody learns when its client leaves.
type unwatchable struct{ net.Conn }

func (unwatchable) OnHangup(func()) error { return syscall.ENOSPC }
func (unwatchable) Forget()               {}

// An open stream is one goroutine, whose stack is none that has read JSON and rendered
// templates: what decision 13 promises of memory, and of threads that nobody wakes.
func TestAnOpenStreamIsOneGoroutine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("net/http has all connections here")
	}
	const streams, mostStack = 100, 12 << 10
	rig := newRig(untilCancelled("x"))
	ts := rig.serve(t)
	open := func() {
		client, err := net.Dial("tcp", ts.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		io.WriteString(client, plainPost(`{"model":"m","stream":true}`))
		if _, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil { // with the first word
			t.Fatal(err)
		}
	}
	stacks := func() int {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.StackInuse)
	}
	open() // and with it what there is once
	goroutines, stack := runtime.NumGoroutine(), stacks()
	for range streams {
		open()
	}
	if n := runtime.NumGoroutine() - goroutines; n != streams {
		t.Errorf("%d streams are %d goroutines", streams, n)
	}
	if each := (stacks() - stack) / streams; each > mostStack {
		t.Errorf("a stream has %d bytes of stack, more than %d", each, mostStack)
	}
}

// Nothing of a running stream holds on to its HTTP request.
func TestAnOpenStreamForgetsItsRequest(t *testing.T) {
	rig := newRig(untilCancelled("x"))
	ts := rig.serve(t)
	inner := ts.Config.Handler
	var request weak.Pointer[http.Request]
	var body weak.Pointer[wholeBody]
	ts.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request = weak.Make(r)
		if whole, ok := r.Body.(*wholeBody); ok {
			body = weak.Make(whole)
		}
		inner.ServeHTTP(w, r)
	})
	client, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	io.WriteString(client, plainPost(`{"model":"m","stream":true}`))
	if _, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil { // with the first word
		t.Fatal(err)
	}
	runtime.GC()
	if runtime.GOOS == "linux" && (request.Value() != nil || body.Value() != nil) {
		t.Errorf("the request is kept: %v, its body: %v", request.Value() != nil, body.Value() != nil)
	}
}

// A connection whose answer is under way when the listener is closed goes on to the
// end of that, and no further.
func TestAnswerBehindAClosedListener(t *testing.T) {
	inBubble(t, waits(time.Second, time.Second), func(*Config) {}, func(t *testing.T, rig *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		in := bufio.NewReader(conn)
		io.WriteString(conn, plainPost(`{"model":"m","stream":true}`))
		resp, err := http.ReadResponse(in, nil) // after the first word
		if err != nil {
			t.Fatal(err)
		}
		rig.Server.http.Close()
		if body, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(body), "data: [DONE]\n\n") {
			t.Errorf("%q, %v", body, err)
		}
		start := time.Now()
		if n, err := in.Read(make([]byte, 1)); n != 0 || err != io.EOF || time.Since(start) > 0 {
			t.Errorf("%d bytes, %v, after %v", n, err, time.Since(start))
		}
	})
}

// Keep-alives of all streams are looked after by one clock, the server's.
func TestKeepAlivesShareAClock(t *testing.T) {
	const interval = 64 * alarm.Grid
	inBubble(t, untilCancelled(), keepAlive(interval), func(t *testing.T, rig *rig, dial func() net.Conn) {
		start := time.Now()
		for _, after := range []time.Duration{alarm.Grid / 3, alarm.Grid / 4} {
			time.Sleep(after)
			conn := dial()
			defer conn.Close()
			io.WriteString(conn, plainPost(`{"model":"m","stream":true}`))
			go func() {
				conn.Read(make([]byte, 1))
				if at := time.Since(start); at != interval+alarm.Grid {
					t.Errorf("the first sign of life comes after %v", at)
				}
				io.Copy(io.Discard, conn)
			}()
		}
		time.Sleep(2 * interval)
	})
}
