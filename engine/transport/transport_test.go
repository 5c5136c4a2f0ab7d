package transport_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/transport"
)

func TestNewChecksURL(t *testing.T) {
	for address, ok := range map[string]bool{
		"http://h:1": true, "https://h": true, "http://h:1/": true, "http://h:1/prefix/": true, "http://[::1]:8000": true,
		"h:1": false, "": false, "ftp://h": false, "http://": false, "http://u:p@h": false, "http://h?x=1": false, "http://h/#x": false, "http://h:x": false, "/path": false,
	} {
		link, err := transport.New(transport.Options{URL: address})
		if (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("the error shows a password: %v", err)
		}
		if ok && strings.HasSuffix(link.URL(), "/") {
			t.Errorf("%q: base %q", address, link.URL())
		}
	}
}

// bubble runs test with a link to a server.
func bubble(t *testing.T, handler http.HandlerFunc, test func(t *testing.T, link *transport.Link, network *enginetest.Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var network enginetest.Network
		defer network.Serve("worker:8000", handler)()
		link, err := transport.New(transport.Options{URL: "http://worker:8000/base/", ConnectTimeout: time.Second, DialContext: network.DialContext})
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		test(t, link, &network)
	})
}

func TestGet(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/base/doc":
			fmt.Fprint(w, `{"a":1}`)
		case "/base/large":
			for range 20 << 10 {
				if _, err := w.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
		case "/base/header":
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		case "/base/cut":
			w.Write([]byte("{"))
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Retry-After", "Wed, 21 Oct 1998 07:28:00 GMT")
			w.WriteHeader(503)
		}
	}, func(t *testing.T, link *transport.Link, network *enginetest.Network) {
		if body, err := link.Get(t.Context(), "/doc"); err != nil || string(body) != `{"a":1}` {
			t.Errorf("%s, %v", body, err)
		}
		for path, kind := range map[string]engine.Kind{"/large": engine.ProtocolError, "/header": engine.ProtocolError, "/cut": engine.Disconnected, "/none": engine.Overloaded} {
			_, err := link.Get(t.Context(), path)
			if e := engine.AsError(err); err == nil || e.Kind != kind || e.WorkerID != "worker:8000" || e.RetryAfter != 0 {
				t.Errorf("%s: %v (retry after %v), want %v", path, err, e.RetryAfter, kind)
			}
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 0, "3": 3 * time.Second, "-3": 0, "x": 0, "99999999999": 10 * time.Minute, "date": time.Minute, "late": 0} {
		bubble(t, func(w http.ResponseWriter, _ *http.Request) {
			switch value {
			case "date":
				w.Header().Set("Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))
			case "late":
				w.Header().Set("Retry-After", time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat))
			default:
				w.Header().Set("Retry-After", value)
			}
			w.WriteHeader(429)
		}, func(t *testing.T, link *transport.Link, _ *enginetest.Network) {
			resp, err := link.Post(t.Context(), "/x", "", []byte("{}"))
			if err != nil {
				t.Fatal(err)
			}
			if got := resp.StatusError().RetryAfter; got != want {
				t.Errorf("%q: %v, want %v", value, got, want)
			}
		})
	}
}

// A redirect could lead the request, key included, to another host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	n := 0
	bubble(t, func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("Location", "http://worker:8000/base/elsewhere")
		w.WriteHeader(307)
	}, func(t *testing.T, link *transport.Link, _ *enginetest.Network) {
		resp, err := link.Post(t.Context(), "/x", "id", []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if e := resp.StatusError(); e.Kind != engine.WorkerMisconfigured || n != 1 {
			t.Errorf("%v after %d requests", e, n)
		}
	})
}

// The key is asked for each request, because its file may change.
func TestAPIKeyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network enginetest.Network
		var got []string
		defer network.Serve("worker:8000", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got = append(got, r.Header.Get("Authorization"))
		}))()
		key := "a"
		link, err := transport.New(transport.Options{URL: "http://worker:8000", APIKey: func() string { return key }, DialContext: network.DialContext})
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		for _, key = range []string{"a", "b", ""} {
			if _, err := link.Get(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
		}
		if fmt.Sprint(got) != "[Bearer a Bearer b ]" {
			t.Errorf("%q", got)
		}
	})
}

