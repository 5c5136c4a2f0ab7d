package server

import (
	"bytes"
	"cmp"
	"context"
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
//
// Where the system does not tell of clients that leave, all are net/http's.
func (s *Server) Listen(l net.Listener, srv *http.Server) net.Listener {
	s.http = srv
	s.conns.timeout = cmp.Or(max(srv.IdleTimeout, 0), defaultIdleTimeout)
	return &listener{Listener: l, server: s}
}

type listener struct {
	net.Listener
	server *Server
}

// A watchedConn tells when its client has hung up, as a socket.Conn does.
type watchedConn interface {
	net.Conn
	OnHangup(func()) error
	Forget()
}

// Accept returns the next connection that is none of ours from the start.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		watched, ok := l.server.conns.watch(c)
		if !ok {
			return c, nil
		}
		go l.server.serveConn(watched)
	}
}

func (l *listener) Close() error {
	l.server.conns.close()
	return l.Listener.Close()
}

// A conn is a connection that is ours. One goroutine reads its requests and answers
// them.
type conn struct {
	watchedConn
	server  *Server
	remote  string
	answers atomic.Pointer[direct] // what is answered; nil = a request is waited for
	left    atomic.Bool            // the client has
	first   [1]byte                // of a request

	idleSince atomic.Int64 // when it began to wait for a request, by the clock of conns; 0 = it does not
	bounded   bool         // reads have a deadline
}

// serveConn serves a connection to its end, or until net/http has to take it.
func (s *Server) serveConn(wc watchedConn) {
	c := &conn{watchedConn: wc, server: s}
	if addr := wc.RemoteAddr(); addr != nil {
		c.remote = addr.String()
	}
	if !s.conns.add(c) {
		c.Close()
		return
	}
	var unread []byte
	goesOn := true
	if err := c.OnHangup(c.hungUp); err == nil {
		unread, goesOn = c.serve()
	} else { // net/http has its own means
		s.conns.unwatched.Do(func() {
			s.log.Warn("clients that leave are not told of by the system; their connections are served at a higher price", "err", err)
		})
	}
	c.Forget()
	s.conns.remove(c)
	if goesOn {
		c.handOver(unread) // it is closed by net/http from now on
		return
	}
	c.Close()
}

// hungUp ends the request that is answered. Also of a client that has closed only
// its half of the connection nobody knows whether it reads the answer: net/http sees
// that in the same way.
func (c *conn) hungUp() {
	c.left.Store(true) // and then look; answer does it the other way round
	if d := c.answers.Load(); d != nil {
		d.lost()
	}
}

// shut closes c while it waits for a request. One that comes at this very moment is
// not answered for nobody: of a connection that is closed no hang-up is told.
func (c *conn) shut() {
	c.Close()
	c.hungUp()
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
		c.readWithin(timeout)
	}
	begun, err := c.await(nil, 0)
	for err == nil {
		r, unread := c.receive(begun)
		if r == nil {
			return unread, true
		}
		strays := 0
		if r.Method == http.MethodPost {
			strays = maxStrayLineEnds
		}
		if !c.answer(r) || !c.server.conns.wait(c) {
			break
		}
		begun, err = c.await(unread, strays)
	}
	return nil, false
}

// answer calls the handler and reports whether the connection goes on.
func (c *conn) answer(r *http.Request) bool {
	ctx, cancel := context.WithCancelCause(context.Background())
	d := &direct{conn: c, cancel: cancel, header: make(http.Header, 8), close: r.Close}
	c.idleSince.Store(0)
	// Counted first: what conns.close passes over, because it is answered, Drain must
	// then find among the answers.
	c.server.running.beginAnswer()
	defer c.server.running.endAnswer()
	c.answers.Store(d)
	if c.left.Load() {
		d.lost()
	}
	d.serve(r.WithContext(ctx))
	return d.goesOn
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

// readWithin bounds the reads that follow. Each deadline is a timer, and to set one
// may wake a thread, so a request that is there needs none.
func (c *conn) readWithin(d time.Duration) {
	c.bounded = true
	_ = c.SetReadDeadline(time.Now().Add(d)) // of a closed one it fails, as Read will
}

// readUnbounded ends what readWithin began.
func (c *conn) readUnbounded() {
	if c.bounded {
		c.bounded = false
		_ = c.SetReadDeadline(time.Time{}) // of a closed one it fails, as Read will
	}
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
			c.readWithin(plainRequestTime)
		}
		n, err := c.Read(lent[read:])
		c.idleSince.Store(0)
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
		c.readWithin(plainRequestTime)
		m, err := io.ReadFull(c, body[n:])
		if err != nil {
			return nil, append(bytes.Clone(lent[:size]), body[:n+m]...)
		}
	}
	if len(body) > 0 {
		r.Body = newWholeBody(body)
	}
	r.RemoteAddr = c.remote
	c.readUnbounded()
	if size += n; size < read {
		unread = bytes.Clone(lent[size:read])
	}
	return r, unread
}

// handOver gives the connection to net/http, with what was read of it.
func (c *conn) handOver(begun []byte) {
	c.readUnbounded()
	plain := net.Conn(c.watchedConn)
	if s, ok := plain.(*socket.Conn); ok {
		plain = s.Unwrap() // net/http may write to it as it likes
	}
	one := &single{conn: &begunConn{Conn: plain, begun: begun}}
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
