package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"baton/engine"
)

const (
	// roundSpacing is the least time between the starts of two rounds of one
	// request over workers that refuse it.
	roundSpacing = 250 * time.Millisecond
	// defaultRetryAfter is the hint of a NoWorker error when no worker is known
	// to come back by itself.
	defaultRetryAfter = 5 * time.Second
)

// A call is one run of Generate: the workers that can serve the request, and
// which of them refused it.
type call struct {
	r        *Router
	req      *engine.Request
	deadline time.Time // of waiting and of new rounds

	table   *table // what members were filtered from
	members []member

	asked      []*worker // in this round
	roundStart time.Time
	refusals   map[*worker]*engine.Error // the last one of each
	attempts   int                       // for the ids
	paced      bool                      // a moved request has had its turn to start

	cautiousFrom time.Time // when a cautious request first had a worker to go to
}

func newCall(r *Router, req *engine.Request) *call {
	now := time.Now()
	return &call{r: r, req: req, deadline: now.Add(r.cfg.WorkerWaitTimeout), roundStart: now}
}

// refused notes that w refused the request.
func (c *call) refused(w *worker, e *engine.Error) {
	if c.refusals == nil {
		c.refusals = make(map[*worker]*engine.Error)
	}
	c.refusals[w] = e
}

// next returns the next attempt, already counted in flight, or why there is
// none. It waits for a worker if it has to.
func (c *call) next(ctx context.Context) (*attempt, *engine.Error) {
	for {
		if e := engine.CauseOf(ctx); e != nil {
			return nil, e
		}
		if e := c.filter(); e != nil {
			return nil, e
		}
		d := c.decide(time.Now())
		if d.attempt != nil || d.failure != nil {
			return d.attempt, d.failure
		}
		wait(ctx, d.changed, time.Until(d.wake))
	}
}

// filter brings members up to date. The clients are asked outside the lock.
func (c *call) filter() (failure *engine.Error) {
	c.r.mu.Lock()
	t := c.r.table
	c.r.mu.Unlock()
	if t != c.table {
		c.table = t
		c.members, failure = t.capable(c.req)
	}
	return failure
}

// A decision is an attempt, a failure, or a wait.
type decision struct {
	attempt *attempt
	failure *engine.Error
	changed <-chan struct{} // closed when it is worth deciding again
	wake    time.Time       // decide again at the latest then
}

// decide chooses a worker that may be asked now, each once per round.
func (c *call) decide(now time.Time) decision {
	r := c.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.table != c.table {
		return decision{wake: now, changed: r.changed} // filter once more
	}

	available := c.available(now, c.asked)
	if len(available) == 0 && len(c.asked) > 0 && !now.Before(c.roundStart.Add(roundSpacing)) && now.Before(c.deadline) {
		if available = c.available(now, nil); len(available) > 0 {
			c.asked, c.roundStart = c.asked[:0], now
		}
	}
	if len(available) == 0 {
		available = slices.DeleteFunc(c.takenBack(now), func(m member) bool { return c.declined(m.w) != nil })
	}
	if len(available) > 0 {
		return c.start(available, now)
	}
	if e := c.misconfigured(now); e != nil {
		return decision{failure: e}
	}
	if e := c.declinedByAll(now); e != nil {
		return decision{failure: e}
	}
	if !now.Before(c.deadline) {
		return decision{failure: c.giveUp(now)}
	}
	return decision{changed: r.changed, wake: c.wake(now)}
}

// start chooses one of the members, all of which may be asked, or says when: a
// request that lost its worker has to wait for its turn, and may have to run apart
// from others. r.mu is held.
func (c *call) start(members []member, now time.Time) decision {
	if until := c.heldBack(now); until.After(now) {
		return decision{wake: until}
	}
	if c.moved() && !c.paced {
		c.paced = true
		if start := c.r.pace(c.req.Model, now, len(members)); start.After(now) {
			return decision{wake: start}
		}
	}
	if apart := c.apart(members, now); len(apart) > 0 {
		return decision{attempt: c.begin(c.choose(apart))}
	}
	wake := c.patience()
	if !now.Before(wake) {
		return decision{failure: c.notApart(now)}
	}
	if t := c.wake(now); t.After(now) && t.Before(wake) {
		wake = t
	}
	return decision{wake: wake, changed: c.r.changed}
}

// available returns the members that may be asked now, without those of except.
// Workers that already failed the request are among them only if there is no other.
func (c *call) available(now time.Time, except []*worker) []member {
	var fresh, avoided []member
	for _, m := range c.members {
		switch {
		case !m.w.available(now), m.w.paused(now), slices.Contains(except, m.w), c.declined(m.w) != nil:
		case slices.Contains(c.req.Avoid, m.w.spec.ID):
			avoided = append(avoided, m)
		default:
			fresh = append(fresh, m)
		}
	}
	if len(fresh) == 0 {
		return avoided
	}
	return fresh
}

