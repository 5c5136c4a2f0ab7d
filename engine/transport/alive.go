package transport

import (
	"errors"
	"os"
	"time"

	"baton/socket"
)

// alive reports whether a kept connection can bear another request: the worker
// has not closed it meanwhile, and has sent nothing that nobody asked for. Where
// this cannot be found out it is assumed; then the request fails at once and is
// sent again, see ask.
func alive(c *connection) bool {
	if raw, ok := c.raw.(*socket.Conn); ok {
		silent := raw.Silent()
		if c.Conn == c.raw || !silent {
			return silent
		}
	}
	// What TLS has read already is not in the socket any more; and what is no socket
	// cannot be asked otherwise: a read that may not wait.
	c.SetReadDeadline(time.Unix(1, 0))
	var b [1]byte
	n, err := c.Read(b[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.SetReadDeadline(time.Time{}) == nil
}
