package router

import (
	"time"

	"baton/engine"
)

// declined returns the error with which w declined the request for a reason of its
// own (engine.Error.Elsewhere), or nil. It is not asked again: nothing will change,
// and the worker is as well as before.
func (c *call) declined(w *worker) *engine.Error {
	if e := c.refusals[w]; e != nil && e.Elsewhere {
		return e
	}
	return nil
}

// declinedByAll returns the error of a request that a worker declined while no
// other one is in rotation that could be asked, now or after a pause. Whether one
// that is out of rotation would take it is not waited for: the error says what is
// wrong with the request, and most fleets are of one kind. r.mu is held.
func (c *call) declinedByAll(now time.Time) (last *engine.Error) {
	for _, m := range c.members {
		if e := c.declined(m.w); e != nil {
			last = e
		} else if m.w.available(now) {
			return nil
		}
	}
	return last
}
