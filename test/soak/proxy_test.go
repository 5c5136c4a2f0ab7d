//go:build unix

package soak

import (
	"io"
	"net"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A proxy stands before a worker and notes when connections end and when
// requests come.
type proxy struct {
	listener net.Listener
	target   string
	seen     *sightings
}

// sightings are what all proxies of a test saw, by the id of the request: the end
// of its first worker's connection, and its first byte on another worker's.
type sightings struct {
	mu          sync.Mutex // guards what follows
	lost, again map[string]time.Time
}

func newSightings() *sightings {
	return &sightings{lost: map[string]time.Time{}, again: map[string]time.Time{}}
}

// gaps are the times from the loss to the new request, by request.
func (s *sightings) gaps() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []time.Duration
	for id, at := range s.again {
		if lost, ok := s.lost[id]; ok {
			list = append(list, at.Sub(lost))
		}
	}
	return list
}

func (s *sightings) note(where map[string]time.Time, id string) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := where[id]; !known {
		where[id] = now
	}
}

func startProxy(t testing.TB, target string, seen *sightings) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &proxy{listener: l, target: target, seen: seen}
	go p.serve()
	return p
}

func (p *proxy) url() string { return "http://" + p.listener.Addr().String() }

func (p *proxy) serve() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.forward(c)
	}
}

// attemptID finds the id of a request and the number of its move in the bytes of
// a connection.
var attemptID = regexp.MustCompile(`(?i)x-request-id: (\S+)-m(\d\d)-r\d+`)

// forward copies both directions until either end is closed. It connects to the
// worker when the first request is here, so that this takes nothing of the time
// that is measured.
func (p *proxy) forward(front net.Conn) {
	defer front.Close()
	buf := make([]byte, 64<<10)
	n, err := front.Read(buf)
	if err != nil {
		return // it only looked whether the port is open
	}
	var first atomic.Pointer[string] // the newest request that has its first attempt here
	p.inspect(buf[:n], &first)
	back, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	go func() {
		defer back.Close()
		for err == nil {
			if _, err = back.Write(buf[:n]); err != nil {
				return
			}
			n, err = front.Read(buf)
			p.inspect(buf[:n], &first)
		}
	}()
	io.Copy(front, back)
	if id := first.Load(); id != nil {
		p.seen.note(p.seen.lost, *id) // the frontend learns of it after this moment
	}
}

// inspect looks for the beginning of an attempt.
func (p *proxy) inspect(data []byte, first *atomic.Pointer[string]) {
	m := attemptID.FindSubmatch(data)
	if m == nil {
		return
	}
	id := string(m[1])
	if string(m[2]) == "00" {
		first.Store(&id)
		return
	}
	p.seen.note(p.seen.again, id)
}
