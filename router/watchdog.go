package router

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"baton/alarm"
	"baton/engine"
)

const (
	// quietAfter is the least silence that makes the router look at the worker.
	quietAfter = time.Second
	// finishGrace is how long a worker may take to say that an answer is complete
	// which has all its tokens. It leaves time to look whether it is dead.
	finishGrace = quietAfter + 500*time.Millisecond
	// quietPace times its usual silence between two deltas is what a stream may
	// take before the router looks.
	quietPace = 10
	// lookSlack is how long a look may be put off, so that it falls together with
	// those of other streams.
	lookSlack = alarm.Grid
)

// A watchdog measures the silence of a worker in one attempt: the time in which
// we wait for it, not the time in which the consumer holds a delta. It ends the
// attempt when the silence exceeds its bound or the worker is found dead.
//
// A token costs one reading of the clock and two atomic stores; the alarm is not
// touched. It rings about once a second, looks how long the silence is by then, and
// sets itself to the next moment that can matter. The watchdogs of all streams share
// one timer, and ring together unless a bound is to be kept.
type watchdog struct {
	silence  alarm.Silence                // of the worker; nobody waits while the consumer holds a delta
	pace     atomic.Int64                 // the usual silence before a delta, in nanoseconds; 0 = unknown
	quick    atomic.Bool                  // the pace is too quick to matter, and not measured
	talking  atomic.Bool                  // a token has come: the stall bound counts, not the first-token one
	complete atomic.Bool                  // all tokens have come, and only the finish reason is missing
	verdict  atomic.Pointer[engine.Error] // why the attempt was ended

	a      *attempt
	ctx    context.Context // ends with the attempt
	cancel context.CancelCauseFunc

	alarm   alarm.Alarm
	looking atomic.Bool
	looks   sync.WaitGroup // a look that runs

	mu    sync.Mutex // guards heard, and is held by giveUp while it decides
	heard bool       // the worker has said something
}

// begin starts the clock of a, whose watchdog d is.
func (d *watchdog) begin(a *attempt) {
	d.a = a
	d.silence.Init(a.r.clock)
	d.ctx, d.cancel = context.WithCancelCause(a.ctx)
	d.alarm.Ring = d.check
	a.r.mu.Lock()
	a.w.streams[d] = struct{}{}
	a.r.mu.Unlock()
	d.silence.Begin()
	now := a.r.clock.Now()
	d.set(now, now, 0)
}

// arrived stops the clock: a delta is here, and will be delivered.
func (d *watchdog) arrived() {
	if !d.quick.Load() {
		d.measure()
	}
	d.silence.End()
}

// first notes that the worker has said something for the first time. It returns
// false if the attempt had been ended by then.
func (d *watchdog) first() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.heard = true
	return d.verdict.Load() == nil
}

// measure brings the pace up to date. The silence before the first token is none.
func (d *watchdog) measure() {
	silence := int64(d.silence.Length())
	switch pace := d.pace.Load(); {
	case pace > 0:
		d.pace.Store(max(pace+(silence-pace)/8, 1))
	case d.talking.Load():
		d.pace.Store(max(silence, 1))
	}
	d.talking.Store(true)
}

// restart starts the clock anew: the consumer is back for more.
func (d *watchdog) restart() { d.silence.Begin() }

// stop ends the watch and waits for a check and a look that run.
func (d *watchdog) stop() {
	d.a.r.clock.Stop(&d.alarm)
	d.cancel(nil) // ends a look at once
	d.looks.Wait()
}

// check runs on the goroutine of the router's clock: it does nothing that can block.
func (d *watchdog) check(due time.Duration) {
	d.silence.Forgive(due)
	silence := d.silence.Length()
	// Ten times the pace of a stream that has been quick for long is below quietAfter.
	const slow = quietAfter / quietPace
	pace := time.Duration(d.pace.Load())
	d.quick.Store(pace > 0 && pace < slow/2 && silence < slow)
	switch bound := d.bound(); {
	case bound > 0 && silence >= bound:
		d.fail(engine.Stalled, fmt.Errorf("no %s within %v", d.missing(), bound))
		return
	case silence >= d.quiet():
		d.look()
	}
	again := d.giveUp()
	if d.verdict.Load() != nil {
		return
	}
	d.set(due, d.a.r.clock.Now(), again)
}

// look looks at the worker, unless the look before this one is not over.
func (d *watchdog) look() {
	if d.looking.Swap(true) {
		return
	}
	d.looks.Go(func() {
		d.a.r.look(d.ctx, d.a.w)
		d.looking.Store(false)
	})
}

// giveUp ends the attempt if its worker is drained and has not said anything. One
// that has is given up between two deltas. If it is not this one's turn, giveUp
// returns after how long it may be.
func (d *watchdog) giveUp() (again time.Duration) {
	if d.talking.Load() || !d.a.movable {
		return 0
	}
	failure, again := d.a.givenUp(0)
	if failure == nil {
		return again
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.heard { // else it may be movable no more
		d.end(failure)
	}
	return 0
}

// bound is the silence that the worker may keep now; 0 = no bound.
func (d *watchdog) bound() time.Duration {
	stall := d.a.r.cfg.StallTimeout
	switch {
	case d.complete.Load() && (stall == 0 || stall > finishGrace):
		return finishGrace
	case d.talking.Load():
		return stall
	}
	return d.a.r.cfg.FirstTokenTimeout
}

// missing is what the worker is to say next.
func (d *watchdog) missing() string {
	switch {
	case d.complete.Load():
		return "finish reason after the last token"
	case d.talking.Load():
		return "token"
	}
	return "first token"
}

// quiet is the silence after which the router looks.
func (d *watchdog) quiet() time.Duration {
	return max(quietAfter, quietPace*time.Duration(d.pace.Load()))
}

// set sets the alarm to the next moment that can matter, if the worker stays as
// silent as it is now. The last check was due at due; again is what giveUp said.
func (d *watchdog) set(due, now, again time.Duration) {
	silence := d.silence.Length()
	earliest := max(due+lookSpacing, now) // not after now: checks would drift past the moments that others share
	if quiet := d.quiet(); silence < quiet {
		earliest = min(earliest, now+quiet-silence)
	}
	latest := earliest + lookSlack
	if again > 0 {
		latest = min(latest, now+again)
	}
	// The bound may shrink when the first token comes, so both count.
	for _, bound := range [...]time.Duration{d.a.r.cfg.FirstTokenTimeout, d.a.r.cfg.StallTimeout, d.bound()} {
		if bound > silence {
			latest = min(latest, now+bound-silence)
		}
	}
	d.a.r.clock.Set(&d.alarm, min(earliest, latest), latest)
}

// fail ends the attempt. The first verdict stands.
func (d *watchdog) fail(kind engine.Kind, err error) { d.end(d.a.error(kind, err)) }

func (d *watchdog) end(e *engine.Error) {
	if d.verdict.CompareAndSwap(nil, e) {
		d.cancel(e)
	}
}
