//go:build unix

package socket

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// patience bounds waits for the kernel. It is far more than anything takes.
const patience = 20 * time.Second

// pair returns the two ends of a TCP connection, of which the first is wrapped.
func pair(t testing.TB, wrap func(net.Conn) net.Conn) (*Conn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return wrap(near).(*Conn), far.(*net.TCPConn)
}

// Pieces of all sizes go both ways whole, also when the other side is slow to read.
func TestPieces(t *testing.T) {
	for _, size := range []int{1, 100, maxPiece - 1, maxPiece, maxPiece + 1, 4 << 20} {
		near, far := pair(t, Wrap)
		sent := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		go func() {
			for piece := sent; len(piece) > 0; {
				n := min(len(piece), maxPiece)
				if m, err := near.Write(piece[:n]); m != n || err != nil {
					t.Errorf("%d of %d, %v", m, n, err)
				}
				piece = piece[n:]
			}
			near.Write(sent)
			near.CloseWrite()
		}()
		got, err := io.ReadAll(far)
		if err != nil || !bytes.Equal(got, append(bytes.Clone(sent), sent...)) {
			t.Errorf("%d bytes, sent twice: got %d, %v", size, len(got), err)
		}
		go func() {
			far.Write(sent)
			far.Close()
		}()
		var back []byte
		for b := make([]byte, min(size, 2*maxPiece)); ; {
			n, err := near.Read(b)
			if back = append(back, b[:n]...); err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(back, sent) {
			t.Errorf("got %d bytes of %d back", len(back), size)
		}
	}
}

// Errors are those of a net.TCPConn: who judges them sees no difference.
func TestErrors(t *testing.T) {
	// stuck writes pieces of a size to somebody who reads none, until it may wait no longer.
	stuck := func(size int) func(net.Conn, *net.TCPConn) error {
		return func(near net.Conn, _ *net.TCPConn) error {
			near.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
			for {
				if _, err := near.Write(make([]byte, size)); err != nil {
					return err
				}
			}
		}
	}
	cases := []struct {
		name string
		do   func(near net.Conn, far *net.TCPConn) error
		is   error
	}{
		{"the end", func(near net.Conn, far *net.TCPConn) error {
			far.Close()
			_, err := near.Read(make([]byte, 9))
			return err
		}, io.EOF},
		{"a reset", func(near net.Conn, far *net.TCPConn) error {
			far.SetLinger(0)
			far.Close()
			_, err := near.Read(make([]byte, 9))
			return err
		}, syscall.ECONNRESET},
		{"a read after Close", func(near net.Conn, far *net.TCPConn) error {
			near.Close()
			_, err := near.Read(make([]byte, 9))
			return err
		}, net.ErrClosed},
		{"a write after Close", func(near net.Conn, far *net.TCPConn) error {
			near.Close()
			_, err := near.Write(make([]byte, 9))
			return err
		}, net.ErrClosed},
		{"Close during a read", func(near net.Conn, far *net.TCPConn) error {
			time.AfterFunc(10*time.Millisecond, func() { near.Close() })
			_, err := near.Read(make([]byte, 9))
			return err
		}, net.ErrClosed},
		{"a read's deadline", func(near net.Conn, far *net.TCPConn) error {
			near.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			_, err := near.Read(make([]byte, 9))
			return err
		}, os.ErrDeadlineExceeded},
		{"a write that waits beyond its deadline", stuck(maxPiece), os.ErrDeadlineExceeded},
		{"a large write that waits beyond its deadline", stuck(8 * maxPiece), os.ErrDeadlineExceeded},
		{"a write to who has left", func(near net.Conn, far *net.TCPConn) error {
			far.SetLinger(0)
			far.Close()
			for {
				if _, err := near.Write(make([]byte, 9)); err != nil {
					return err
				}
			}
		}, nil}, // a reset or a broken pipe, as it happens
	}
	for _, c := range cases {
		var texts [2]string
		for i, wrap := range []func(net.Conn) net.Conn{Wrap, func(c net.Conn) net.Conn { return &Conn{TCPConn: c.(*net.TCPConn)} }} {
			near, far := pair(t, wrap)
			conn := net.Conn(near)
			if i == 1 {
				conn = near.TCPConn
			}
			err := c.do(conn, far)
			var op *net.OpError
			if c.is != nil && !errors.Is(err, c.is) || err != io.EOF && !errors.As(err, &op) {
				t.Errorf("%s: %v", c.name, err)
			}
			if op != nil {
				texts[i] = op.Op + " " + op.Net
			}
		}
		if texts[0] != texts[1] {
			t.Errorf("%s: %q is %q elsewhere", c.name, texts[0], texts[1])
		}
	}
}

// A deadline that has passed while nobody wrote stops nothing: it is moved forward
// before the next write.
func TestDeadlineBetweenWrites(t *testing.T) {
	near, far := pair(t, Wrap)
	near.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
	for {
		if _, err := near.Write(make([]byte, maxPiece)); err != nil {
			break
		}
	}
	go io.Copy(io.Discard, far)
	for range 2 {
		near.SetWriteDeadline(time.Now().Add(patience))
		if _, err := near.Write(make([]byte, maxPiece)); err != nil {
			t.Fatal(err)
		}
	}
	near.SetWriteDeadline(time.Time{})
	if _, err := near.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
}

// A reader that takes less than what the kernel wakes a writer for has not stopped.
func TestDeadlineOfASlowReader(t *testing.T) {
	for _, size := range []int{100, 64 << 10, 256 << 10} {
		near, far := pair(t, Wrap)
		near.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		for {
			if _, err := near.Write(make([]byte, maxPiece)); err != nil {
				break
			}
		}
		time.AfterFunc(20*time.Millisecond, func() { io.CopyN(io.Discard, far, 512<<10) })
		near.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
		if n, err := near.Write(make([]byte, size)); n != size || err != nil {
			t.Errorf("%d of %d bytes, %v", n, size, err)
		}
		start := time.Now()
		for {
			near.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
			if _, err := near.Write(make([]byte, size)); err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error(err)
				}
				break
			}
			if time.Since(start) > patience {
				t.Fatal("nobody reads, and writes go on")
			}
		}
	}
}

