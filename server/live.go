package server

import (
	"cmp"
	"slices"
	"time"
)

// RequestStatus is a snapshot of one request of the generation API while it runs.
type RequestStatus struct {
	ID       string // ours
	ClientID string // of X-Request-Id; "" = none that we echo
	Endpoint string // as the label of the metrics
	Model    string // public name; "" until the body has been read
	Start    time.Time
	Choices  []ChoiceStatus // none until the body has been read
}

// ChoiceStatus is a snapshot of one choice of a request.
type ChoiceStatus struct {
	WorkerID   string // where it runs; "" = it waits for a worker, or has ended
	Tokens     int    // generated so far, by all attempts
	Attempts   int
	Migrations int
	Moving     bool // its worker failed, and the next one has not delivered anything yet
}

// Requests returns the requests that are being answered, the oldest first, at
// most limit of them, and how many there are. It does not hold them up.
func (s *Server) Requests(limit int) (oldest []RequestStatus, total int) {
	calls := s.running.all()
	total = len(calls)
	slices.SortFunc(calls, func(a, b *call) int {
		return cmp.Or(a.start.Compare(b.start), cmp.Compare(a.ids.own, b.ids.own))
	})
	for _, c := range calls[:min(total, limit)] {
		oldest = append(oldest, c.status())
	}
	return oldest, total
}

// all returns the running requests in no order.
func (r *running) all() []*call {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := make([]*call, 0, len(r.calls))
	for c := range r.calls {
		calls = append(calls, c)
	}
	return calls
}

// status may be called from any goroutine. It reads only what does not change
// after c was added to the running ones, or after it was prepared, and what is
// made to be read by others.
func (c *call) status() RequestStatus {
	st := RequestStatus{ID: c.ids.own, Endpoint: c.ep.label, Start: c.start}
	if c.ids.shown != c.ids.own {
		st.ClientID = c.ids.shown
	}
	if !c.isPrepared.Load() {
		return st
	}
	st.Model = c.prepared.Model
	for _, choice := range c.choices {
		p := choice.trace.Progress()
		st.Choices = append(st.Choices, ChoiceStatus{
			WorkerID: p.WorkerID, Tokens: int(choice.completionTokens.Load()),
			Attempts: p.Attempts, Migrations: p.Migrations, Moving: p.Moving,
		})
	}
	return st
}