// choose takes the preferred one of members, else that of the policy.
func (c *call) choose(members []member) member {
	for _, m := range members {
		if m.w.spec.ID == c.req.Prefer {
			return m
		}
	}
	candidates := make([]Candidate, len(members))
	for i, m := range members {
		candidates[i] = Candidate{WorkerID: m.w.spec.ID, InFlight: m.w.inFlight, Turn: m.w.turn}
	}
	return members[c.r.cfg.Policy(c.req, candidates)]
}

// begin counts an attempt on m. r.mu is held.
func (c *call) begin(m member) *attempt {
	w := m.w
	a := &attempt{r: c.r, w: w, client: m.client, req: *c.req, epoch: w.epoch}
	a.model, a.req.Model = c.req.Model, m.own
	a.req.ID = engine.SubID(c.req.ID, "-r", c.attempts, 3)
	c.attempts++
	c.asked = append(c.asked, w)
	c.r.turns++
	w.turn = c.r.turns
	w.inFlight++
	a.doubtful()
	if w.gate == untilTime {
		w.trial, a.trial = true, true
	}
	return a
}

// misconfigured returns the error of a request whose workers are all set up
// wrongly for us. Waiting does not help it. r.mu is held.
func (c *call) misconfigured(now time.Time) (last *engine.Error) {
	for _, m := range c.members {
		e := c.refusals[m.w]
		if m.w.gate != open && !m.w.available(now) {
			e = m.w.why
		}
		if e == nil || e.Kind != engine.WorkerMisconfigured {
			return nil
		}
		last = e
	}
	return last
}

// giveUp returns the error of a request that waited long enough. It is
// Overloaded only if every worker said so, with status 429 only if every worker
// said 429. r.mu is held.
func (c *call) giveUp(now time.Time) *engine.Error {
	retryAfter := c.retryAfter(now)
	if e := c.overloaded(now); e != nil {
		e.RetryAfter = retryAfter
		return e
	}
	why := "no worker of the model is attached"
	switch n := len(c.members); {
	case n == 1:
		why = "the only worker of the model cannot be asked"
	case n > 1:
		why = fmt.Sprintf("none of the %d workers of the model can be asked", n)
	}
	return &engine.Error{Kind: engine.NoWorker, RetryAfter: retryAfter,
		Err: fmt.Errorf("%s (waited %v)%s", why, c.r.cfg.WorkerWaitTimeout, c.reasons(now))}
}

// maxReasons bounds how many workers an error speaks of.
const maxReasons = 3

// reasons says of each worker that the request waited for why it is not asked.
// Where the model has none, those are all that are not attached: each may be one
// of its workers. r.mu is held.
func (c *call) reasons(now time.Time) string {
	var waitedFor []*worker
	for _, m := range c.members {
		waitedFor = append(waitedFor, m.w)
	}
	if len(c.members) == 0 {
		waitedFor = slices.DeleteFunc(slices.Clone(c.r.workers), func(w *worker) bool { return w.up != nil })
	}
	var b strings.Builder
	for i, w := range waitedFor {
		if i == maxReasons {
			fmt.Fprintf(&b, "; and %d more", len(waitedFor)-i)
			break
		}
		if why := w.reason(now); why != "" {
			fmt.Fprintf(&b, "; %s: %s", w.spec.ID, why)
		}
	}
	return b.String()
}

// overloaded returns the error of a request that all workers refused because
// they are busy, else nil.
func (c *call) overloaded(now time.Time) *engine.Error {
	var last *engine.Error
	all429 := true
	for _, m := range c.members {
		e := c.refusals[m.w]
		if m.w.paused(now) {
			e = m.w.busy
		}
		if e == nil || e.Kind != engine.Overloaded || !m.w.available(now) {
			return nil
		}
		all429 = all429 && e.Status == 429
		last = e
	}
	if last == nil {
		return nil
	}
	final := *last
	if !all429 {
		final.Status = 503
	}
	return &final
}

// retryAfter is the time until the first worker may be asked again, in whole
// seconds, at least one.
func (c *call) retryAfter(now time.Time) time.Duration {
	var first time.Time
	for _, m := range c.members {
		if t := m.w.reopens(); !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	if first.IsZero() {
		return defaultRetryAfter
	}
	return max(first.Sub(now).Truncate(time.Second)+time.Second, time.Second)
}

// wake returns when time alone may have made a worker available, at the latest
// the deadline. Up to a quarter more keeps requests apart that were refused by
// the same worker. r.mu is held.
func (c *call) wake(now time.Time) time.Time {
	wake := c.deadline
	for _, m := range c.members {
		if c.declined(m.w) != nil {
			continue // nothing will change its mind
		}
		asked := slices.Contains(c.asked, m.w)
		t := m.w.reopens()
		if t.IsZero() && !(asked && m.w.available(now)) {
			continue // only an event can
		}
		if round := c.roundStart.Add(roundSpacing); asked && t.Before(round) {
			t = round
		}
		if d := t.Sub(now); d > 0 && (asked || m.w.paused(now)) {
			t = t.Add(time.Duration(c.r.rnd(int(d/4/time.Microsecond)+1)) * time.Microsecond)
		}
		if t.Before(wake) {
			wake = t
		}
	}
	return wake
}

// wait returns after d, when changed is closed, or when ctx ends.
func wait(ctx context.Context, changed <-chan struct{}, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
}