// Idle connections are given up before the engines close them.
func TestIdleConnections(t *testing.T) {
	bubble(t, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, link *transport.Link, network *enginetest.Network) {
		for i, wait := range []time.Duration{0, time.Second, time.Second, 3 * time.Second} {
			time.Sleep(wait)
			if i == 3 && network.Open() != 0 {
				t.Error("a connection is kept for 3 s")
			}
			if _, err := link.Get(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
		}
		if n := network.Made(); n != 2 {
			t.Errorf("%d connections, want 2", n)
		}
	})
}

// Silence is counted while somebody waits, and only then.
func TestLimitSilence(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 4 {
			select {
			case <-time.After(time.Duration(i) * time.Second): // 0, 1, 2, 3
			case <-r.Context().Done():
				return
			}
			fmt.Fprint(w, "x")
			http.NewResponseController(w).Flush()
		}
	}, func(t *testing.T, link *transport.Link, network *enginetest.Network) {
		resp, err := link.Post(t.Context(), "/x", "", []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Abort()
		resp.LimitSilence(2500 * time.Millisecond)
		time.Sleep(time.Hour) // nobody reads
		var one [1]byte
		for i := range 3 {
			if n, err := resp.Read(one[:]); n != 1 {
				t.Fatalf("byte %d: %v", i, err)
			}
		}
		start := time.Now()
		_, err = resp.Read(one[:])
		if err == nil || time.Since(start) != 2500*time.Millisecond {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		if e := resp.ReadError(err); e.Kind != engine.Disconnected || !strings.Contains(e.Error(), "2.5s") {
			t.Errorf("%v", e)
		}
		if network.Open() != 0 {
			t.Error("the connection is open")
		}
	})
}

// A caller who leaves, and a connection that is lost, are no silence.
func TestOtherEndsOfABody(t *testing.T) {
	bubble(t, func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		if r.Method == http.MethodPost {
			panic(http.ErrAbortHandler)
		}
		<-r.Context().Done()
	}, func(t *testing.T, link *transport.Link, network *enginetest.Network) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		time.AfterFunc(time.Second, cancel)
		if _, err := link.Get(ctx, "/x"); err == nil || engine.AsError(err).Kind != engine.Cancelled {
			t.Errorf("%v, want cancelled", err)
		}
		resp, err := link.Post(t.Context(), "/x", "", []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Abort()
		resp.LimitSilence(time.Hour)
		_, err = io.ReadAll(resp)
		if e := resp.ReadError(err); e.Kind != engine.Disconnected || strings.Contains(e.Error(), "keep-alive") {
			t.Errorf("%v", e)
		}
	})
}

// A failed body is not always a lost connection.
func TestReadErrorKinds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	bubble(t, func(http.ResponseWriter, *http.Request) {}, func(t *testing.T, link *transport.Link, _ *enginetest.Network) {
		resp, err := link.Post(t.Context(), "/x", "", []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Abort()
		for err, kind := range map[error]engine.Kind{
			io.EOF: engine.Disconnected, io.ErrUnexpectedEOF: engine.Disconnected, &net.OpError{Op: "read", Err: errors.New("reset")}: engine.Disconnected,
			errors.New("malformed chunked encoding"): engine.ProtocolError,
		} {
			if e := resp.ReadError(err); e.Kind != kind || !errors.Is(e, err) {
				t.Errorf("%v: %v, want %v", err, e, kind)
			}
		}
	})
	link, err := transport.New(transport.Options{URL: "http://worker:8000", DialContext: (&enginetest.Network{}).DialContext})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := link.Post(ctx, "/x", "", nil); err == nil || engine.AsError(err).Kind != engine.Cancelled {
		t.Errorf("a cancelled caller: %v", err)
	}
}

