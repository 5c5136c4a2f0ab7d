package transport_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/engine"
	"baton/engine/transport"
)

// What lies behind an answer is never taken for the next one, wherever it lies: in
// the socket, or already decrypted.
func TestSecondAnswerIsNotTaken(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nX: "
	first := head + strings.Repeat("x", 4096-1000-4-len(head)) + "\r\n\r\n" + strings.Repeat("1", 1000) // ends with a buffer
	const second = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"

	certified := httptest.NewTLSServer(nil)
	certified.Close()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	for _, scheme := range []string{"http", "https"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var served sync.WaitGroup
		served.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				served.Go(func() {
					defer conn.Close()
					if scheme == "https" {
						config := certified.TLS.Clone()
						config.DynamicRecordSizingDisabled = true // all is one record
						conn = tls.Server(conn, config)
					}
					in := bufio.NewReader(conn)
					for {
						if _, err := http.ReadRequest(in); err != nil {
							return
						}
						io.WriteString(conn, first+second)
					}
				})
			}
		})
		link, err := transport.New(transport.Options{URL: scheme + "://" + l.Addr().String(), TLS: &tls.Config{RootCAs: roots}})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if body, err := link.Get(t.Context(), "/"); err != nil || len(body) != 1000 {
				t.Errorf("%s: %.20q, %v", scheme, body, err)
			}
		}
		link.Close()
		l.Close()
		served.Wait()
	}
}

// An answer that nobody asked for can meet the next request on its way. Whoever
// takes it finds that it makes no sense, and the answer that comes behind it is
// nobody's.
func TestAnswerThatMeetsARequest(t *testing.T) {
	link, made := scripted(t, func(_ int64, conn *net.TCPConn, in *bufio.Reader) {
		for first := true; ; first = false {
			req, err := http.ReadRequest(in)
			if err != nil || req.Body.Close() != nil {
				return
			}
			if !first {
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
			}
			name := req.Header.Get("X-Request-Id")
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(name), name)
		}
	})
	for i := range 6 {
		name := fmt.Sprintf("request-%d", i)
		resp, err := link.Post(t.Context(), "/x", name, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		switch body, err := io.ReadAll(resp); {
		case err != nil || string(body) != name && string(body) != "forged":
			t.Errorf("%s: %q, %v", name, body, err)
		case string(body) == name:
			resp.Finish()
		}
		resp.Abort()
	}
	if made.Load() != 3 {
		t.Errorf("%d connections", made.Load())
	}
}

// A kept connection that the worker closes just when it is used again costs a probe
// no more than it costs a request.
func TestGetOnAConnectionThatIsJustClosed(t *testing.T) {
	link, made := scripted(t, func(_ int64, conn *net.TCPConn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err != nil {
			return
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		http.ReadRequest(in) // and then it goes
	})
	for range 5 {
		if body, err := link.Get(t.Context(), "/"); string(body) != "ok" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
	}
	link.Close()
	if made.Load() != 5 {
		t.Errorf("%d connections", made.Load())
	}
}

// A 408 that says goodbye to an idle connection is no answer to the request that it
// meets on its way; on a fresh connection it is one.
func TestGoodbyeThatMeetsARequest(t *testing.T) {
	link, made := scripted(t, func(n int64, conn *net.TCPConn, in *bufio.Reader) {
		const goodbye = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
		if req, err := http.ReadRequest(in); err != nil || req.Body.Close() != nil {
			return
		}
		if n == 4 {
			io.WriteString(conn, goodbye)
			return
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		if req, err := http.ReadRequest(in); err == nil && req.Body.Close() == nil {
			io.WriteString(conn, goodbye)
		}
	})
	for range 3 {
		resp, err := link.Post(t.Context(), "/x", "id", []byte("{}"))
		if err != nil || resp.Status != 200 {
			t.Fatalf("%+v, %v", resp, err)
		}
		if body, err := io.ReadAll(resp); string(body) != "ok" || err != nil {
			t.Errorf("%q, %v", body, err)
		}
		resp.Finish()
	}
	if _, err := link.Get(t.Context(), "/"); engine.AsError(err).Status != 408 {
		t.Errorf("%v", err) // the goodbye of the third connection, and then that of the fourth
	}
	if made.Load() != 4 {
		t.Errorf("%d connections", made.Load())
	}
}

// A worker that is reset while a large body is on its way.
func TestResetWhileTheBodyIsWritten(t *testing.T) {
	link, _ := scripted(t, func(_ int64, conn *net.TCPConn, in *bufio.Reader) {
		in.ReadByte()
		conn.SetLinger(0)
	})
	body := make([]byte, 8<<20)
	for range 200 {
		_, err := link.Post(t.Context(), "/x", "id", body)
		if e := engine.AsError(err); err == nil || e.Kind != engine.Disconnected {
			t.Errorf("%v", err)
		}
	}
}

// Many workers that speak nonsense at once: none hears another's.
func TestNonsenseIsNotMixedUp(t *testing.T) {
	var all sync.WaitGroup
	for _, word := range []string{"aaaa", "bbbb", "cccc", "dddd", "eeee", "ffff"} {
		link, _ := scripted(t, func(_ int64, conn *net.TCPConn, in *bufio.Reader) {
			http.ReadRequest(in)
			io.WriteString(conn, strings.Repeat(word, 1000))
		})
		all.Go(func() {
			for range 300 {
				_, err := link.Get(t.Context(), "/")
				if e := engine.AsError(err); err == nil || e.Kind != engine.ProtocolError || !strings.Contains(e.Error(), strings.Repeat(word, 32)) {
					t.Errorf("%s: %v", word, err)
				}
			}
		})
	}
	all.Wait()
}

// Nonsense is seen also behind an informational answer.
func TestNonsenseBehindAnInformationalAnswer(t *testing.T) {
	left := make(chan struct{})
	link, _ := scripted(t, func(_ int64, conn *net.TCPConn, in *bufio.Reader) {
		http.ReadRequest(in)
		io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\nSSH-2.0-x\r\n")
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := in.ReadByte(); err != io.EOF {
			t.Errorf("it is waited for: %v", err)
		}
		close(left)
	})
	_, err := link.Get(t.Context(), "/")
	if e := engine.AsError(err); err == nil || e.Kind != engine.ProtocolError {
		t.Errorf("%v", err)
	}
	<-left
}
