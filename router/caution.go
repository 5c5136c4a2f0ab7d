package router

import (
	"context"
	"fmt"
	"time"

	"baton/engine"
)

// A request may be what kills its workers, and the others that run there are
// bystanders. Who it is shows when it brings down a second worker, so that second
// time nobody else may be taken for it:
//
//   - A request that lost its worker is unproven until the next one delivers a
//     token of it.
//   - One that had no token on the lost worker, and was not alone there, is more
//     likely to be the culprit: it is cautious. It lets the others start, waits
//     for a worker where no unproven request runs, and no other one joins it there.
//   - If its worker dies all the same, it is the culprit. If other unproven
//     requests die with it, it might be any of them, and none is blamed: they are
//     cautious from then on, and are never tried but apart.

const (
	// cautionGrace is the time in which all streams of a dead worker have noticed
	// that it is.
	cautionGrace = 100 * time.Millisecond
	// maxCaution bounds how long a request that lost one worker waits for a place of
	// its own. One that lost two waits as long as for any worker.
	maxCaution = 2 * time.Second
	// lossWindow is the time in which the losses of a worker's streams count as
	// one death.
	lossWindow = 500 * time.Millisecond
)

// A doubt is what a worker's state says about requests that lost another one.
type doubt struct {
	unproven int   // of the attempts in flight, those of requests that lost a worker and had no token since
	cautious int   // of these, those that are to run apart
	loss     *loss // the latest death, nil before the first
}

// A loss is what is known of a worker's death: how many of its attempts ended
// by it, and how many of these were unproven.
type loss struct {
	began           time.Time
	ended, unproven int
}

// patience returns until when a cautious request waits for the others.
func (c *call) patience() time.Time {
	if len(c.req.Suspects) > 1 {
		return c.deadline
	}
	return c.cautiousFrom.Add(maxCaution)
}

// heldBack returns when a cautious request may start, after those that it was
// with. It is called when there is a worker for it.
func (c *call) heldBack(now time.Time) time.Time {
	if !c.req.Cautious {
		return time.Time{}
	}
	if c.cautiousFrom.IsZero() {
		c.cautiousFrom = now
	}
	return c.cautiousFrom.Add(cautionGrace)
}

// apart returns those of the members where an unproven request cannot be
// mistaken for another one. If there are none, a cautious request waits, within
// its patience. r.mu is held.
func (c *call) apart(members []member, now time.Time) []member {
	if len(c.req.Suspects) == 0 {
		return members
	}
	var free []member
	for _, m := range members {
		if m.w.doubt.cautious == 0 && (m.w.doubt.unproven == 0 || !c.req.Cautious) {
			free = append(free, m)
		}
	}
	if len(free) > 0 || c.req.Cautious && (now.Before(c.patience()) || len(c.req.Suspects) > 1) {
		return free
	}
	return members
}

// notApart is the error of a request that two workers were lost with, and that
// could not be tried alone in time.
func (c *call) notApart(now time.Time) *engine.Error {
	return &engine.Error{Kind: engine.NoWorker, RetryAfter: c.retryAfter(now), Err: fmt.Errorf(
		"%d workers were lost with it and others, and no worker became free to try it without others (waited %v)",
		len(c.req.Suspects), c.r.cfg.WorkerWaitTimeout)}
}

// doubtful counts a new attempt among its worker's unproven ones. r.mu is held.
func (a *attempt) doubtful() {
	if len(a.req.Suspects) == 0 {
		return
	}
	a.unproven = true
	a.w.doubt.unproven++
	if a.req.Cautious {
		a.w.doubt.cautious++
	}
}

// settled takes an attempt out of its worker's unproven ones: a token has come,
// or it is over. r.mu is held.
func (a *attempt) settled() {
	if !a.unproven {
		return
	}
	a.unproven = false
	a.w.doubt.unproven--
	if a.req.Cautious {
		a.w.doubt.cautious--
	}
	if a.w.doubt.unproven == 0 {
		a.r.signal()
	}
}

// noteLoss counts the end of a among those by which its worker was lost. It is
// called while a is still in flight. r.mu is held.
func (a *attempt) noteLoss(now time.Time) {
	d := &a.w.doubt
	if d.loss == nil || now.Sub(d.loss.began) > lossWindow {
		d.loss = &loss{began: now}
	}
	a.loss = d.loss
	a.loss.ended++
	if a.unproven {
		a.loss.unproven++
	}
	a.failure.Shared = a.w.inFlight > 1 || a.loss.ended > 1
}

// alone reports whether of all requests that died with the worker of a only its
// own was unproven. It waits until the fate of the others is known.
func (r *Router) alone(ctx context.Context, a *attempt) bool {
	limit := time.Now().Add(lossWindow)
	for {
		r.mu.Lock()
		left, died, changed := a.w.doubt.unproven, a.loss.unproven, r.changed
		r.mu.Unlock()
		if left == 0 || died > 1 {
			return died <= 1
		}
		if ctx.Err() != nil || !time.Now().Before(limit) {
			return false
		}
		wait(ctx, changed, time.Until(limit))
	}
}
