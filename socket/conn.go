//go:build unix

package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// maxPiece is the size up to which reads and writes are made here, in bytes: what
// the kernel copies in a few microseconds. More than that the scheduler is told of:
// who sends so much may also have work for it that has to be interrupted, which is
// the monitor's task.
const maxPiece = 16 << 10

// A Conn is a TCP connection. Unlike with a net.TCPConn, only one goroutine may
// read at a time, and only one may write.
type Conn struct {
	*net.TCPConn
	raw syscall.RawConn

	// Made once, because each would be an allocation.
	readSome, writeAll func(fd uintptr) bool

	in    []byte // what readSome fills
	read  int
	inErr error

	out      []byte // what writeAll has not written yet
	outErr   error
	writeBy  time.Time     // when a write that waits fails; zero = never
	applied  time.Time     // the deadline that the runtime knows of
	patience time.Duration // what was left until then when the runtime heard of it

	watcher  *Watcher // nil = of OnHangup nobody asks
	watchKey uint64
}

// Wrap returns a Conn over c if c is a TCP connection, else c itself.
func Wrap(c net.Conn) net.Conn {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return c
	}
	w := &Conn{TCPConn: tcp, raw: raw}
	w.readSome, w.writeAll = w.tryRead, w.tryWrite
	return w
}

// Unwrap returns what is wrapped, for who goes on with that alone. The deadline of
// writes is then the one that was set last.
func (c *Conn) Unwrap() net.Conn {
	_ = c.bound() // of a closed one it fails, as Write will
	return c.TCPConn
}

// Read reads as net.TCPConn does.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 || len(p) > maxPiece {
		return c.TCPConn.Read(p)
	}
	c.in = p
	err := c.raw.Read(c.readSome)
	c.in = nil
	switch {
	case err != nil:
		return 0, named("read", err)
	case c.inErr != nil:
		return 0, c.inErr
	case c.read == 0:
		return 0, io.EOF
	}
	return c.read, nil
}

// SetWriteDeadline bounds the writes that are begun after it, and is called by who
// writes. A deadline costs nothing until a write has to wait: setting a timer may
// wake a thread. So a write that need not wait succeeds even behind its deadline, and
// one that waits for a slow reader has as long again whenever that has made room.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writeBy = t
	return nil
}

// SetDeadline bounds reads, and writes as SetWriteDeadline does.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetWriteDeadline(t)
	return c.SetReadDeadline(t)
}

// Write writes as net.TCPConn does.
func (c *Conn) Write(p []byte) (int, error) {
	large := len(p) > maxPiece
	if large || !c.applied.IsZero() { // else tryWrite does it
		if err := c.bound(); err != nil {
			return 0, err
		}
	}
	c.out, c.outErr = p, nil
	var err error
	if large {
		var n int
		n, err = c.TCPConn.Write(p)
		c.out = p[n:]
	} else {
		err = c.raw.Write(c.writeAll)
	}
	for errors.Is(err, os.ErrDeadlineExceeded) && c.hasRoom() {
		err = c.raw.Write(c.writeAll)
	}
	n := len(p) - len(c.out)
	c.out = nil
	switch {
	case c.outErr != nil: // which says more, if both are there
		return n, c.outErr
	case err != nil:
		return n, named("write", err)
	}
	return n, nil
}

// hasRoom reports whether a write can go on at its deadline, which is then moved.
// Who waits for room hears of it when a third of the kernel's buffer is free, which
// may be more than a megabyte: a reader that is slow has taken less, and must not be
// taken for one that has stopped.
func (c *Conn) hasRoom() bool {
	left := len(c.out)
	_ = c.raw.Control(func(fd uintptr) { c.tryWrite(fd) }) // closed: nothing is written
	if len(c.out) == left || c.outErr != nil {
		return false
	}
	c.writeBy = time.Now().Add(c.patience)
	c.outErr = c.bound()
	return c.outErr == nil
}

// bound makes the runtime know the deadline of writes.
func (c *Conn) bound() error {
	if c.applied == c.writeBy {
		return nil
	}
	c.applied = c.writeBy
	if !c.writeBy.IsZero() {
		c.patience = time.Until(c.writeBy)
	}
	return c.TCPConn.SetWriteDeadline(c.writeBy)
}

// Silent reports whether there is nothing to read, not even the end: whether a
// connection that nobody has asked anything still stands. It does not wait. If there
// is something, a byte of it is lost.
func (c *Conn) Silent() bool {
	silent := false
	err := c.raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, err := read(fd, b[:])
		silent = err == syscall.EAGAIN
		return true // whatever it was, do not wait
	})
	return err == nil && silent
}

// tryRead reports whether it has read; if not, it is called again when it can.
func (c *Conn) tryRead(fd uintptr) bool {
	c.read, c.inErr = 0, nil
	n, err := read(fd, c.in)
	switch {
	case err == syscall.EAGAIN:
		return false
	case err != 0:
		c.inErr = c.failure("read", err)
	default:
		c.read = n
	}
	return true
}

// tryWrite reports whether there is nothing left to do.
func (c *Conn) tryWrite(fd uintptr) bool {
	for len(c.out) > 0 {
		n, err := write(fd, c.out)
		switch {
		case err == syscall.EAGAIN:
			c.outErr = c.bound()
			return c.outErr != nil
		case err != 0:
			c.outErr = c.failure("write", err)
			return true
		}
		c.out = c.out[n:]
	}
	return true
}

// named gives an error of a syscall.RawConn, which is a net.OpError of the
// operation "raw-read" or "raw-write", the name that it has elsewhere.
func named(op string, err error) error {
	var opErr *net.OpError
	if errors.As(err, &opErr) {
		opErr.Op = op
	}
	return err
}

// failure makes the error that a net.TCPConn would return.
func (c *Conn) failure(op string, err syscall.Errno) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(op, err)}
}
