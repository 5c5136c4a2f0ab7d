package transport

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"baton/socket"
)

const (
	// idleTimeout is how long a connection is kept for the next request.
	// uvicorn and cpp-httplib close idle ones after about five seconds; leaving
	// first avoids the race.
	idleTimeout = 2 * time.Second

	maxIdleConns = 1024
)

// A connection bears one request at a time, and is read and written on the
// goroutine of whoever made that request: an open stream costs no goroutine here,
// and no buffer while it waits.
type connection struct {
	net.Conn          // what is read and written: raw, or TLS over it
	raw      net.Conn // what is closed: TLS's own Close could wait for a dead peer

	reused    bool
	idleSince time.Time
}

// close may be called from any goroutine, and more than once. Whoever reads or
// writes gets an error.
func (c *connection) close() { c.raw.Close() }

// connect returns a connection: a kept one, unless a fresh one is asked for or
// there is none that lives.
func (l *Link) connect(ctx context.Context, fresh bool) (*connection, error) {
	if !fresh {
		for conn := l.idle.take(); conn != nil; conn = l.idle.take() {
			if alive(conn) {
				conn.reused = true
				return conn, nil
			}
			conn.close()
		}
	}
	if err := l.turns.take(ctx); err != nil {
		return nil, err
	}
	// Making a connection takes a deep stack, and the goroutine that we are on keeps
	// the one that it has grown for as long as the answer takes.
	type result struct {
		conn *connection
		err  error
	}
	made := make(chan result)
	go func() {
		conn, err := l.open(ctx)
		l.turns.giveBack()
		made <- result{conn, err}
	}()
	r := <-made
	return r.conn, r.err
}

// open makes a connection.
func (l *Link) open(ctx context.Context) (*connection, error) {
	raw, err := l.bounded(ctx, func(ctx context.Context) (net.Conn, error) { return l.dial(ctx, "tcp", l.address) })
	if err != nil {
		return nil, err
	}
	raw = socket.Wrap(raw)
	if l.tls == nil {
		return &connection{Conn: raw, raw: raw}, nil
	}
	secure, err := l.bounded(ctx, func(ctx context.Context) (net.Conn, error) {
		c := tls.Client(raw, l.tls)
		return c, c.HandshakeContext(ctx)
	})
	if err != nil {
		raw.Close()
		return nil, err
	}
	return &connection{Conn: secure, raw: raw}, nil
}

// bounded gives each of the two steps of connecting the time that there is.
func (l *Link) bounded(ctx context.Context, step func(context.Context) (net.Conn, error)) (net.Conn, error) {
	if l.connectTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.connectTimeout)
		defer cancel()
	}
	return step(ctx)
}

// idleConns are the connections that wait for the next request.
type idleConns struct {
	mu    sync.Mutex
	list  []*connection // the longest idle first
	timer *time.Timer   // closes them in time; nil = none is set
}

// put keeps a connection on which nothing is under way.
func (p *idleConns) put(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) >= maxIdleConns {
		c.close()
		return
	}
	c.idleSince = time.Now()
	p.list = append(p.list, c)
	if p.timer == nil {
		p.timer = time.AfterFunc(idleTimeout, p.expire)
	}
}

// take returns the connection that was used last, or nil.
func (p *idleConns) take() *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.list) - 1
	if n < 0 {
		return nil
	}
	c := p.list[n]
	p.list[n] = nil
	p.list = p.list[:n]
	return c
}

// expire closes what has been idle for too long, and comes again for the rest.
func (p *idleConns) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, n := time.Now(), 0
	for n < len(p.list) && now.Sub(p.list[n].idleSince) >= idleTimeout {
		p.list[n].close()
		n++
	}
	p.list = append(p.list[:0], p.list[n:]...)
	clear(p.list[len(p.list) : len(p.list)+n])
	p.timer = nil
	if len(p.list) > 0 {
		p.timer = time.AfterFunc(idleTimeout-now.Sub(p.list[0].idleSince), p.expire)
	}
}

func (p *idleConns) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.list {
		c.close()
	}
	p.list = nil
}