// A deadline that was taken back does not stop who goes on with the bare connection,
// nor one that was set for both directions who goes on here.
func TestDeadlineTakenBack(t *testing.T) {
	for name, write := range map[string]func(near *Conn) error{
		"Unwrap": func(near *Conn) error {
			near.SetWriteDeadline(time.Time{})
			_, err := near.Unwrap().Write([]byte("x"))
			return err
		},
		"SetWriteDeadline": func(near *Conn) error {
			near.SetWriteDeadline(time.Time{})
			_, err := near.Write([]byte("x"))
			return err
		},
	} {
		near, far := pair(t, Wrap)
		near.SetDeadline(time.Now().Add(20 * time.Millisecond))
		for {
			if _, err := near.Write(make([]byte, maxPiece)); err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
		}
		if _, err := near.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: read: %v", name, err)
		}
		go io.Copy(io.Discard, far)
		if err := write(near); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSilent(t *testing.T) {
	near, far := pair(t, Wrap)
	if !near.Silent() {
		t.Error("nothing was sent")
	}
	waitFor := func(what string) {
		t.Helper()
		for end := time.Now().Add(patience); near.Silent(); {
			if time.Now().After(end) {
				t.Fatalf("%s is not seen", what)
			}
		}
	}
	far.Write([]byte("x"))
	waitFor("a byte")
	if !near.Silent() {
		t.Error("the byte is there twice")
	}
	far.Close()
	waitFor("the end")
	near.Close()
	if near.Silent() {
		t.Error("it is closed")
	}
}

// What is no TCP connection stays as it is.
func TestWrapOthers(t *testing.T) {
	pipe, far := net.Pipe()
	defer pipe.Close()
	defer far.Close()
	if Wrap(pipe) != pipe {
		t.Error("a pipe has been wrapped")
	}
}

// No piece costs an allocation.
func TestAllocations(t *testing.T) {
	near, far := pair(t, Wrap)
	b := make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() {
		near.SetWriteDeadline(time.Now().Add(time.Second))
		near.Write(b)
		far.Read(b)
		far.Write(b)
		near.Read(b)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
