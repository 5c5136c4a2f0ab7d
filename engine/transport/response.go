package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
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

// A Response is an answer whose body is still to be read. It belongs to one
// goroutine.
type Response struct {
	// What every read touches stands first.
	conn    *connection // nil once it was given back or closed
	silence *silence    // nil = unlimited
	framing framing
	eof     bool  // the body has ended
	err     error // of a read; final

	keep     bool // the connection can bear another request afterwards
	answered bool // a byte of the answer was there
	kept     bool // the connection had borne a request before

	Status int
	Header http.Header

	early []byte                 // of the body, read together with the head
	lent  *[headBufferBytes]byte // what early lies in, if it was lent

	link   *Link
	caller context.Context // of the request; asked before an error is judged
	stop   func() bool     // ends the watch over the caller's context

	written  chan struct{} // closed when the request is sent, if that has a goroutine
	writeErr error         // of that; read by sent
}

// Read reads the body. ReadError judges its errors.
func (r *Response) Read(p []byte) (int, error) {
	// The clock runs only while we wait for the worker: a slow consumer is no
	// silence of the worker.
	if r.silence != nil {
		r.silence.Begin()
		defer r.silence.End()
	}
	if len(p) == 0 {
		return 0, nil
	}
	for !r.eof && r.err == nil {
		var n, beyond int
		var done bool
		if n, r.err = r.receive(p); n == 0 {
			continue
		}
		n, beyond, done, r.err = r.framing.decode(p[:n])
		if done {
			r.end(beyond == 0 && len(r.early) == 0)
		}
		if n > 0 {
			return n, nil // an error behind it waits for the next call
		}
	}
	if r.err != nil {
		return 0, r.err
	}
	return 0, io.EOF
}

// receive reads bytes of the connection: first those that came with the head.
func (r *Response) receive(p []byte) (int, error) {
	if len(r.early) > 0 {
		n := copy(p, r.early)
		if r.early = r.early[n:]; len(r.early) == 0 {
			r.giveBack()
		}
		return n, nil
	}
	if r.conn == nil {
		return 0, net.ErrClosed
	}
	n, err := r.conn.Read(p)
	switch {
	case n > 0:
		return n, nil // an error comes again
	case err == io.EOF && r.framing.form == untilClosed:
		r.end(false)
		return 0, nil
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return 0, err
}

func (r *Response) giveBack() {
	if r.lent != nil {
		headBuffers.Put(r.lent)
	}
	r.early, r.lent = nil, nil
}

// end is the end of the body. Its connection is closed, unless it can bear another
// request; then it waits for Finish, which says that the answer made sense.
func (r *Response) end(clean bool) {
	r.eof = true
	if whole, _ := r.sent(); !whole || !clean || !r.keep {
		r.close()
	}
}

// sent reports whether all of the request was. The error is why it will not be.
func (r *Response) sent() (bool, error) {
	if r.written != nil {
		select {
		case <-r.written:
		default:
			return false, nil // it goes on, and writeErr is not ours to read
		}
	}
	return r.writeErr == nil, r.writeErr
}

// unwatch ends all that could close the connection, and reports whether nothing
// has.
func (r *Response) unwatch() bool {
	kept := r.silence == nil || r.silence.stop()
	return r.stop() && kept
}

// close closes the connection, and ends all that uses it.
func (r *Response) close() {
	r.conn.close()
	r.unwatch()
	if r.written != nil {
		<-r.written
	}
	r.conn = nil
}

// IsJSON reports whether the answer is a JSON document, and so no stream.
func (r *Response) IsJSON() bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/json")
}

// LimitSilence makes a Read fail that waits longer than d for a byte. It is for
// engines that promise a sign of life in shorter intervals.
func (r *Response) LimitSilence(d time.Duration) {
	if r.conn != nil {
		r.silence = newSilence(r.link.clock, d, r.conn.close)
	}
}

// hurry bounds all reads that follow by d from now.
func (r *Response) hurry(d time.Duration) {
	if r.conn != nil {
		_ = r.conn.SetReadDeadline(time.Now().Add(d)) // of a closed one it fails, as the read will
	}
}

// Finish ends an answer that is complete as far as the caller is concerned. The
// rest of the body is not judged. The connection is kept if the body ends at
// once, else closed.
func (r *Response) Finish() {
	if !r.eof {
		r.hurry(restWait)
		_, _ = io.CopyN(io.Discard, r, maxRestBytes)
	}
	if r.eof && r.conn != nil && r.unwatch() && r.conn.SetReadDeadline(time.Time{}) == nil {
		r.link.idle.put(r.conn)
		r.conn = nil
	}
	r.Abort()
}

// Abort closes the answer's connection before it returns, which tells the worker
// to stop. It does so also after the end of a body that the caller found to be no
// answer: it may have been another one's, and ours is still to come. After Finish
// it does nothing.
func (r *Response) Abort() {
	r.giveBack()
	if r.conn != nil {
		r.close()
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

// connectError judges a connection that was not made.
func (l *Link) connectError(err error) *engine.Error {
	var netErr net.Error
	switch {
	case isExhaustion(err):
		return l.wrap(engine.Overloaded, fmt.Errorf("%w: %w", engine.ErrExhausted, err))
	case errors.As(err, &netErr) && netErr.Timeout():
		return l.wrap(engine.ConnectionTimeout, err)
	}
	return l.wrap(engine.CannotConnect, err)
}

// headError judges an answer that did not begin.
func (r *Response) headError(err error) *engine.Error {
	if _, writeErr := r.sent(); writeErr != nil {
		err = fmt.Errorf("%w, after %w", err, writeErr)
	}
	if r.answered && !isLoss(err) {
		return r.link.wrap(engine.ProtocolError, err)
	}
	return r.link.wrap(engine.Disconnected, &lostError{err: err, stale: r.kept && !r.answered})
}

// isLoss tells a lost connection from an answer that is no HTTP.
func isLoss(err error) bool {
	var opErr *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &opErr) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe)
}
