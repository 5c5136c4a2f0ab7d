package transport_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"baton/engine"
	"baton/engine/transport"
)

// scripted serves connections over loopback, one after the other, until the test
// ends. made counts them.
func scripted(t *testing.T, serve func(n int64, conn *net.TCPConn, in *bufio.Reader)) (link *transport.Link, made *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made = new(atomic.Int64)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(made.Add(1), conn.(*net.TCPConn), bufio.NewReader(conn))
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-served })
	link, err = transport.New(transport.Options{URL: "http://" + l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	return link, made
}

// A worker that answers before it has read a large body is heard, and its
// connection is not used again. With a small one there is nothing to be seen of it.
func TestAnswerBeforeTheBodyIsRead(t *testing.T) {
	for _, size := range []int{1 << 10, 20 << 10, 64 << 20} {
		judged := make(chan struct{})
		link, made := scripted(t, func(_ int64, conn *net.TCPConn, in *bufio.Reader) {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			for err == nil {
				io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno")
				if size > 20<<10 {
					<-judged // before it is read
					return
				}
				io.Copy(io.Discard, req.Body)
				req, err = http.ReadRequest(in)
			}
		})
		for range 2 {
			resp, err := link.Post(t.Context(), "/x", "id", make([]byte, size))
			if err != nil {
				t.Fatalf("%d bytes: %v", size, err)
			}
			if e := resp.StatusError(); e.Status != 413 {
				t.Errorf("%d bytes: %v", size, e)
			}
			if size > 20<<10 {
				judged <- struct{}{}
			}
		}
		if want := map[bool]int64{true: 2, false: 1}[size > 20<<10]; made.Load() != want {
			t.Errorf("%d bytes: %d connections, want %d", size, made.Load(), want)
		}
	}
}

// A large body arrives whole, and its connection is used again.
func TestLargeBody(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 1<<20)
	link, made := scripted(t, func(_ int64, conn *net.TCPConn, in *bufio.Reader) {
		for {
			req, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if got, err := io.ReadAll(req.Body); err != nil || !bytes.Equal(got, body) {
				t.Errorf("%d bytes arrived, %v", len(got), err)
			}
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	for range 3 {
		resp, err := link.Post(t.Context(), "/x", "id", body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(resp); string(text) != "ok" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		resp.Finish()
	}
	link.Close() // else the server would wait for the end of idleness
	if made.Load() != 1 {
		t.Errorf("%d connections", made.Load())
	}
}

// A kept connection that the worker has closed, or written to, is not used.
func TestStaleConnectionIsSeen(t *testing.T) {
	for _, last := range []string{"", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"} {
		closed := make(chan struct{}, 1)
		link, made := scripted(t, func(_ int64, conn *net.TCPConn, in *bufio.Reader) {
			if _, err := http.ReadRequest(in); err == nil {
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"+last)
			}
			conn.Close()
			closed <- struct{}{}
		})
		for range 3 {
			if _, err := link.Get(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
			<-closed
		}
		if made.Load() != 3 {
			t.Errorf("%d connections", made.Load())
		}
	}
}

// An open answer costs no goroutine, and half an answer ends with its connection.
func TestOpenAnswersCostNoGoroutine(t *testing.T) {
	const streams = 50
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "data: 1\n\n")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	link, err := transport.New(transport.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	stacks := func() int {
		buf := make([]byte, 16<<20)
		return strings.Count(string(buf[:runtime.Stack(buf, true)]), "engine/transport.")
	}
	before := stacks()
	for range streams {
		resp, err := link.Post(t.Context(), "/x", "", []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Abort()
		buf := make([]byte, 100)
		if n, err := resp.Read(buf); string(buf[:n]) != "data: 1\n\n" || err != nil {
			t.Fatalf("%q, %v", buf[:n], err)
		}
	}
	if after := stacks(); after > before {
		t.Errorf("%d stacks of the transport, %d before", after, before)
	}
}

// TLS connections are used again too, and HTTP/2 is not spoken.
func TestTLSConnectionIsKept(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	var made atomic.Int64
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	link, err := transport.New(transport.Options{URL: s.URL, TLS: &tls.Config{RootCAs: roots, NextProtos: []string{"h2", "http/1.1"}}, ConnectTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	for range 3 {
		if body, err := link.Get(t.Context(), "/"); string(body) != "HTTP/1.1" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	}
	if made.Load() != 1 {
		t.Errorf("%d connections", made.Load())
	}
}

// A worker that accepts and does not shake hands costs the connect time-out.
func TestTLSHandshakeTimesOut(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	link, err := transport.New(transport.Options{URL: "https://" + l.Addr().String(), ConnectTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := link.Get(t.Context(), "/"); engine.AsError(err).Kind != engine.ConnectionTimeout {
		t.Errorf("%v", err)
	}
}

// The verdict over a body does not change when it is asked again.
func TestReadErrorIsFinal(t *testing.T) {
	link, _ := scripted(t, func(_ int64, conn *net.TCPConn, in *bufio.Reader) {
		req, err := http.ReadRequest(in)
		if err == nil {
			io.Copy(io.Discard, req.Body)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n1\r\nb\r\n0\r\n\r\n")
			io.ReadFull(in, make([]byte, 1)) // the end
		}
	})
	resp, err := link.Post(t.Context(), "/x", "", []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Abort()
	buf := make([]byte, 100)
	if n, err := resp.Read(buf); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for range 3 {
		n, err := resp.Read(buf)
		if e := resp.ReadError(err); n != 0 || e.Kind != engine.ProtocolError || errors.Is(err, io.EOF) {
			t.Errorf("%d, %v", n, err)
		}
	}
}
