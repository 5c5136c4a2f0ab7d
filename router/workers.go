package router

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// SetWorkers makes specs the workers of r. It may be called at any time, by any
// goroutine.
//
// A worker is known by its URL and its stated kind. One that is there already
// stays as it is, with its id. A new one is attached to. One that specs no longer
// name gets no new requests and loses those that run there as a drained worker
// does; when the last one has left it is forgotten. Named again before that, it is
// simply kept.
//
// The id of a new worker is that of its spec, with -N appended if another worker
// has that, which may be one that is being removed.
func (r *Router) SetWorkers(specs []Spec) {
	r.mu.Lock()
	defer r.mu.Unlock()
	added, kept, removed := r.name(specs)
	if len(added)+len(kept)+len(removed) == 0 {
		return
	}
	attrs := []any{"workers", len(specs)}
	for _, change := range []struct {
		what    string
		workers []*worker
	}{{"added", added}, {"removed", removed}, {"kept_after_all", kept}} {
		if len(change.workers) > 0 {
			attrs = append(attrs, change.what, listed(change.workers))
		}
	}
	r.log.Info("the set of workers has changed", attrs...)
	select {
	case r.added <- struct{}{}:
	default:
	}
}

// name makes specs the workers that are named. It returns those that are new,
// those that come back while they are being removed, and those that are to be
// removed from now on. r.mu is held.
func (r *Router) name(specs []Spec) (added, kept, removed []*worker) {
	known, ids := make(map[identity]*worker), make(map[string]bool)
	for _, w := range r.workers {
		known[w.spec.identity()], ids[w.spec.ID] = w, true
	}
	var workers []*worker
	named := make(map[identity]bool)
	for _, spec := range specs {
		if named[spec.identity()] {
			continue
		}
		named[spec.identity()] = true
		w := known[spec.identity()]
		switch {
		case w == nil:
			spec.ID = unused(spec.ID, ids)
			ids[spec.ID] = true
			w = newWorker(spec)
			added = append(added, w)
		case w.removed:
			w.removed = false
			r.settle(w)
			kept = append(kept, w)
		}
		workers = append(workers, w)
	}
	for _, w := range r.workers {
		if named[w.spec.identity()] {
			continue
		}
		if !w.removed {
			w.removed = true
			r.settle(w)
			r.left(w)
			removed = append(removed, w)
		}
		if w.tended {
			workers = append(workers, w) // until forget
		}
	}
	r.workers = workers
	return added, kept, removed
}

// identity is what makes a worker the same one as before.
type identity struct{ url, kind string }

func (s Spec) identity() identity { return identity{s.URL, s.Kind} }

// unused returns id, or the first of id-2, id-3, … that is not in use.
func unused(id string, used map[string]bool) string {
	unique := id
	for n := 2; used[unique]; n++ {
		unique = id + "-" + strconv.Itoa(n)
	}
	return unique
}

// untended returns the workers that have no goroutine yet; they are to get one.
func (r *Router) untended() []*worker {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*worker
	for _, w := range r.workers {
		if !w.tended {
			w.tended = true
			all = append(all, w)
		}
	}
	return all
}

// left ends the visits to w if it may be forgotten now. It is called, with r.mu
// held, when that may have become so.
func (r *Router) left(w *worker) {
	if !w.removed || w.inFlight > 0 || w.stop == nil {
		return
	}
	if time.Now().Before(r.mayTakeBack(w)) {
		w.nudge() // for lingers
		return
	}
	w.stop()
}

// lingers ends the visits to w if it may be forgotten now. Else it returns the time
// to the next visit, which is due in wait otherwise.
func (r *Router) lingers(w *worker, wait time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !w.removed || w.inFlight > 0 {
		return wait
	}
	left := time.Until(r.mayTakeBack(w))
	if left <= 0 {
		w.stop()
	}
	if wait == never || left < wait {
		return left
	}
	return wait
}

// mayTakeBack is until when a stream that w gave up may still come back, because
// no other worker takes it.
func (r *Router) mayTakeBack(w *worker) time.Time {
	return w.gaveUp.Add(r.cfg.WorkerWaitTimeout + time.Second)
}

// forget removes all traces of w if it is to be removed and no request runs there,
// and reports whether it has. Nobody visits w meanwhile.
func (r *Router) forget(w *worker) bool {
	r.mu.Lock()
	if !w.removed || w.inFlight > 0 {
		r.mu.Unlock()
		return false
	}
	w.up = nil // no request may begin there: what it needs is about to go
	r.rebuild()
	r.mu.Unlock()

	if r.cfg.Forget != nil {
		r.cfg.Forget(w.spec.ID)
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if !w.removed {
		return false // it came back this moment, and is attached to anew
	}
	r.workers = slices.DeleteFunc(r.workers, func(other *worker) bool { return other == w })
	r.log.Info("worker is gone", "worker", w.spec.ID)
	return true
}

// rebuild makes a new table, and forgets what was kept of models that are no
// longer in it. r.mu is held.
func (r *Router) rebuild() {
	now := time.Now()
	r.table = buildTable(r.table, r.workers, now)
	maps.DeleteFunc(r.nextMove, func(model string, at time.Time) bool { return r.table.models[model] == nil && at.Before(now) })
	r.signal()
}

// maxListed bounds a list of workers in a record.
const maxListed = 10

func listed(workers []*worker) []string {
	ids := []string{}
	for i, w := range workers {
		if i == maxListed {
			return append(ids, fmt.Sprintf("and %d more", len(workers)-i))
		}
		ids = append(ids, w.spec.ID)
	}
	return ids
}
