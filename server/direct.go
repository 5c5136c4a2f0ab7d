package server

import (
	"bytes"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A direct is the http.ResponseWriter of a stream over plain HTTP/1.1. It takes
// the connection from net/http with the first byte of the answer: from then on a
// stream is one small goroutine and one that waits for the client to leave,
// without the handler's grown stack, net/http's buffers and its request. When the
// answer is complete the connection goes back to net/http for the next request.
//
// Its Write and FlushError are called by one goroutine at a time, as the
// sse.Writer does it.
type direct struct {
	server *Server
	w      http.ResponseWriter // net/http's; nil once the connection is ours
	close  bool                // the client wants the connection closed afterwards
	taken  chan struct{}       // closed when the connection is ours

	conn    net.Conn
	pending *[]byte // what the next flush writes; nil = nothing
	err     error   // of taking the connection, or of a write

	mu   sync.Mutex  // guards what follows
	lost func(error) // is called when the client leaves; nil once the answer is over
	next []byte      // what was read of the next request
	gone bool        // the client has closed its side
}

// chunkBuffers are lent to the writes of direct answers.
var chunkBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

// maxChunkBuffer bounds what is kept of a buffer that grew.
const maxChunkBuffer = 64 << 10

func newDirect(s *Server, w http.ResponseWriter, r *http.Request, lost func(error)) *direct {
	return &direct{server: s, w: w, close: r.Close, taken: make(chan struct{}), lost: lost}
}

// directly reports whether the answer to r can be a direct one.
func (s *Server) directly(w http.ResponseWriter, r *http.Request) bool {
	_, ok := w.(http.Hijacker)
	return ok && s.http != nil && r.TLS == nil && r.ProtoMajor == 1 && r.ProtoMinor == 1
}

// Header returns net/http's, until the answer begins.
func (d *direct) Header() http.Header {
	if d.w == nil {
		return http.Header{}
	}
	return d.w.Header()
}

// WriteHeader takes the connection for a stream, and prepares the head of a chunked
// answer. Anything else is net/http's.
func (d *direct) WriteHeader(status int) {
	if status != http.StatusOK {
		d.w.WriteHeader(status)
		return
	}
	conn, buffered, err := d.w.(http.Hijacker).Hijack()
	if err != nil {
		d.err = err
		return
	}
	d.conn = conn
	if n := buffered.Reader.Buffered(); n > 0 {
		early, _ := buffered.Reader.Peek(n)
		d.next = bytes.Clone(bytes.TrimLeft(early, "\r\n")) // see watch
	}
	var head bytes.Buffer
	head.WriteString("HTTP/1.1 " + strconv.Itoa(status) + " " + http.StatusText(status) + "\r\n")
	_ = d.w.Header().Write(&head)
	head.WriteString("Date: " + time.Now().UTC().Format(http.TimeFormat) + "\r\n")
	if d.close {
		head.WriteString("Connection: close\r\n")
	}
	head.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	d.pending = chunkBuffers.Get().(*[]byte)
	*d.pending = append(*d.pending, head.Bytes()...)
	d.w = nil
	if len(d.next) == 0 {
		go d.watch()
	}
	close(d.taken)
}

// Write makes a chunk of p.
func (d *direct) Write(p []byte) (int, error) {
	switch {
	case d.err != nil:
		return 0, d.err
	case d.w != nil:
		return d.w.Write(p)
	case len(p) == 0:
		return 0, nil // as a chunk it would be the last one
	}
	if d.pending == nil {
		d.pending = chunkBuffers.Get().(*[]byte)
	}
	b := append(strconv.AppendInt(*d.pending, int64(len(p)), 16), "\r\n"...)
	*d.pending = append(append(b, p...), "\r\n"...)
	return len(p), nil
}

// lastChunk is the end of a body.
var lastChunk = []byte("0\r\n\r\n")

// FlushError writes what there is, in one piece.
func (d *direct) FlushError() error {
	if d.pending == nil || d.err != nil {
		return d.err
	}
	_, d.err = d.conn.Write(*d.pending)
	if cap(*d.pending) <= maxChunkBuffer {
		*d.pending = (*d.pending)[:0]
		chunkBuffers.Put(d.pending)
	}
	d.pending = nil
	return d.err
}

// SetWriteDeadline bounds the writes that follow.
func (d *direct) SetWriteDeadline(t time.Time) error {
	if d.conn == nil {
		return http.ErrNotSupported // only writes of a begun answer have one
	}
	return d.conn.SetWriteDeadline(t)
}

// maxStrayLineEnds are passed over between a request's body and the next request:
// some clients send a line end that no length counts, RFC 9112 section 2.2. net/http
// does it too, but only while the connection is its own.
const maxStrayLineEnds = 4

// watch waits for the client to leave, or to send its next request early. When the
// answer is over it goes on to wait for that.
func (d *direct) watch() {
	var b [1]byte
	n, err := d.conn.Read(b[:])
	for skipped := 1; n > 0 && (b[0] == '\r' || b[0] == '\n') && skipped <= maxStrayLineEnds; skipped++ {
		n, err = d.conn.Read(b[:])
	}
	d.mu.Lock()
	lost := d.lost
	if n > 0 {
		d.next = []byte{b[0]}
	}
	d.gone = n == 0
	d.mu.Unlock()
	switch {
	case lost == nil:
		d.server.waiting.remove(d.conn)
		d.goOn()
	case n == 0:
		lost(err)
	}
}

// finish is called when nothing more is written to the connection: it goes back to
// net/http, or waits for the first byte to do so, or is closed because the answer
// is not complete. Both sides know the end of a body only by its last chunk.
func (d *direct) finish(complete bool) {
	if complete && d.err == nil {
		_, d.err = d.conn.Write(lastChunk)
	}
	keep := complete && d.err == nil && !d.close && d.conn.SetDeadline(time.Now().Add(d.server.idleTimeout())) == nil
	d.mu.Lock()
	d.lost = nil
	known := d.gone || len(d.next) > 0
	if keep && !known {
		keep = d.server.waiting.add(d.conn) // watch goes on
	}
	d.mu.Unlock()
	switch {
	case !keep:
		d.conn.Close()
	case known:
		d.goOn()
	}
}

// goOn gives the connection back to net/http if there is something to read, else
// closes it.
func (d *direct) goOn() {
	if d.gone || d.conn.SetDeadline(time.Time{}) != nil {
		d.conn.Close()
		return
	}
	conn := d.conn
	if p, ok := conn.(*begunConn); ok && len(p.begin) == 0 {
		conn = p.Conn
	}
	again := &single{conn: &begunConn{Conn: conn, begin: d.next}}
	_ = d.server.http.Serve(again) // it returns at once, with the error of the second Accept
	if again.conn != nil {
		conn.Close() // the server has been shut down
	}
}

// A begunConn is a connection of which something was read already.
type begunConn struct {
	net.Conn
	begin []byte
}

func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.begin) > 0 {
		n := copy(p, c.begin)
		c.begin = c.begin[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// CloseWrite lets net/http end a connection on which more is on its way in such a
// manner that the client can still read the answer.
func (c *begunConn) CloseWrite() error {
	if conn, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return nil
}

// A single is a listener to which one connection has come.
type single struct{ conn net.Conn }

func (l *single) Accept() (net.Conn, error) {
	conn := l.conn
	if l.conn = nil; conn == nil {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l *single) Close() error   { return nil }
func (l *single) Addr() net.Addr { return nil }

// waiting are the connections that wait for their next request, of which net/http
// knows nothing.
type waiting struct {
	mu     sync.Mutex // guards what follows
	conns  map[net.Conn]struct{}
	closed bool
}

// add reports whether connections may still wait.
func (w *waiting) add(c net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	if w.conns == nil {
		w.conns = make(map[net.Conn]struct{})
	}
	w.conns[c] = struct{}{}
	return true
}

func (w *waiting) remove(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

func (w *waiting) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for c := range w.conns {
		c.Close()
	}
}

// AttachTo lets streams leave net/http while they run: see direct. It is called
// before srv, whose handler is the Server's, serves. srv's shutdown closes the
// connections that wait; of a running stream it knows nothing, see Drain.
func (s *Server) AttachTo(srv *http.Server) {
	s.http = srv
	srv.RegisterOnShutdown(s.waiting.close)
}

// defaultIdleTimeout is how long a connection waits for its next request if the
// http.Server does not say.
const defaultIdleTimeout = 2 * time.Minute

func (s *Server) idleTimeout() time.Duration {
	if d := s.http.IdleTimeout; d > 0 {
		return d
	}
	return defaultIdleTimeout
}
