package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A failingListener fails with the errors in its list and then for ever with net.ErrClosed.
type failingListener struct {
	net.Listener
	failures []error // nil = a connection
	accepts  int
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.accepts == len(l.failures) {
		return nil, net.ErrClosed
	}
	err := l.failures[l.accepts]
	l.accepts++
	if err != nil {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", err)}
	}
	conn, peer := net.Pipe()
	peer.Close()
	return conn, nil
}

func (l *failingListener) Close() error { return nil }
func (l *failingListener) Addr() net.Addr {
	return &net.TCPAddr{}
}

// The server outlives every shortage, and one line in ten seconds says so.
func TestAcceptOutlivesExhaustion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		l := &failingListener{}
		for range 15 { // net/http waits a second at most: about ten seconds
			l.failures = append(l.failures, syscall.EMFILE)
		}
		l.failures = append(l.failures, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, nil)
		start := time.Now()
		server := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
		if err := server.Serve(patient(l, log)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the server ended with %v", err)
		}
		took := time.Since(start)
		if l.accepts != len(l.failures) {
			t.Errorf("%d of %d accepts", l.accepts, len(l.failures))
		}
		told, most := strings.Count(out.String(), "too many open files"), 1+int(took/exhaustionSpacing)
		if told < 1 || told > most {
			t.Errorf("%d records in %v, want at most %d:\n%s", told, took, most, out.String())
		}
		if n := strings.Count(out.String(), "connections are taken again"); n != 1 {
			t.Errorf("%d records of the recovery:\n%s", n, out.String())
		}
		if !strings.Contains(out.String(), "ulimit -n") {
			t.Errorf("no word of what to do:\n%s", out.String())
		}
	})
}

// What is no shortage is handed on as it is.
func TestAcceptHandsOnOtherErrors(t *testing.T) {
	var out bytes.Buffer
	l := patient(&failingListener{failures: []error{syscall.EINVAL}}, slog.New(slog.NewTextHandler(&out, nil)))
	for _, want := range []error{syscall.EINVAL, net.ErrClosed} {
		_, err := l.Accept()
		if _, ok := errors.AsType[temporaryError](err); ok || !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if out.Len() > 0 {
		t.Errorf("logged %s", out.String())
	}
}
