package router

import (
	"slices"
	"strings"
	"time"
)

// ModelStatus is a snapshot of one model.
type ModelStatus struct {
	Name          string
	Ready, Total  int       // workers that can be asked now; workers that serve it
	ContextLength int       // the largest among its workers
	Since         time.Time // when it was first seen
}

// WorkerStatus is a snapshot of one worker.
type WorkerStatus struct {
	ID, URL  string
	Kind     string   // the engine's name; "" until attached
	Models   []string // public names
	State    string   // starting, ready, suspect, inhibited, draining, removing
	Reason   string   // why it is not asked now; "" if it is
	InFlight int      // requests running there now
}

// Models returns the models of all attached workers by name. A worker that is
// merely busy counts as ready.
func (r *Router) Models() []ModelStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	var all []ModelStatus
	for name, s := range r.table.models {
		m := ModelStatus{Name: name, Total: len(s.members), ContextLength: s.contextLength, Since: s.since}
		for _, member := range s.members {
			if member.w.available(now) {
				m.Ready++
			}
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b ModelStatus) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Workers returns all workers in the order of their specs.
func (r *Router) Workers() []WorkerStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	all := make([]WorkerStatus, len(r.workers))
	for i, w := range r.workers {
		all[i] = WorkerStatus{ID: w.spec.ID, URL: w.spec.URL, State: w.state(now), Reason: w.reason(now), InFlight: w.inFlight}
		if w.up != nil {
			all[i].Kind = w.up.Client.Kind()
			all[i].Models = modelNames(w.up)
		}
	}
	return all
}

// ContextLength returns the largest context of the model among its workers, in
// tokens; 0 = unknown.
func (r *Router) ContextLength(model string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.table.models[model]; s != nil {
		return s.contextLength
	}
	return 0
}
