//go:build unix && (!linux || race || 386 || s390x)

package socket

import (
	"errors"
	"syscall"
)

// Elsewhere system calls go through the system's library, with the scheduler told. And
// the race detector has to see what passes between goroutines through a socket.

func read(fd uintptr, p []byte) (int, syscall.Errno) { return call(syscall.Read, fd, p) }

func write(fd uintptr, p []byte) (int, syscall.Errno) { return call(syscall.Write, fd, p) }

func call(f func(int, []byte) (int, error), fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, err := f(int(fd), p)
		if err == nil {
			return n, 0
		}
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = syscall.EIO
		}
		if errno != syscall.EINTR {
			return 0, errno
		}
	}
}
