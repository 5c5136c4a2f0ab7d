package server

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"baton/alarm"
	"baton/socket"
)

// conns are the connections that are ours.
type conns struct {
	closed atomic.Bool // none waits for a request any more
	mu     sync.Mutex  // guards the rest
	open   map[*conn]struct{}

	unwatched sync.Once       // warns that a connection could not be watched
	watcher   *socket.Watcher // nil = no TCP connection has come yet

	timeout time.Duration // for which one may wait for a request
	start   time.Time     // of the clock of idleSince
	timer   *time.Timer   // of the next sweep; nil = none is needed
	due     time.Duration // when that is, by the clock
}

// watch returns c as a connection that tells when its client hangs up, if it can.
func (s *conns) watch(c net.Conn) (watchedConn, bool) {
	if _, ok := c.(*net.TCPConn); ok {
		c = s.watcherOf().Wrap(c)
	}
	watched, ok := c.(watchedConn)
	return watched, ok
}

func (s *conns) watcherOf() *socket.Watcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watcher == nil {
		s.watcher = socket.NewWatcher()
	}
	return s.watcher
}

// add reports whether there may be more.
func (s *conns) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		s.closeWatcher() // which may have been made for c
		return false
	}
	if s.open == nil {
		s.open, s.start = make(map[*conn]struct{}), time.Now()
	}
	s.open[c] = struct{}{}
	return true
}

func (s *conns) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	s.closeWatcher()
}

// closeWatcher is called when a connection or the listener has been closed. s.mu is held.
func (s *conns) closeWatcher() {
	if s.watcher != nil && s.closed.Load() && len(s.open) == 0 {
		s.watcher.Close()
	}
}

// wait notes that c, on which nothing is answered any more, waits for a request, and reports
// whether it may. One timer ends the waiting of all: to set one for each would be
// dearer than all else at the end of an answer.
func (s *conns) wait(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.idleSince.Store(int64(max(time.Since(s.start), 1)))
	if s.timer == nil {
		s.sweepAfter(s.timeout)
	}
	return !s.closed.Load()
}

func (s *conns) sweepAfter(d time.Duration) {
	s.due = time.Since(s.start) + d
	s.timer = time.AfterFunc(d, s.sweep)
}

// sweep closes the connections that have waited for too long, which is up to an
// eighth more than the timeout. A sweep that comes much too late closes none: it is
// we who stood still, and requests that came meanwhile are still to be read.
func (s *conns) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = nil
	now, first := time.Since(s.start), time.Duration(0) // that began to wait, of those that may go on
	late := now-s.due > alarm.StoodStill
	for c := range s.open {
		since := time.Duration(c.idleSince.Load())
		switch {
		case since == 0:
		case now-since >= s.timeout && !late:
			c.shut()
		case first == 0 || since < first:
			first = since
		}
	}
	if first > 0 && !s.closed.Load() {
		s.sweepAfter(max(first+s.timeout-now, s.timeout/8))
	}
}

// close closes the idle ones. The others close with the end of their answers: each
// says that nothing is answered, then looks whether this was called.
func (s *conns) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed.Store(true)
	if s.timer != nil {
		s.timer.Stop()
	}
	for c := range s.open {
		if c.answers.Load() == nil {
			c.shut()
		}
	}
	s.closeWatcher()
}