func TestParseComplaint(t *testing.T) {
	tests := map[string]struct {
		want transport.Complaint
		ok   bool
	}{
		`{"error":{"message":"m","type":"t","param":"p","code":400}}`:         {transport.Complaint{Message: "m", Type: "t", Param: "p", Code: 400}, true},
		`{"error":{"message":"m","type":"t","param":null,"code":"429"}}`:      {transport.Complaint{Message: "m", Type: "t", Code: 429}, true},
		`{"error":{"message":"m","code":"context_length_exceeded"}}`:          {transport.Complaint{Message: "m"}, true},
		`{"error":{"message":7,"code":null}}`:                                 {transport.Complaint{}, true},
		`{"error":{"message":"m","code":1e300}}`:                              {transport.Complaint{Message: "m", Code: 999}, true},
		`{"error":"Unauthorized"}`:                                            {transport.Complaint{Message: "Unauthorized"}, true},
		`{"error":[1]}`:                                                       {transport.Complaint{}, true},
		`{"object":"error","message":"m","type":"t","param":null,"code":400}`: {transport.Complaint{Message: "m", Type: "t", Code: 400}, true},
		`{"detail":"Not Found"}`:                                              {transport.Complaint{Message: "Not Found"}, true},
		`{"detail":[{"loc":["body","top_k",0],"msg":"too small","input":[1,2]},{"loc":["body"],"msg":"y"}]}`:              {transport.Complaint{Message: "body top_k 0: too small; body: y"}, true},
		`{"error":{"message":"1 error:\n {'loc': ('body', 'n'), 'msg': 'Field required', 'input': {'prompt': [1, 2]}}"}}`: {transport.Complaint{Message: "1 error:\n {'loc': ('body', 'n'), 'msg': 'Field required', …"}, true},
		`{"detail":{"a":1}}`: {transport.Complaint{}, true},
		`{"error":null}`:     {transport.Complaint{}, false},
		`{"choices":[]}`:     {transport.Complaint{}, false},
		`[]`:                 {transport.Complaint{}, false},
		``:                   {transport.Complaint{}, false},
		`{"error":{"message":"` + strings.Repeat("x", 5000) + `"}}`: {transport.Complaint{Message: strings.Repeat("x", 2048)}, true},
	}
	link, err := transport.New(transport.Options{URL: "http://w:1"})
	if err != nil {
		t.Fatal(err)
	}
	for body, test := range tests {
		if got, ok := link.ParseComplaint([]byte(body)); got != test.want || ok != test.ok {
			t.Errorf("%.80s: %+v, %v", body, got, ok)
		}
	}
}

// Over real sockets: a refused port, a reset, TLS with a foreign certificate, and
// an Abort that the server sees although its TLS side never reads.
func TestLoopback(t *testing.T) {
	left, reset := make(chan struct{}), make(chan struct{})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reset" {
			conn, _, _ := http.NewResponseController(w).Hijack()
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
			return
		}
		if r.URL.Path == "/reset-later" {
			conn, _, _ := http.NewResponseController(w).Hijack()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: a")
			<-reset
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
			return
		}
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left <- struct{}{}
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	roots := x509.NewCertPool()
	roots.AddCert(secure.Certificate())

	post := func(url, path string, config *tls.Config) (*transport.Response, error) {
		link, err := transport.New(transport.Options{URL: url, TLS: config, ConnectTimeout: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return link.Post(t.Context(), path, "id", []byte("{}"))
	}
	for name, test := range map[string]struct {
		url, path string
		kind      engine.Kind
	}{
		"refused":             {"http://" + closed.Addr().String(), "/", engine.CannotConnect},
		"reset":               {plain.URL, "/reset", engine.Disconnected},
		"unknown certificate": {secure.URL, "/", engine.CannotConnect},
		"no TLS there":        {"https" + strings.TrimPrefix(plain.URL, "http"), "/", engine.CannotConnect},
	} {
		if _, err := post(test.url, test.path, nil); err == nil || engine.AsError(err).Kind != test.kind {
			t.Errorf("%s: %v, want %v", name, err, test.kind)
		}
	}
	resp, err := post(plain.URL, "/reset-later", nil)
	if err != nil {
		t.Fatal(err)
	}
	close(reset)
	_, err = io.ReadAll(resp)
	if e := resp.ReadError(err); err == nil || e.Kind != engine.Disconnected {
		t.Errorf("a reset in the body: %v, %v", err, e)
	}
	resp.Abort()
	for url, config := range map[string]*tls.Config{plain.URL: nil, secure.URL: {RootCAs: roots}} {
		resp, err := post(url, "/", config)
		if err != nil {
			t.Fatal(err)
		}
		resp.Abort()
		select {
		case <-left:
		case <-time.After(10 * time.Second):
			t.Errorf("%s: the server did not notice", url)
		}
	}
}
