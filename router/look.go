package router

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"baton/engine"
)

const (
	// defaultLookTimeout bounds a look where no connect bound is configured.
	defaultLookTimeout = 3 * time.Second
	// lookSpacing is the time between two looks for the same silent stream.
	lookSpacing = time.Second
	// lookShared is how long the answer to one stream's look serves the other
	// streams of the worker.
	lookShared = 100 * time.Millisecond
)

// look finds out whether the port of w is still open. If it is not, w is
// inhibited, and those of its streams that are silent are ended: others may
// flow, because a server that stops may let its streams finish behind a closed
// port. There is one look at a time for each worker. If the stream that asked
// ends meanwhile (ctx), the look ends without an answer and the next silent
// stream asks again.
func (r *Router) look(ctx context.Context, w *worker) {
	if w.address == "" || !r.startLook(w) {
		return
	}
	dead := r.portClosed(ctx, w.address)

	r.mu.Lock()
	defer r.mu.Unlock()
	w.looking, w.lookedAt = false, time.Now()
	if dead == nil {
		return
	}
	for d := range w.streams {
		if d.silence.Length() >= d.quiet() {
			d.fail(engine.Disconnected, dead)
		}
	}
	if w.gate == open || w.trial { // else the death is known
		e := &engine.Error{Kind: engine.Disconnected, WorkerID: w.spec.ID, Err: dead}
		r.inhibit(w, e, w.epoch, w.lookedAt)
	}
}

// startLook reserves the look at w, unless one runs or has just run.
func (r *Router) startLook(w *worker) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.looking || time.Since(w.lookedAt) < lookShared {
		return false
	}
	w.looking = true
	return true
}

// portClosed connects to address and closes the connection. The error says how
// that failed; nil also if the attempt says nothing about the worker.
func (r *Router) portClosed(ctx context.Context, address string) error {
	dialCtx, cancel := context.WithTimeout(ctx, r.cfg.ConnectTimeout)
	defer cancel()
	conn, err := r.cfg.Dial(dialCtx, "tcp", address)
	if err == nil {
		conn.Close()
		return nil
	}
	if ctx.Err() != nil || ourOwn(err) {
		return nil
	}
	return fmt.Errorf("the stream is silent and the port is closed: %w", err)
}

// ourOwn tells whether a connect failed for a reason that lies with this
// machine or its name server.
func ourOwn(err error) bool {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return true
	}
	for _, code := range [...]error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}
