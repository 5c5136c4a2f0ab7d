package router

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	"baton/engine"
)

const (
	// maxInhibition is where the doubling of InhibitDuration ends.
	maxInhibition = time.Minute
	// defaultPause is how long a worker is left alone that said 429 or 503
	// without saying for how long.
	defaultPause = 250 * time.Millisecond
	// maxPause bounds what a worker may ask for with Retry-After.
	maxPause = 10 * time.Second
)

// A gate says what brings a worker back into rotation. The larger one is the
// stricter one.
type gate uint8

const (
	open       gate = iota // it is in rotation
	untilTime              // the end of the inhibition with one request first, or a good probe
	untilProbe             // a good one-token generation
)

// gateOf says what the failure of an attempt means for its worker: open for
// kinds that are not the worker's fault, and for Overloaded, which only pauses.
func gateOf(kind engine.Kind) gate {
	switch kind {
	case engine.CannotConnect, engine.ConnectionTimeout, engine.Disconnected:
		return untilTime
	case engine.Stalled, engine.EngineShutdown, engine.EngineError, engine.ProtocolError, engine.WorkerMisconfigured:
		return untilProbe
	}
	return open
}

// A worker is one spec and what is known of it. Apart from the first three
// fields, which never change, everything is guarded by Router.mu.
type worker struct {
	spec    Spec
	address string        // host:port for a look; "" = the URL has none
	wake    chan struct{} // tells Run that something happened; holds one signal

	up        *Worker // nil until the first attach
	lost      bool    // the connection was lost: attach before any other request
	attachErr string  // the last one, which is logged once

	inFlight int
	turn     uint64                 // the number of the choice that it last was
	streams  map[*watchdog]struct{} // of the attempts in flight

	gate  gate
	until time.Time     // the end of the inhibition, for untilTime
	step  time.Duration // the length of the last inhibition; 0 after a success
	epoch int           // counts inhibitions
	trial bool          // the one request that goes first is under way
	why   *engine.Error // what closed the gate

	pausedUntil time.Time     // it said 429 or 503
	busy        *engine.Error // how it said that

	doubt doubt

	looking  bool      // one look at a time
	lookedAt time.Time // when the last one ended

	drained  bool         // by an operator, until undrained
	removed  bool         // SetWorkers names it no longer; it is forgotten when nothing runs there
	draining bool         // one of the two: no new requests
	giveUpAt atomic.Int64 // when its streams are to move away, in Unix nanoseconds; 0 = it is not draining
	gaveUp   time.Time    // when the last one did

	tended bool               // Run has a goroutine for it
	stop   context.CancelFunc // ends the visits of that goroutine

	probesGood, probesBad uint64
	badInARow             int
}

func newWorker(spec Spec) *worker {
	return &worker{
		spec:    spec,
		address: addressOf(spec.URL),
		wake:    make(chan struct{}, 1),
		streams: make(map[*watchdog]struct{}),
	}
}

