package router

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"baton/engine"
)

// goneTimeout bounds the look that tells a worker's death from a mere loss of
// its connection.
const goneTimeout = 500 * time.Millisecond

// suspicious reports whether the failure of a may be one more death that its
// request brought about.
func (a *attempt) suspicious() bool {
	return a.failure.IsLoss() && a.tokens == 0 && len(a.req.Suspects) > 0
}

// gone reports whether the worker of a is dead, and all of its request's
// suspects are. They are looked at side by side. A worker whose engine said that
// it is dead needs no look: its HTTP side may live on for some seconds.
func (r *Router) gone(ctx context.Context, a *attempt) bool {
	var look []*worker
	if a.failure.Kind != engine.EngineShutdown {
		look = append(look, a.w)
	}
	r.mu.Lock()
	for _, id := range a.req.Suspects {
		w := r.worker(id)
		if w != nil && (w.gate == open || w.why.Kind != engine.EngineShutdown) {
			look = append(look, w)
		}
	}
	r.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	var alive atomic.Bool
	var all sync.WaitGroup
	for _, w := range look {
		all.Go(func() {
			if w.address == "" || r.portClosed(ctx, w.address) == nil {
				alive.Store(true)
			}
		})
	}
	all.Wait()
	return !alive.Load()
}
