package socket

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Watcher tells when clients hang up. It looks at connections with an epoll set
// of its own: so that a client's leaving is noticed while nobody reads from it, no
// goroutine has to wait there for each.
type Watcher struct {
	set *os.File
	raw syscall.RawConn
	err error // why there is none

	mu      sync.Mutex // guards the rest
	watched map[uint64]func()
	last    uint64 // key of watched
}

// NewWatcher returns a Watcher that works until Close.
func NewWatcher() *Watcher {
	w := &Watcher{watched: make(map[uint64]func())}
	if w.err = w.open(); w.err == nil {
		go w.run()
	}
	return w
}

func (w *Watcher) open() error {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	// What does not block can itself be waited for by the runtime.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return os.NewSyscallError("fcntl", err)
	}
	w.set = os.NewFile(uintptr(fd), "epoll")
	if w.raw, err = w.set.SyscallConn(); err != nil {
		w.set.Close()
		return fmt.Errorf("epoll: %w", err)
	}
	return nil
}

// Close ends the watch over all connections.
func (w *Watcher) Close() {
	if w.err == nil {
		w.set.Close()
	}
}

// Wrap is like the function Wrap, for connections of which OnHangup is asked.
func (w *Watcher) Wrap(c net.Conn) net.Conn {
	wrapped := Wrap(c)
	if c, ok := wrapped.(*Conn); ok {
		c.watcher = w
	}
	return wrapped
}

// OnHangup has f called once when the other side has closed the connection or its
// half of it, or the connection broke, also before all that was sent has been read.
// It is asked once for each connection, and f must not block. After Forget f is not
// called any more, but may run still.
func (c *Conn) OnHangup(f func()) error {
	w := c.watcher
	switch {
	case w == nil:
		return errors.ErrUnsupported
	case w.err != nil:
		return w.err
	}
	w.mu.Lock()
	w.last++
	c.watchKey = w.last
	w.watched[c.watchKey] = f
	w.mu.Unlock()
	err := c.join()
	if err != nil {
		c.Forget()
	}
	return err
}

// Forget ends what OnHangup began. A connection that is closed has left the epoll
// set by itself.
func (c *Conn) Forget() {
	if c.watcher == nil {
		return
	}
	c.watcher.mu.Lock()
	defer c.watcher.mu.Unlock()
	delete(c.watcher.watched, c.watchKey)
}

// join puts the connection into the epoll set.
func (c *Conn) join() error {
	event := unix.EpollEvent{
		Events: unix.EPOLLRDHUP | unix.EPOLLET, // an error and the end of both halves are always told
		Fd:     int32(c.watchKey), Pad: int32(c.watchKey >> 32),
	}
	var err error
	outer := c.raw.Control(func(fd uintptr) {
		inner := c.watcher.raw.Control(func(set uintptr) {
			err = os.NewSyscallError("epoll_ctl", unix.EpollCtl(int(set), unix.EPOLL_CTL_ADD, int(fd), &event))
		})
		err = errors.Join(err, inner)
	})
	return errors.Join(err, outer)
}

// run ends with Close.
func (w *Watcher) run() {
	var events [64]unix.EpollEvent
	for {
		n := 0
		err := w.raw.Read(func(set uintptr) bool {
			var err error
			for {
				if n, err = unix.EpollWait(int(set), events[:], 0); err != unix.EINTR {
					return n != 0
				}
			}
		})
		if err != nil {
			return
		}
		for _, e := range events[:max(n, 0)] {
			key := uint64(uint32(e.Fd)) | uint64(uint32(e.Pad))<<32
			w.mu.Lock()
			f := w.watched[key]
			delete(w.watched, key)
			w.mu.Unlock()
			if f != nil {
				f()
			}
		}
	}
}
