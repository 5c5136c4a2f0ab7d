package enginetest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
)

// A Network connects clients and servers in memory. Like net.Pipe it has no
// buffers: what was written was read. The zero Network has no servers; dialing an
// address that nobody listens on is refused.
type Network struct {
	mu        sync.Mutex // guards the maps
	listeners map[string]*listener
	open      map[*Conn]struct{}
	made      int
}

// Listen returns a listener at address, any string of the form host:port.
func (n *Network) Listen(address string) net.Listener {
	l := &listener{network: n, address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = make(map[string]*listener)
	}
	n.listeners[address] = l
	return l
}

// Serve runs an HTTP server at address and returns the function that ends it:
// the listener and all of its connections.
func (n *Network) Serve(address string, handler http.Handler) (stop func()) {
	server := &http.Server{Handler: handler}
	l := n.Listen(address)
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(l)
	}()
	return func() {
		server.Close()
		<-done
	}
}

// DialContext is a dialer of this network.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	l := n.listeners[address]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	client, pipe := net.Pipe()
	server := &serverConn{Conn: pipe}
	conn := &Conn{Conn: client, network: n, server: server}
	select {
	case l.conns <- server:
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.open == nil {
			n.open = make(map[*Conn]struct{})
		}
		n.open[conn] = struct{}{}
		n.made++
		return conn, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
	}
}

// Open counts the connections whose client side is not closed.
func (n *Network) Open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.open)
}

// Made counts the connections that were ever made.
func (n *Network) Made() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.made
}

// A Conn is the client's end of a connection.
type Conn struct {
	net.Conn
	network *Network
	server  *serverConn
	closed  atomic.Bool
}

// Close closes the connection.
func (c *Conn) Close() error {
	first := !c.closed.Swap(true)
	if first {
		c.network.mu.Lock()
		delete(c.network.open, c)
		c.network.mu.Unlock()
	}
	err := c.Conn.Close()
	if first {
		c.server.hangUp()
	}
	return err
}

// A serverConn is the server's end of a connection. It tells of hangups as a
// socket.Conn does.
type serverConn struct {
	net.Conn
	mu     sync.Mutex // guards the rest
	left   bool       // the client has
	onLeft func()     // nil = nobody asks
}

func (c *serverConn) OnHangup(f func()) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.onLeft = f; c.left {
		f()
	}
	return nil
}

func (c *serverConn) Forget() { c.OnHangup(func() {}) }

func (c *serverConn) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left = true; c.onLeft != nil {
		c.onLeft()
	}
}

type listener struct {
	network *Network
	address string
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		if l.network.listeners[l.address] == l {
			delete(l.network.listeners, l.address)
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return addr(l.address) }

type addr string

func (a addr) Network() string { return "memory" }
func (a addr) String() string  { return string(a) }
