package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"baton/engine/transport"
)

// pieces are what random answers are made of; each list begins with what is right.
var pieces = struct{ begin, status, field, size, end []string }{
	begin:  []string{"", "", "", "", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", "\r\n", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"},
	status: []string{"HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 200", "HTTP/1.0 200 OK", "HTTP/1.1 204 No Content", "HTTP/1.1 304 Not Modified", "HTTP/1.1 500 X Y", "HTTP/1.1  200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 -20 OK", "HTTP/2.0 200 OK", "HTTP/1.10 200 OK", "http/1.1 200 OK", "HTTP/1.1\t200 OK"},
	field: []string{"Transfer-Encoding: chunked", "Content-Length: 11", "X: y", "Connection: close", "Connection: keep-alive", "Content-Length: 5", "Content-Length: +11", "Content-Length: 11, 11", "Content-Length:", "Content-Length: 0x5", "Content-Length: 99999999999999999999",
		"Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding:\tCHUNKED ", "Transfer-Encoding : chunked", "Transfer-Encoding: x", "\tfolded", " : x", ": y", "X", "Trailer: X", "Content-Length: 11\r", "transfer-encoding: chunked"},
	size: []string{"5", "1", "0b", "B", "00005", "5;x=y", "5 ", " 5", "5\t", "-1", "+5", "0x5", "", "g", "ffffffffffffffff", "fffffffffffffffff", "5;\n", "5;x\r"},
	end:  []string{"\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r\r\n", ""},
}

// pick mostly picks what is right, which is among the first two.
func pick(rnd *rand.Rand, list []string) string {
	if rnd.IntN(4) > 0 {
		return list[rnd.IntN(2)]
	}
	return list[rnd.IntN(len(list))]
}

func randomAnswer(rnd *rand.Rand) string {
	var b strings.Builder
	b.WriteString(pick(rnd, pieces.begin))
	b.WriteString(pick(rnd, pieces.status) + pick(rnd, pieces.end))
	for range rnd.IntN(4) {
		b.WriteString(pick(rnd, pieces.field) + pick(rnd, pieces.end))
	}
	b.WriteString(pick(rnd, pieces.end))
	if rnd.IntN(2) == 0 {
		b.WriteString("hello world")
	} else {
		for range rnd.IntN(4) {
			b.WriteString(pick(rnd, pieces.size) + pick(rnd, pieces.end) + "hello"[:1+4*rnd.IntN(2)] + pick(rnd, pieces.end))
		}
		if rnd.IntN(4) > 0 {
			b.WriteString("0" + pick(rnd, pieces.end))
			if rnd.IntN(4) == 0 {
				b.WriteString(pick(rnd, pieces.field) + pick(rnd, pieces.end))
			}
			b.WriteString(pick(rnd, pieces.end))
		}
	}
	if rnd.IntN(4) == 0 {
		b.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
	}
	return b.String()
}

// byNetHTTP reads an answer as net/http does, informational ones passed over.
func byNetHTTP(answer string) (status int, body []byte, err error) {
	in := bufio.NewReader(strings.NewReader(answer))
	for {
		resp, err := http.ReadResponse(in, nil)
		switch {
		case err != nil:
			return 0, nil, err
		case resp.StatusCode >= 100 && resp.StatusCode < 200 && resp.StatusCode != 101:
			continue
		}
		body, err := io.ReadAll(resp.Body)
		return resp.StatusCode, body, err
	}
}

// Whatever a worker sends, what is taken for a whole answer is one for net/http too,
// and the same one, however it is cut.
func TestNothingIsTakenThatNetHTTPRefuses(t *testing.T) {
	taken := 0
	for seed := range uint64(5000) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		answer := randomAnswer(rnd)
		link, err := transport.New(transport.Options{URL: "http://w:1", DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, worker := net.Pipe()
			go func() {
				defer worker.Close()
				if req, err := http.ReadRequest(bufio.NewReader(worker)); err != nil || req.Body.Close() != nil {
					return
				}
				for rest := answer; rest != ""; {
					n := min(len(rest), 1+rnd.IntN(20))
					if _, err := io.WriteString(worker, rest[:n]); err != nil {
						return
					}
					rest = rest[n:]
				}
			}()
			return ours, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := link.Post(t.Context(), "/", "", []byte("{}"))
		var body []byte
		if err == nil {
			body, err = io.ReadAll(resp)
			resp.Abort()
		}
		link.Close()
		status, want, errWant := byNetHTTP(answer)
		if err == nil {
			taken++
			if errWant != nil || status != resp.Status || !bytes.Equal(body, want) {
				t.Errorf("%q: we read %d %q; net/http %d %q, %v", answer, resp.Status, body, status, want, errWant)
			}
		} else if errWant == nil && testing.Verbose() {
			t.Logf("%q: %v; net/http %d %q", answer, err, status, want)
		}
	}
	if taken < 500 {
		t.Errorf("%d answers were taken", taken)
	}
}

// A zone means something on this machine only; the worker's certificate has none.
func TestCertificateOfAnAddressWithAZone(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Host) }))
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	link, err := transport.New(transport.Options{
		URL: "https://[::1%25lo]:8000", TLS: &tls.Config{RootCAs: roots}, ConnectTimeout: 10 * time.Second,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != "[::1%lo]:8000" {
				t.Errorf("dialled %q", address)
			}
			return new(net.Dialer).DialContext(ctx, network, s.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	if host, err := link.Get(t.Context(), "/"); string(host) != "[::1]:8000" || err != nil {
		t.Errorf("%q, %v", host, err)
	}
}
