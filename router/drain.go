package router

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"baton/engine"
)

// drainSpacing is the time between two streams that a drained worker gives up:
// they move one by one, because each costs another worker a prefill.
const drainSpacing = 20 * time.Millisecond

// Drain takes the worker out of rotation until Undrain, also over its own
// restart. Its streams may finish for DrainTimeout; then those that can go on
// elsewhere, with tokens or without, are ended, one by one, with an error of kind
// Drained. The others run to their end: a planned stop makes no error. It returns
// how many requests run there, and false if there is no such worker.
func (r *Router) Drain(id string) (running int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.worker(id)
	if w == nil {
		return 0, false
	}
	if !w.drained {
		w.drained = true
		r.settle(w)
		r.log.Info("worker is drained", "worker", id, "in_flight", w.inFlight, "streams_may_run_ms", r.cfg.DrainTimeout.Milliseconds())
	}
	return w.inFlight, true
}

// Undrain brings a drained worker back into rotation. It returns how many
// requests still run there, and false if there is no such worker, or none for long
// any more because it is being removed.
func (r *Router) Undrain(id string) (running int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.worker(id)
	if w == nil || w.removed {
		return 0, false
	}
	if w.drained {
		w.drained = false
		r.settle(w)
		r.log.Info("worker is no longer drained", "worker", id, "in_flight", w.inFlight)
	}
	return w.inFlight, true
}

// settle puts in force what an operator and SetWorkers want of w: it is draining as
// long as one of them has it so. r.mu is held.
func (r *Router) settle(w *worker) {
	draining := w.drained || w.removed
	if draining == w.draining {
		return
	}
	w.draining = draining
	if !draining {
		w.giveUpAt.Store(0)
		r.signal()
		return
	}
	w.giveUpAt.Store(time.Now().Add(r.cfg.DrainTimeout).UnixNano())
}

// worker returns the worker with this id, or nil. r.mu is held.
func (r *Router) worker(id string) *worker {
	i := slices.IndexFunc(r.workers, func(w *worker) bool { return w.spec.ID == id })
	if i < 0 {
		return nil
	}
	return r.workers[i]
}

// drained returns the error with which a drained worker gives this stream up
// now, or nil. It is called between two deltas, when nothing is under way that
// could be lost. The watchdog sees to the streams that have none yet.
func (a *attempt) drained() *engine.Error {
	if a.w.giveUpAt.Load() == 0 { // the usual case, which costs a token one load
		return nil
	}
	if a.req.Movable == nil || !a.req.Movable() {
		return nil
	}
	failure, _ := a.givenUp(a.tokens)
	return failure
}

// givenUp returns the error with which a drained worker gives up a stream that can
// go on elsewhere, after so many tokens, or nil. If it is only not its turn, again
// is when to ask again.
func (a *attempt) givenUp(tokens int) (failure *engine.Error, again time.Duration) {
	giveUpAt, now := a.w.giveUpAt.Load(), time.Now()
	if giveUpAt == 0 || now.UnixNano() < giveUpAt {
		return nil, 0
	}
	if a.req.DrainedFrom == a.w.spec.ID {
		return nil, 0 // it was taken back, and would come and go
	}
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	if !a.w.draining || !a.r.elsewhere(a, tokens, now) {
		return nil, 0
	}
	if wait := drainSpacing - now.Sub(a.w.gaveUp); wait > 0 {
		return nil, wait
	}
	a.w.gaveUp = now
	return a.error(engine.Drained, fmt.Errorf("its worker is drained")), 0
}

// elsewhere reports whether another worker could be asked now to go on with the
// request of a after so many tokens. One that has failed and not yet proved to be
// well does not count. r.mu is held.
func (r *Router) elsewhere(a *attempt, tokens int, now time.Time) bool {
	s := r.table.models[a.model]
	if s == nil {
		return false
	}
	need := len(a.req.TokenIDs) + tokens + 1
	return slices.ContainsFunc(s.members, func(m member) bool {
		return m.w != a.w && m.w.gate == open && m.w.available(now) && !m.w.paused(now) &&
			(m.contextLength == 0 || m.contextLength >= need) && m.client.Unsupported(&a.req) == ""
	})
}

// takenBack returns the drained worker that gave the request up, or on which the part
// of the answer before this one was made, if it can go on there. It is for a request
// that another worker would have taken and no longer does, because it refused or was
// lost, or that none can take: a planned stop makes no error. r.mu is held.
func (c *call) takenBack(now time.Time) []member {
	from := cmp.Or(c.req.DrainedFrom, c.req.Prefer)
	if from == "" {
		return nil
	}
	i := slices.IndexFunc(c.members, func(m member) bool { return m.w.spec.ID == from })
	if i < 0 {
		return nil
	}
	w := c.members[i].w
	if !w.draining || w.up == nil || w.lost || w.gate != open || w.paused(now) || slices.Contains(c.asked, w) {
		return nil
	}
	return c.members[i : i+1]
}
