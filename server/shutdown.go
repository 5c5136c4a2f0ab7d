package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"baton/engine"
	"baton/openai"
)

// The end of the process has two steps, which main takes in its own time:
// BeginShutdown, so that load balancers look elsewhere while requests are still
// served; Drain.

// endGrace is how long ended requests have to tell their clients.
const endGrace = 5 * time.Second

// closeGrace is how long the last refusals may take.
const closeGrace = time.Second

// Running returns how many requests of the generation API are being answered.
func (s *Server) Running() int { return s.running.count() }

// BeginShutdown makes /health say 503. Requests are still served.
func (s *Server) BeginShutdown() { s.running.stop(false) }

// Drain refuses new requests, with 503 and Retry-After, and waits until the running
// ones have ended. When ctx ends before, it ends them, each with an honest error,
// and returns how many there were. Connections that are ours go on no further.
func (s *Server) Drain(ctx context.Context) int {
	s.running.stop(true)
	n := 0
	if !s.running.wait(ctx) {
		n = s.running.end(errShuttingDown)
		s.waitFor(ctx, endGrace)
	}
	// A refusal that is being written gets to its client; nothing comes after it.
	s.conns.close()
	s.waitFor(ctx, closeGrace)
	return n
}

func (s *Server) waitFor(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	s.running.wait(ctx)
}

func isShutdown(e *engine.Error) bool { return errors.Is(e.Err, errShuttingDown) }

// running is the set of requests that are being answered.
type running struct {
	limit int // 0 = none

	mu       sync.Mutex // guards what follows
	calls    map[*call]struct{}
	admitted int // of these, those that count against the limit
	answers  int // outside net/http, each to its last byte, which comes after its call has gone
	stopping bool
	refusing bool
	idle     chan struct{} // closed when there is none of either; nil: nobody waits
}

// add takes c in, or says why not.
func (r *running) add(c *call) *openai.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusing {
		return errStopping("The server is shutting down.")
	}
	if r.calls == nil {
		r.calls = make(map[*call]struct{})
	}
	r.calls[c] = struct{}{}
	return nil
}

// admit counts c against the limit, or says that it is reached. It is asked once
// the body is there: a client that sends half of one takes no place.
func (r *running) admit(c *call) *openai.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limit > 0 && r.admitted >= r.limit {
		return &openai.Error{
			Status:     http.StatusTooManyRequests,
			Message:    fmt.Sprintf("The limit of %d concurrent requests is reached (--max-concurrent-requests). %s", r.limit, retryLater),
			Type:       openai.TypeRateLimit,
			Code:       "too_many_concurrent_requests",
			RetryAfter: retryAfterDefault,
		}
	}
	r.admitted++
	c.admitted = true
	return nil
}

func (r *running) remove(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, c)
	if c.admitted {
		r.admitted--
	}
	r.tellIdle()
}

// beginAnswer and endAnswer surround an answer outside net/http: the process must
// not end before its last byte is written, and the call is over by then.
func (r *running) beginAnswer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers++
}

func (r *running) endAnswer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers--
	r.tellIdle()
}

// tellIdle is called with the lock held, whenever something has gone.
func (r *running) tellIdle() {
	if r.idle != nil && len(r.calls) == 0 && r.answers == 0 {
		close(r.idle)
		r.idle = nil
	}
}

func (r *running) stop(refuse bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopping = true
	r.refusing = r.refusing || refuse
}

func (r *running) isStopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopping
}

func (r *running) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// wait returns true when nothing runs, false when ctx ended before.
func (r *running) wait(ctx context.Context) bool {
	r.mu.Lock()
	if len(r.calls) == 0 && r.answers == 0 {
		r.mu.Unlock()
		return true
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}

// end cancels every running request and returns how many there were.
func (r *running) end(cause error) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.calls {
		c.cancel(cause)
	}
	return len(r.calls)
}
