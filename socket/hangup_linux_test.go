package socket

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

func TestHangup(t *testing.T) {
	w := NewWatcher()
	defer w.Close()
	for name, leave := range map[string]func(near *Conn, far *net.TCPConn){
		"closes":                    func(_ *Conn, far *net.TCPConn) { far.Close() },
		"closes its half":           func(_ *Conn, far *net.TCPConn) { far.CloseWrite() },
		"resets":                    func(_ *Conn, far *net.TCPConn) { far.SetLinger(0); far.Close() },
		"sends, which nobody reads": func(_ *Conn, far *net.TCPConn) { far.Write(make([]byte, 9999)); far.Close() },
		"sends, and resets":         func(_ *Conn, far *net.TCPConn) { far.Write([]byte("x")); far.SetLinger(0); far.Close() },
		"has sent, and been answered": func(near *Conn, far *net.TCPConn) {
			far.Write([]byte("x"))
			near.Read(make([]byte, 9))
			near.Write([]byte("y"))
			far.Close()
		},
		"leaves while a read is waited": func(near *Conn, far *net.TCPConn) {
			go near.Read(make([]byte, 9))
			time.Sleep(time.Millisecond)
			far.Close()
		},
	} {
		near, far := pair(t, w.Wrap)
		left := make(chan struct{}, 9)
		if err := near.OnHangup(func() { left <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
		select {
		case <-left:
			t.Errorf("%s: too early", name)
		case <-time.After(5 * time.Millisecond):
		}
		leave(near, far)
		select {
		case <-left:
		case <-time.After(patience):
			t.Fatalf("who %s is not noticed", name)
		}
		near.Close()
		if len(left) > 0 {
			t.Errorf("%s: told twice", name)
		}
		near.Forget()
	}
	if n := len(w.watched); n > 0 {
		t.Errorf("%d connections are remembered", n)
	}
}

// Who has left before anybody asked is told of as well.
func TestHangupBefore(t *testing.T) {
	w := NewWatcher()
	defer w.Close()
	near, far := pair(t, w.Wrap)
	far.Close()
	if _, err := near.Read(make([]byte, 1)); err != io.EOF {
		t.Fatal(err)
	}
	left := make(chan struct{})
	if err := near.OnHangup(func() { close(left) }); err != nil {
		t.Fatal(err)
	}
	select {
	case <-left:
	case <-time.After(patience):
		t.Error("it is not noticed")
	}
}

// After Forget nobody is told, and a descriptor that is used again is another connection's.
func TestForget(t *testing.T) {
	w := NewWatcher()
	defer w.Close()
	for range 50 {
		old, oldFar := pair(t, w.Wrap)
		old.OnHangup(func() { t.Error("told after Forget") })
		old.Forget()
		old.Close()
		oldFar.Close()
		near, far := pair(t, w.Wrap)
		left := make(chan struct{})
		if err := near.OnHangup(func() { close(left) }); err != nil {
			t.Fatal(err)
		}
		far.Close()
		<-left
		near.Forget()
		near.Close()
	}
}

func TestHangupWithoutWatcher(t *testing.T) {
	near, _ := pair(t, Wrap)
	if err := near.OnHangup(func() {}); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	near.Forget()
	w := NewWatcher()
	w.Close()
	near, _ = pair(t, w.Wrap)
	if err := near.OnHangup(func() {}); err == nil {
		t.Error("a closed Watcher watches")
	}
}
