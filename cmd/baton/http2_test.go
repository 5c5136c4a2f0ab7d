package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"baton/config"
	"baton/sse"
)

// A closingListener tells when a connection that it took was closed here.
type closingListener struct {
	net.Listener
	closed chan struct{}
}

func (l closingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	// Small, so that the kernel's buffers are full before HTTP/2's own window is.
	c.(*net.TCPConn).SetWriteBuffer(smallBuffer)
	return &closingConn{Conn: c, closed: l.closed}, nil
}

const smallBuffer = 64 << 10 // bytes

type closingConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *closingConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A deafConn reads nothing any more once deaf is closed, until the test is over.
type deafConn struct {
	net.Conn
	deaf, over chan struct{}
}

func (c deafConn) Read(p []byte) (int, error) {
	select {
	case <-c.deaf:
		<-c.over
	default:
	}
	return c.Conn.Read(p)
}

// A client of HTTP/2 that reads nothing loses its stream and then its connection:
// the write deadline of a stream does not free what is stuck below it.
func TestHTTP2ClientThatReadsNothing(t *testing.T) {
	ts := httptest.NewTLSServer(http.NotFoundHandler())
	certificates := ts.TLS.Certificates
	ts.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := closingListener{l, make(chan struct{})}
	access := &security{tls: &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}}}
	cfg := &config.Serve{WriteTimeout: 500 * time.Millisecond}

	ended := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := sse.NewWriter(w, r, sse.WriterConfig{WriteTimeout: cfg.WriteTimeout})
		defer out.Close()
		events := bytes.Repeat([]byte("data: 0123456789\n\n"), 4096)
		for {
			if err := out.Send(events); err != nil {
				ended <- err
				return
			}
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- serveUntilStopped(ctx, access.behind(listener), handler, &recorder{}, func(ctx context.Context) error { <-ctx.Done(); return nil }, cfg, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()

	deaf, over := make(chan struct{}), make(chan struct{})
	defer close(over)
	client := http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return deafConn{c, deaf, over}, c.(*net.TCPConn).SetReadBuffer(smallBuffer)
		},
	}}
	resp, err := client.Get("https://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if resp.ProtoMajor != 2 {
		t.Fatal(resp.Proto)
	}
	close(deaf)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the stream goes on")
	}
	select {
	case <-listener.closed:
	case <-time.After(patience):
		t.Fatal("the connection is kept")
	}
}
