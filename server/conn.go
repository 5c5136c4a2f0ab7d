package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"baton/socket"
)

const (
	// plainHeadBytes bounds the head of a request that we read ourselves.
	plainHeadBytes = 4 << 10
	// maxPlainBodyBytes bounds its body, of which all is read before anything is
	// known of who sends it.
	maxPlainBodyBytes = 256 << 10
	// plainRequestTime is how long it may take to arrive once it has begun.
	plainRequestTime = time.Second

	// defaultIdleTimeout is how long a connection waits for its next request if the
	// http.Server does not say.
	defaultIdleTimeout = 2 * time.Minute

	// maxStrayLineEnds are passed over behind a POST: some clients send line ends that
	// no length counts, RFC 9112 section 2.2. It is as net/http has it.
	maxStrayLineEnds = 4
)

// Listen returns what srv, whose handler is the Server's, is to serve in place of l.
// Of the connections that come there, those of plain HTTP/1.1 are served here, for
// as long as their requests are what most clients send; net/http gets the others,
// and each connection with its first request that is different. Once the listener
// is closed, which srv's shutdown does, idle connections are closed; of a running
// answer srv knows nothing, see Drain.
func (s *Server) Listen(l net.Listener, srv *http.Server) net.Listener {
	s.http = srv
	return &listener{Listener: l, server: s}
}

type listener struct {
	net.Listener
	server *Server
}

// Accept returns the next connection that is none of ours from the start.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if _, encrypted := c.(*tls.Conn); encrypted {
			return c, nil
		}
		go l.server.serveConn(c)
	}
}

func (l *listener) Close() error {
	l.server.conns.close()
	return l.Listener.Close()
}

// A conn is a connection that is ours. Its goroutine reads requests; while one is
// answered, by others, it waits for the client to leave, which costs a small stack
// and no buffer.
type conn struct {
	net.Conn
	server *Server
	remote string
	busy   atomic.Bool // a request is answered
	ahead  atomic.Bool // of the next one, more is read meanwhile
	over   chan bool   // gets a value with the end of each answer: whether the connection goes on
	first  [1]byte     // of a request
}

// serveConn serves a connection to its end, or until net/http has to take it.
func (s *Server) serveConn(nc net.Conn) {
	c := &conn{Conn: socket.Wrap(nc), server: s, over: make(chan bool, 1)}
	if addr := nc.RemoteAddr(); addr != nil {
		c.remote = addr.String()
	}
	if !s.conns.add(c) {
		c.Close()
		return
	}
	if unread, goesOn := c.serve(); goesOn {
		s.conns.remove(c) // it is closed by net/http from now on
		c.handOver(unread)
		return
	}
	s.conns.remove(c)
	c.Close()
}

// serve answers requests. It returns what was read of one that is not plain, or
// that the connection does not go on. What goes wrong here is the end of one
// connection, and not of the process.
func (c *conn) serve() (unread []byte, goesOn bool) {
	defer func() {
		if v := recover(); v != nil {
			c.server.logPanic(requestIDs{}, v)
			goesOn = false
		}
	}()
	if timeout := c.server.http.ReadHeaderTimeout; timeout > 0 {
		_ = c.SetReadDeadline(time.Now().Add(timeout)) // of a closed one it fails, as Read will
	}
	begun, err := c.await(nil, 0)
	for goesOn = true; goesOn && err == nil; goesOn = c.answered() {
		r, unread := c.receive(begun)
		if r == nil {
			return unread, true
		}
		strays := 0
		if r.Method == http.MethodPost {
			strays = maxStrayLineEnds
		}
		d := c.answer(r)
		if begun, err = c.await(unread, strays); err == nil {
			begun, err = c.readAhead(begun)
		}
		if err != nil {
			d.lost(err)
		}
	}
	return nil, false
}

// answer lets the handler run, on a goroutine that ends with it: the stack that it
// needs would stay here for as long as the connection does.
func (c *conn) answer(r *http.Request) *direct {
	ctx, cancel := context.WithCancelCause(context.Background())
	d := &direct{conn: c, cancel: cancel, header: make(http.Header, 8), close: r.Close}
	c.busy.Store(true)
	c.server.running.beginAnswer()
	go d.serve(r.WithContext(ctx))
	return d
}

// await returns the beginning of the next request, which may be in what was read
// behind the one before. It passes over so many line ends before it.
func (c *conn) await(unread []byte, strays int) (begun []byte, err error) {
	for begun = unread; ; strays-- {
		if len(begun) == 0 {
			if _, err := io.ReadFull(c, c.first[:]); err != nil {
				return nil, err
			}
			begun = c.first[:]
		}
		if isLineEnd := begun[0] == '\r' || begun[0] == '\n'; !isLineEnd || strays <= 0 {
			return begun, nil
		}
		begun = begun[1:]
	}
}