// addressOf returns the host:port that a URL is served at.
func addressOf(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// available tells whether a new request may be sent now; a pause is not looked at.
func (w *worker) available(now time.Time) bool {
	if w.up == nil || w.lost || w.trial || w.draining {
		return false
	}
	return w.gate == open || w.gate == untilTime && !now.Before(w.until)
}

func (w *worker) paused(now time.Time) bool { return now.Before(w.pausedUntil) }

// reopens returns when time alone will make w available, the zero time if only
// an event can.
func (w *worker) reopens() time.Time {
	if w.up == nil || w.lost || w.trial || w.draining || w.gate == untilProbe {
		return time.Time{}
	}
	if w.gate == untilTime && w.until.After(w.pausedUntil) {
		return w.until
	}
	return w.pausedUntil
}

// The states of a worker, as metrics and the admin page show them.
const (
	stateStarting  = "starting"  // not attached yet
	stateReady     = "ready"     // may be asked
	stateSuspect   = "suspect"   // the inhibition is over, one request goes first
	stateInhibited = "inhibited" // kept out of rotation
	stateDraining  = "draining"  // taken out of rotation by an operator
	stateRemoving  = "removing"  // no longer among the workers, but requests run there
)

var allStates = [...]string{stateStarting, stateReady, stateSuspect, stateInhibited, stateDraining, stateRemoving}

func (w *worker) state(now time.Time) string {
	switch {
	case w.removed:
		return stateRemoving
	case w.draining:
		return stateDraining
	case w.up == nil:
		return stateStarting
	case w.gate == open:
		return stateReady
	case w.trial || w.available(now):
		return stateSuspect
	}
	return stateInhibited
}

// reason says in one sentence why w is not asked, "" if it is.
func (w *worker) reason(now time.Time) string {
	switch w.state(now) {
	case stateRemoving:
		return "no longer among the workers; it is forgotten when nothing runs there"
	case stateDraining:
		return "drained by an operator"
	case stateStarting:
		if w.attachErr == "" {
			return "not attached yet"
		}
		return w.attachErr
	case stateSuspect:
		return "one request goes first after " + describe(w.why)
	case stateInhibited:
		switch {
		case w.lost && w.attachErr != "":
			return fmt.Sprintf("%s, and it cannot be attached again: %s", describe(w.why), w.attachErr)
		case w.lost:
			return "is asked again what it is, after " + describe(w.why)
		case w.gate == untilProbe:
			return "waits for a good one-token generation after " + describe(w.why)
		}
		return fmt.Sprintf("kept out until %s after %s", w.until.Format(time.TimeOnly), describe(w.why))
	}
	if w.paused(now) {
		return fmt.Sprintf("left alone until %s after %s", w.pausedUntil.Format(time.TimeOnly), describe(w.busy))
	}
	return ""
}

// describe returns what may be shown and logged of a failure: never an engine's
// own words, which may quote a prompt.
func describe(e *engine.Error) string {
	if e == nil {
		return "a failure"
	}
	if e.Status != 0 {
		return fmt.Sprintf("%s (status %d)", e.Kind, e.Status)
	}
	if gateOf(e.Kind) == untilTime || e.Kind == engine.Stalled {
		if e.Err != nil {
			return fmt.Sprintf("%s (%v)", e.Kind, e.Err)
		}
	}
	return e.Kind.String()
}

// inhibit closes the gate of w after a failure. epoch is w.epoch when the failed
// attempt began: of a death with many witnesses only the first one makes the
// next inhibition longer, the others at most make it stricter. r.mu is held.
func (r *Router) inhibit(w *worker, e *engine.Error, epoch int, now time.Time) {
	g := gateOf(e.Kind)
	if g == open || r.cfg.InhibitDuration <= 0 {
		return
	}
	lost := g == untilTime
	if r.cfg.HealthInterval <= 0 {
		g = untilTime // nobody probes
	}
	if epoch != w.epoch && w.gate != open && !w.available(now) {
		w.gate = max(w.gate, g)
		w.lost = w.lost || lost
		return
	}
	if epoch == w.epoch || w.step == 0 {
		w.step = min(max(2*w.step, r.cfg.InhibitDuration), max(maxInhibition, r.cfg.InhibitDuration))
	}
	w.epoch++
	w.gate, w.until, w.why = g, now.Add(w.step), e
	w.lost = w.lost || lost
	w.trial = false
	r.log.Warn("worker inhibited", "worker", w.spec.ID, "reason", describe(e), "until", r.backAfter(w), "in_flight", w.inFlight)
	w.nudge()
}

// backAfter says what brings an inhibited worker back. r.mu is held.
func (r *Router) backAfter(w *worker) string {
	switch {
	case w.gate == untilProbe:
		return "a probe generates a token"
	case r.cfg.HealthInterval <= 0:
		return w.step.String() + " have passed"
	}
	return w.step.String() + " have passed or a probe generates a token"
}

// pause leaves a worker alone that said 429 or 503. r.mu is held.
func (w *worker) pause(e *engine.Error, now time.Time) {
	d := e.RetryAfter
	if d <= 0 {
		d = defaultPause
	}
	w.busy = e
	if until := now.Add(min(d, maxPause)); until.After(w.pausedUntil) {
		w.pausedUntil = until
	}
}

// reopen brings w back into rotation. r.mu is held.
func (r *Router) reopen(w *worker, because string) {
	if w.gate == open {
		return
	}
	w.gate, w.trial = open, false
	r.log.Info("worker is back", "worker", w.spec.ID, "because", because)
	r.signal()
}

// nudge makes Run look after w without waiting for the next interval.
func (w *worker) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
