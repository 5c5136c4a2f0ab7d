package transport

import (
	"fmt"
	"net"
	"strconv"
	"sync"
)

const (
	// wholeRequestBytes is the size up to which a body is copied behind its head,
	// to be sent in one piece.
	wholeRequestBytes = 8 << 10

	// slowBodyBytes is the size from which a body is sent by a goroutine of its
	// own: a worker may answer before it has read all, and nobody would read that
	// while the body waits for room.
	slowBodyBytes = 32 << 10
)

// requestBuffers are lent while a request is sent.
var requestBuffers = sync.Pool{New: func() any { return new([2 * wholeRequestBytes]byte) }}

// request sends a request. The fields are names and values; an empty value leaves
// the field out. The error is that of a request which could not be sent anywhere.
func (r *Response) request(method, path string, body []byte, fields []string) error {
	if len(body) > slowBodyBytes {
		head, err := r.link.appendHead(nil, method, path, len(body), fields)
		if err != nil {
			return err
		}
		written := make(chan struct{})
		r.written = written
		go func() { // it ends with the connection at the latest; end and Abort wait for it
			defer close(written)
			r.write(head, body)
		}()
		return nil
	}
	lent := requestBuffers.Get().(*[2 * wholeRequestBytes]byte)
	defer requestBuffers.Put(lent)
	head, err := r.link.appendHead(lent[:0], method, path, len(body), fields)
	if err == nil {
		r.write(head, body)
	}
	return err
}

// write sends head and body. If that fails the worker may have answered all the
// same, for instance that the body is too large; it has a moment to do so.
func (r *Response) write(head, body []byte) {
	if r.writeErr = r.conn.writeBoth(head, body); r.writeErr != nil {
		r.hurry(errorBodyWait)
	}
}

func (l *Link) appendHead(dst []byte, method, path string, bodyBytes int, fields []string) ([]byte, error) {
	if !isVisible(path) {
		return nil, fmt.Errorf("invalid path %q", path)
	}
	dst = append(append(append(dst, method...), ' '), l.prefix...)
	dst = append(append(dst, path...), " HTTP/1.1\r\nHost: "...)
	dst = append(append(dst, l.host...), "\r\nUser-Agent: baton\r\n"...)
	if method != "GET" {
		dst = append(strconv.AppendInt(append(dst, "Content-Length: "...), int64(bodyBytes), 10), "\r\n"...)
	}
	for ; len(fields) > 0; fields = fields[2:] {
		name, value := fields[0], fields[1]
		if value == "" {
			continue
		}
		if !isFieldValue(value) {
			return nil, fmt.Errorf("invalid value of the header %s", name) // which may be a secret
		}
		dst = append(append(append(append(dst, name...), ": "...), value...), "\r\n"...)
	}
	return append(dst, "\r\n"...), nil
}

// isVisible reports whether s can stand in a request line.
func isVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return s != "" && s[0] == '/'
}

// isFieldValue reports whether s can be a header's value: no control characters,
// with which it could become more than one header.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// writeBoth writes the head, and the body behind it.
func (c *connection) writeBoth(head, body []byte) error {
	if room := cap(head) - len(head); len(body) <= room {
		_, err := c.Write(append(head, body...))
		return err
	}
	_, err := (&net.Buffers{head, body}).WriteTo(c.Conn) // in one call of the system, unless it is TLS
	return err
}