// readAhead reads on behind the beginning of a request while the one before is
// answered, because who sends early may leave as well. It stops when the answer is
// complete, or when there is so much that nobody can tell.
func (c *conn) readAhead(begun []byte) ([]byte, error) {
	c.ahead.Store(true) // and then look at busy: idle does it the other way round
	if !c.busy.Load() {
		return begun, nil
	}
	ahead := append(make([]byte, 0, plainHeadBytes), begun...)
	for c.busy.Load() && len(ahead) < cap(ahead) {
		n, err := c.Read(ahead[len(ahead):cap(ahead)])
		ahead = ahead[:len(ahead)+n]
		if err != nil && c.busy.Load() {
			return nil, err
		}
	}
	return ahead, nil
}

// answered waits for the end of an answer and reports whether the connection goes on.
func (c *conn) answered() bool {
	goesOn := <-c.over
	if c.ahead.Swap(false) {
		_ = c.SetReadDeadline(time.Now().Add(plainRequestTime)) // of a closed one it fails, as Read will
	}
	return goesOn
}

// headBuffers are lent to requests that are read.
var headBuffers = sync.Pool{New: func() any { return new([plainHeadBytes]byte) }}

// receive reads the rest of a request, and returns it with what was read behind it.
// It returns no request, and all that was read, if that is not a plain one, or does
// not arrive in time.
func (c *conn) receive(begun []byte) (r *http.Request, unread []byte) {
	lent := headBuffers.Get().(*[plainHeadBytes]byte)
	defer headBuffers.Put(lent)
	read := copy(lent[:], begun)
	size := headSize(lent[:read])
	for reads := 0; size == 0; reads++ {
		if read == len(lent) {
			return nil, bytes.Clone(lent[:read])
		}
		if reads == 1 {
			_ = c.SetReadDeadline(time.Now().Add(plainRequestTime)) // of a closed one it fails, as Read will
		}
		n, err := c.Read(lent[read:])
		if read += n; err != nil {
			return nil, bytes.Clone(lent[:read])
		}
		if size = headSize(lent[:read]); size == 0 && !mayBePlain(lent[:read]) {
			return nil, bytes.Clone(lent[:read]) // who knows whether more will come
		}
	}
	if r = plainRequest(string(lent[:size])); r == nil {
		return nil, bytes.Clone(lent[:read])
	}
	body := make([]byte, r.ContentLength)
	n := copy(body, lent[size:read])
	if n < len(body) {
		_ = c.SetReadDeadline(time.Now().Add(plainRequestTime))
		m, err := io.ReadFull(c, body[n:])
		if err != nil {
			return nil, append(bytes.Clone(lent[:size]), body[:n+m]...)
		}
	}
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.RemoteAddr = c.remote
	_ = c.SetReadDeadline(time.Time{})
	if size += n; size < read {
		unread = bytes.Clone(lent[size:read])
	}
	return r, unread
}

// idle reports whether the connection can wait for its next request, of which the
// beginning may have been read.
func (c *conn) idle() bool {
	c.busy.Store(false)
	timeout := c.server.http.IdleTimeout
	switch {
	case c.ahead.Load():
		timeout = -1 // it must not be waited for before what there is has been looked at
	case timeout <= 0:
		timeout = defaultIdleTimeout
	}
	return !c.server.conns.closed.Load() && c.SetReadDeadline(time.Now().Add(timeout)) == nil
}

// handOver gives the connection to net/http, with what was read of it.
func (c *conn) handOver(begun []byte) {
	_ = c.SetReadDeadline(time.Time{}) // of a closed one it fails, as Read will
	one := &single{conn: &begunConn{Conn: c.Conn, begun: begun}}
	_ = c.server.http.Serve(one) // it returns at once, with the error of the second Accept
	if one.conn != nil {
		c.Close() // the server has been shut down
	}
}

// A begunConn is a connection of which something was read already.
type begunConn struct {
	net.Conn
	begun []byte
}

func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.begun) > 0 {
		n := copy(p, c.begun)
		if c.begun = c.begun[n:]; len(c.begun) == 0 {
			c.begun = nil // which may be a large body
		}
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

// conns are the connections that are ours.
type conns struct {
	closed atomic.Bool // none waits for a request any more
	mu     sync.Mutex  // guards open
	open   map[*conn]struct{}
}

// add reports whether there may be more.
func (s *conns) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return false
	}
	if s.open == nil {
		s.open = make(map[*conn]struct{})
	}
	s.open[c] = struct{}{}
	return true
}

func (s *conns) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// close closes the idle ones. The others close with the end of their answers: each
// says that it is not busy, then looks whether this was called.
func (s *conns) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed.Store(true)
	for c := range s.open {
		if !c.busy.Load() {
			c.Close()
		}
	}
}
