package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"baton/engine"
)

const (
	// A finished answer's rest is read for so long and so far, so that its
	// connection can be used again. Engines write the end together with the
	// last event; waiting longer would cost more than a new connection.
	restWait     = 20 * time.Millisecond
	maxRestBytes = 64 << 10

	// An error's body is read for so long.
	errorBodyWait = 2 * time.Second
)

// A Response is an answer whose body is still to be read.
type Response struct {
	body    io.ReadCloser // what every read touches stands first
	silence *silence      // nil = unlimited
	eof     bool

	Status int
	Header http.Header

	link   *Link
	caller context.Context // of the request; asked before an error is judged
	cancel context.CancelFunc

	mu       sync.Mutex // guards what the trace's callbacks set
	conn     net.Conn
	reused   bool
	answered bool
}

// Read reads the body. Errors are those of net/http; ReadError judges them.
func (r *Response) Read(p []byte) (int, error) {
	// The clock runs only while we wait for the worker: a slow consumer is no
	// silence of the worker.
	if r.silence != nil {
		r.silence.begin()
	}
	n, err := r.body.Read(p)
	if r.silence != nil {
		r.silence.over()
	}
	if err == io.EOF {
		r.eof = true
	}
	return n, err
}

// LimitSilence makes a Read fail that waits longer than d for a byte. It is for
// engines that promise a sign of life in shorter intervals.
func (r *Response) LimitSilence(d time.Duration) { r.silence = newSilence(d, r.cancel) }

// Finish ends an answer that is complete as far as the caller is concerned. The
// rest of the body is not judged. The connection is kept if the body ends at
// once, else closed.
func (r *Response) Finish() {
	if r.body != nil && !r.eof {
		late := time.AfterFunc(restWait, r.cancel)
		_, err := io.CopyN(io.Discard, r.body, maxRestBytes)
		late.Stop()
		r.eof = err == io.EOF
	}
	r.Abort()
}

// Abort closes the answer's connection before it returns, which tells the worker
// to stop. After Finish, and after the body's end, it only tidies up: the
// connection is kept then, and may already carry another request.
func (r *Response) Abort() {
	r.cancel()
	if r.silence != nil {
		r.silence.stop()
	}
	if r.body == nil {
		return
	}
	r.body.Close()
	r.body = nil
	if !r.eof {
		// Closing the body leaves the closing of the connection to a goroutine
		// of net/http. The promise is that it is closed now.
		r.closeConn()
	}
}

// closeConn closes the connection under everything else. It must not be called
// once the body has ended.
func (r *Response) closeConn() {
	r.mu.Lock()
	conn := r.conn
	r.mu.Unlock()
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn() // its own Close could wait for a dead peer
	}
	if conn != nil {
		conn.Close()
	}
}

// ReadError judges an error of Read, or of a parser above it: the caller's own
// end first, then the loss of the connection. io.EOF counts as a loss, because
// whoever asks expected more.
func (r *Response) ReadError(err error) *engine.Error {
	if cause := engine.CauseOf(r.caller); cause != nil {
		return cause
	}
	if r.silence != nil && r.silence.broken.Load() {
		return r.link.wrap(engine.Disconnected, fmt.Errorf("read stream: no byte for %v, not even a keep-alive", r.silence.limit))
	}
	err = fmt.Errorf("read stream: %w", err)
	if isLoss(err) {
		return r.link.wrap(engine.Disconnected, err)
	}
	return r.link.wrap(engine.ProtocolError, err)
}

// lostError is the loss of a connection before the answer's headers.
type lostError struct {
	err   error
	stale bool // a kept connection, and no byte of the answer
}

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

// roundTripError judges a failed round trip by how far it came.
func (r *Response) roundTripError(err error) *engine.Error {
	r.mu.Lock()
	conn, reused, answered := r.conn, r.reused, r.answered
	r.mu.Unlock()
	var netErr net.Error
	switch {
	case conn == nil && isExhaustion(err):
		return r.link.wrap(engine.Overloaded, fmt.Errorf("%w: %w", engine.ErrExhausted, err))
	case conn == nil && errors.As(err, &netErr) && netErr.Timeout():
		return r.link.wrap(engine.ConnectionTimeout, err)
	case conn == nil:
		return r.link.wrap(engine.CannotConnect, err)
	case answered && !isLoss(err):
		return r.link.wrap(engine.ProtocolError, err)
	}
	return r.link.wrap(engine.Disconnected, &lostError{err: err, stale: reused && !answered})
}

// isLoss tells a lost connection from an answer that is no HTTP.
func isLoss(err error) bool {
	var opErr *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &opErr) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}

func (r *Response) gotConn(info httptrace.GotConnInfo) {
	r.mu.Lock()
	r.conn, r.reused = info.Conn, info.Reused
	r.mu.Unlock()
}

func (r *Response) gotByte() {
	r.mu.Lock()
	r.answered = true
	r.mu.Unlock()
}
