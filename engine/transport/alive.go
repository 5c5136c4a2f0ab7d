package transport

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// alive reports whether a kept connection can bear another request: the worker
// has not closed it meanwhile, and has sent nothing that nobody asked for. Where
// this cannot be found out it is assumed; then the request fails at once and is
// sent again, see Post.
func alive(c *connection) bool {
	if s, ok := c.raw.(syscall.Conn); ok {
		raw, err := s.SyscallConn()
		return err == nil && silent(raw)
	}
	// A connection that is no socket: a read that may not wait.
	c.raw.SetReadDeadline(time.Unix(1, 0))
	var b [1]byte
	n, err := c.raw.Read(b[:])
	c.raw.SetReadDeadline(time.Time{})
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded)
}
