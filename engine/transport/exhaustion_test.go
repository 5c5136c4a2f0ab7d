package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"baton/engine"
	"baton/engine/transport"
)

// A dial that fails for a reason of this machine does not look like a dead worker.
func TestOwnLimitsAreNotTheWorkers(t *testing.T) {
	dialError := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", err)}
	}
	tests := []struct {
		err  error
		kind engine.Kind
	}{
		{dialError(syscall.EMFILE), engine.Overloaded},
		{dialError(syscall.ENFILE), engine.Overloaded},
		{dialError(syscall.ENOBUFS), engine.Overloaded},
		{dialError(syscall.EADDRNOTAVAIL), engine.Overloaded},
		{dialError(syscall.ENOMEM), engine.Overloaded},
		{&net.DNSError{Err: fmt.Sprintf("dial udp 10.0.0.2:53: socket: %v", syscall.EMFILE), Name: "worker"}, engine.Overloaded},
		{&net.DNSError{Err: "no such host", Name: "worker", IsNotFound: true}, engine.CannotConnect},
		{dialError(syscall.ECONNREFUSED), engine.CannotConnect},
		{dialError(syscall.EHOSTUNREACH), engine.CannotConnect},
	}
	for _, test := range tests {
		link, err := transport.New(transport.Options{URL: "http://worker:8000", DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, test.err
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = link.Post(t.Context(), "/x", "id", []byte("{}"))
		e := engine.AsError(err)
		if e.Kind != test.kind || errors.Is(e, engine.ErrExhausted) != (test.kind == engine.Overloaded) || !errors.Is(e, test.err) {
			t.Errorf("%v: %v, want %v", test.err, err, test.kind)
		}
		if e.Status != 0 {
			t.Errorf("%v: status %d, but no worker said anything", test.err, e.Status)
		}
	}
}
