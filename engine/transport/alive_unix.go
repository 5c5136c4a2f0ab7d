//go:build unix

package transport

import "syscall"

// silent reports whether there is nothing to read from a socket, not even its end.
func silent(raw syscall.RawConn) bool {
	waits := false
	err := raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, err := syscall.Read(int(fd), b[:])
		waits = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true // whatever it was, do not wait
	})
	return err == nil && waits
}
