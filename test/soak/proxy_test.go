//go:build unix

package soak

import (
	"io"
	"net"
	"regexp"
	"sync"
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

// forward copies both directions until either end is closed.
func (p *proxy) forward(front net.Conn) {
	defer front.Close()
	back, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	var id string // of the first attempt that is running here
	var mu sync.Mutex
	go func() {
		defer back.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := front.Read(buf)
			if m := attemptID.FindSubmatch(buf[:n]); m != nil {
				if string(m[2]) == "00" {
					mu.Lock()
					id = string(m[1])
					mu.Unlock()
				} else {
					p.seen.note(p.seen.again, string(m[1]))
				}
			}
			if _, err2 := back.Write(buf[:n]); err != nil || err2 != nil {
				return
			}
		}
	}()
	io.Copy(front, back)
	mu.Lock()
	defer mu.Unlock()
	if id != "" {
		p.seen.note(p.seen.lost, id) // the frontend learns of it after this moment
	}
}
