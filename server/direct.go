package server

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A direct is the http.ResponseWriter of a request that we have read ourselves. An
// answer that is flushed is sent in chunks, any other one with its length, when it
// is complete.
//
// Its methods are called by one goroutine at a time, as the sse.Writer does it.
type direct struct {
	conn    *conn
	pending *[]byte // what the next flush writes: of the body before the answer has begun, of the connection after it; nil = nothing
	err     error   // of a write
	chunked bool    // the answer has begun, in chunks
	begun   bool    // its head has been made
	bounded bool    // its writes have a deadline, which whoever makes the answer moves

	close  bool   // the client wants the connection closed afterwards
	then   func() // goes on with the answer; nil = the handler makes all of it
	goesOn bool   // the connection does
	status int    // 0 = not known yet
	header http.Header
	cancel context.CancelCauseFunc // of the request
}

// chunkBuffers are lent to the writes of direct answers.
var chunkBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

// maxChunkBuffer bounds what is kept of a buffer that grew, and what a body may
// have before some of it is sent.
const maxChunkBuffer = 64 << 10

// serve calls the handler, on a stack of its own, and then what the handler wants to
// be called on this one.
func (d *direct) serve(r *http.Request) {
	complete := false
	apart(func() {
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler {
				d.conn.server.logPanic(requestIDs{}, v)
			}
		}()
		d.conn.server.http.Handler.ServeHTTP(d, r)
		complete = true
	})
	if then := d.then; then != nil {
		d.then = nil // it holds on to the request, which the answer does not need
		then()
	} else {
		d.finish(complete)
	}
}

// detach has f go on with the answer when the handler has returned. It calls finish.
func (d *direct) detach(f func()) { d.then = f }

// lost ends the request, whose client has left.
func (d *direct) lost() { d.cancel(errClientGone) }

// Header returns the header, which counts until the answer begins.
func (d *direct) Header() http.Header { return d.header }

// WriteHeader sets the status.
func (d *direct) WriteHeader(status int) {
	if d.status == 0 {
		d.status = status
	}
}

// Write takes the next piece of the body.
func (d *direct) Write(p []byte) (int, error) {
	d.WriteHeader(http.StatusOK)
	if d.pending != nil && len(*d.pending)+len(p) > maxChunkBuffer {
		d.FlushError()
	}
	if d.err != nil || len(p) == 0 { // as a chunk it would be the last one
		return 0, d.err
	}
	b := d.lend()
	if d.chunked {
		*b = append(strconv.AppendInt(*b, int64(len(p)), 16), "\r\n"...)
		*b = append(append(*b, p...), "\r\n"...)
	} else {
		*b = append(*b, p...)
	}
	return len(p), nil
}

// lend returns the buffer of what the next flush writes.
func (d *direct) lend() *[]byte {
	if d.pending == nil {
		d.pending = chunkBuffers.Get().(*[]byte)
	}
	return d.pending
}

// begin makes the head. Whatever there is of the body is behind it then.
func (d *direct) begin(complete bool) {
	d.begun = true
	d.WriteHeader(http.StatusOK)
	body := d.pending
	d.pending = nil
	lent := d.lend()
	b := append(strconv.AppendInt(append(*lent, "HTTP/1.1 "...), int64(d.status), 10), ' ')
	b = append(append(b, http.StatusText(d.status)...), "\r\n"...)
	for name, values := range d.header {
		for _, value := range values {
			if consistsOf(value, inValue) { // else it could become more than one line
				b = append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
			}
		}
	}
	b = append(time.Now().UTC().AppendFormat(append(b, "Date: "...), http.TimeFormat), "\r\n"...)
	d.close = d.close || d.conn.server.conns.closed.Load()
	if d.close {
		b = append(b, "Connection: close\r\n"...)
	}
	switch _, announced := d.header["Content-Length"]; {
	case announced:
	case complete && body == nil:
		b = append(b, "Content-Length: 0\r\n"...)
	case complete:
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), int64(len(*body)), 10), "\r\n"...)
	default:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
		d.chunked = true
	}
	*lent = append(b, "\r\n"...)
	if body != nil {
		_, _ = d.Write(*body)
		giveBack(body)
	}
}

// FlushError writes what there is, in one piece.
func (d *direct) FlushError() error {
	if !d.begun {
		d.begin(false)
	}
	if d.pending == nil || d.err != nil {
		return d.err
	}
	if timeout := d.conn.server.cfg.WriteTimeout; !d.bounded && timeout > 0 {
		_ = d.conn.SetWriteDeadline(time.Now().Add(timeout)) // of a closed one it fails, as Write will
	}
	_, d.err = d.conn.Write(*d.pending)
	giveBack(d.pending)
	d.pending = nil
	return d.err
}

func giveBack(b *[]byte) {
	if cap(*b) <= maxChunkBuffer {
		*b = (*b)[:0]
		chunkBuffers.Put(b)
	}
}

// SetReadDeadline has nothing to bound: all of the request has been read.
func (*direct) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline bounds the writes that follow.
func (d *direct) SetWriteDeadline(t time.Time) error {
	d.bounded = true
	return d.conn.SetWriteDeadline(t)
}

// lastChunk is the end of a body.
const lastChunk = "0\r\n\r\n"

// finish is called when nothing more is written: the connection waits for its next
// request, or is closed because the answer is not complete or the client wants it.
func (d *direct) finish(complete bool) {
	if complete {
		d.end()
	}
	d.cancel(nil)
	d.goesOn = complete && d.err == nil && !d.close && d.conn.SetWriteDeadline(time.Time{}) == nil
	if !d.goesOn {
		d.conn.Close()
	}
	d.conn.answers.Store(nil)
}

// end writes the end of a complete answer. Both sides know the end of a body by its
// length or its last chunk.
func (d *direct) end() {
	if !d.begun {
		d.begin(true)
	}
	if d.chunked {
		b := d.lend()
		*b = append(*b, lastChunk...)
	}
	_ = d.FlushError() // it is in err
}
