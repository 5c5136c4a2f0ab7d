package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"baton/engine"
)

const (
	// attachTimeout bounds one call of Attach.
	attachTimeout = 30 * time.Second
	// attachRetry is the time after which Attach is tried again; it doubles up
	// to HealthInterval, or maxAttachRetry without probes.
	attachRetry    = 250 * time.Millisecond
	maxAttachRetry = 5 * time.Second
	// healthTimeout bounds one look at a worker's health.
	healthTimeout = 5 * time.Second
	// proofTimeout bounds one generation of a probe.
	proofTimeout = 10 * time.Second
	// failedProbes in a row inhibit an idle worker. One may be an accident.
	failedProbes = 2
	// looksPerQuestion is how many looks at the health of a worker go by until it is
	// asked again what it is: one that was restarted quickly, while no request ran,
	// answers as before but may serve something else.
	looksPerQuestion = 5
	// never is the time to the next visit of a worker that needs none.
	never = time.Duration(-1)
)

// Run attaches the workers, also those that come later, keeps looking whether they
// are well, brings inhibited ones back, and forgets those that are removed. It
// returns nil when ctx ends, after all it started has.
func (r *Router) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		for _, w := range r.untended() {
			all.Go(func() { r.tend(ctx, w) })
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.added:
		}
	}
}

// tend looks after one worker until ctx ends or the worker is forgotten.
func (r *Router) tend(ctx context.Context, w *worker) {
	for ctx.Err() == nil && !r.forget(w) {
		r.visits(ctx, w)
	}
}

// visits visits one worker whenever something is due, until ctx ends or the worker
// may be forgotten.
func (r *Router) visits(ctx context.Context, w *worker) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r.mu.Lock()
	w.stop = stop
	r.left(w)
	r.mu.Unlock()
	t := tender{r: r, w: w}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var wait time.Duration
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			wait = t.woken()
		case <-timer.C:
			wait = t.visit(ctx)
		}
		wait = t.r.lingers(w, wait)
		if timer.Stop(); wait != never {
			timer.Reset(wait)
		}
	}
}

// A tender is what one worker's goroutine remembers.
type tender struct {
	r     *Router
	w     *worker
	retry time.Duration // before the next Attach
	looks int           // at the health of the worker since it last said what it is
	away  bool          // it looked bad since
	known bool          // attached since it was inhibited
}

// due is what a worker needs.
type due uint8

const (
	nothing due = iota
	attach      // ask what it is
	proof       // a one-token generation
	health      // a cheap look
)

func (t *tender) due() due {
	r, w := t.r, t.w
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case w.up == nil || w.lost:
		return attach
	case r.cfg.HealthInterval <= 0:
		return nothing
	case w.gate != open:
		return proof
	}
	return health
}

// woken returns the time to the first visit after w was inhibited.
func (t *tender) woken() time.Duration {
	t.retry, t.known = 0, false
	switch t.due() {
	case attach:
		return t.nextRetry()
	case nothing:
		return never
	}
	return t.r.cfg.HealthInterval
}

// visit does what is due and returns the time to the next visit.
func (t *tender) visit(ctx context.Context) time.Duration {
	r := t.r
	switch t.due() {
	case attach:
		if r.attachNow(ctx, t.w) != nil {
			return t.nextRetry()
		}
		t.retry, t.looks, t.away, t.known = 0, 0, false, true
		if t.due() == health { // workers that were attached together are not probed together
			return time.Duration(r.rnd(int(r.cfg.HealthInterval/time.Millisecond)+1)) * time.Millisecond
		}
		return 0
	case proof:
		err := r.prove(ctx, t.w)
		if !t.known && (err == nil || engine.AsError(err).Kind == engine.WorkerMisconfigured) {
			// It may have been restarted as something else.
			err = errors.Join(err, r.attachNow(ctx, t.w))
		}
		if ctx.Err() == nil {
			r.proved(t.w, err)
		}
	case health:
		err := t.look(ctx)
		if ctx.Err() == nil {
			r.checked(t.w, err)
		}
	case nothing:
		return never
	}
	return r.cfg.HealthInterval
}

// look asks a worker in rotation for its health, and now and then what it is. One
// that says something new is attached to again, and so is one that is well again
// after a bad look.
func (t *tender) look(ctx context.Context) error {
	t.looks++
	if err := t.r.healthOf(ctx, t.w); err != nil {
		t.away = true
		return err
	}
	if !t.away && t.looks < looksPerQuestion {
		return nil
	}
	if !t.away && t.r.saysTheSame(ctx, t.w) {
		t.looks = 0
		return nil
	}
	err := t.r.attachNow(ctx, t.w)
	if err == nil {
		t.looks, t.away = 0, false
		return nil
	}
	if _, unanswered := errors.AsType[*engine.Error](err); !unanswered && ctx.Err() == nil {
		t.r.replaced(t.w, err)
	}
	return err
}

// saysTheSame asks w what it is, and reports whether that is what it was when it
// was attached. Why it did not answer well is for Attach to find out.
func (r *Router) saysTheSame(ctx context.Context, w *worker) bool {
	r.mu.Lock()
	up := w.up
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	info, err := up.Client.Probe(ctx)
	return err == nil && info.Equal(up.Info)
}

// replaced keeps out a worker that answered well and is not what it was, also
// while requests run there: they are not served by the model they were made for.
func (r *Router) replaced(w *worker, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inhibit(w, &engine.Error{Kind: engine.WorkerMisconfigured, WorkerID: w.spec.ID, Err: err}, w.epoch, time.Now())
}

// nextRetry doubles the time between two calls of Attach, up to the interval of
// probes: a worker that came back shall be there one interval later.
func (t *tender) nextRetry() time.Duration {
	limit := t.r.cfg.HealthInterval
	if limit <= 0 {
		limit = maxAttachRetry
	}
	t.retry = min(max(2*t.retry, attachRetry), limit)
	return t.retry
}

// attachNow asks w what it is. Its client stays the same unless w changed or its
// connection was lost.
func (r *Router) attachNow(ctx context.Context, w *worker) error {
	r.mu.Lock()
	epoch, lost := w.epoch, w.lost
	r.mu.Unlock()
	attachCtx, cancel := context.WithTimeout(ctx, attachTimeout)
	defer cancel()
	up, err := r.attach(attachCtx, w.spec)
	if ctx.Err() != nil {
		return ctx.Err()
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		if message := err.Error(); message != w.attachErr {
			w.attachErr = message
			what := "worker is not attached; baton keeps trying"
			if w.up != nil {
				what = "worker is lost; baton keeps trying to reach it"
			}
			r.log.Warn(what, "worker", w.spec.ID, "url", w.spec.URL, "err", message)
		}
		return fmt.Errorf("attach: %w", err)
	}
	if w.epoch != epoch || w.lost != lost {
		return &engine.Error{Kind: engine.Disconnected, WorkerID: w.spec.ID, Err: errFailedSince} // what was found may be gone
	}
	changed := w.up == nil || !slices.Equal(w.up.Models, up.Models)
	if changed {
		what := "worker attached"
		if w.up != nil {
			what = "worker attached again, with other models"
		}
		r.log.Info(what, "worker", w.spec.ID, "kind", up.Client.Kind(), "version", up.Info.Version, "models", modelNames(up))
	}
	if changed || w.lost || !w.up.Info.Equal(up.Info) {
		w.up, w.lost = up, false
		r.rebuild()
	}
	w.attachErr = ""
	return nil
}

// errFailedSince is the cause of an attach's error when the worker failed meanwhile.
var errFailedSince = errors.New("the worker failed while it was asked what it is")

func modelNames(w *Worker) []string {
	names := make([]string, len(w.Models))
	for i, m := range w.Models {
		names[i] = m.Name
	}
	return names
}

// prove asks w for its health and for one token.
func (r *Router) prove(ctx context.Context, w *worker) error {
	if err := r.healthOf(ctx, w); err != nil {
		return err
	}
	client, req := r.probeRequest(w)
	if req == nil {
		return fmt.Errorf("the worker serves no model")
	}
	ctx, cancel := context.WithTimeout(ctx, proofTimeout)
	defer cancel()
	for d, err := range client.Generate(ctx, req) {
		if err != nil {
			return err
		}
		if d.FinishReason != "" {
			return nil
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errNoFinish
}

// probeRequest returns the smallest generation that proves an engine alive. Id
// 0 is in every vocabulary, whatever it means there.
func (r *Router) probeRequest(w *worker) (engine.Client, *engine.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(w.up.Models) == 0 {
		return nil, nil
	}
	r.probes++
	return w.up.Client, &engine.Request{
		ID:       fmt.Sprintf("probe-%08d", r.probes),
		Model:    w.up.Models[0].Own,
		TokenIDs: []engine.TokenID{0},
		Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1},
		Stop:     engine.StopConditions{MaxTokens: 1},
	}
}

// proved draws the conclusion from a generation probe.
func (r *Router) proved(w *worker, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.count(err)
	if err == nil {
		r.reopen(w, "a probe generated a token")
		return
	}
	// No request need find out what the probe has. A busy worker is alive, though.
	now := time.Now()
	soon := !w.until.After(now.Add(r.cfg.HealthInterval))
	if w.gate == untilTime && soon && !w.trial && engine.AsError(err).Kind != engine.Overloaded {
		w.until = now.Add(max(w.step, r.cfg.HealthInterval))
	}
}

// healthOf takes a cheap look at w.
func (r *Router) healthOf(ctx context.Context, w *worker) error {
	r.mu.Lock()
	client := w.up.Client
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	return client.Health(ctx)
}

// checked draws the conclusion from a look at the health of a worker that is in
// rotation. While requests run there it concludes nothing: busy is not dead,
// and their watchdogs know better.
func (r *Router) checked(w *worker, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.count(err)
	if err == nil || w.inFlight > 0 || w.gate != open || errors.Is(err, engine.ErrExhausted) {
		w.badInARow = 0
		return
	}
	w.badInARow++
	e := engine.AsError(err)
	switch {
	case e.Kind == engine.CannotConnect:
		r.inhibit(w, e, w.epoch, time.Now())
	case w.badInARow >= failedProbes:
		r.inhibit(w, &engine.Error{Kind: engine.EngineError, WorkerID: w.spec.ID, Status: e.Status, Err: err}, w.epoch, time.Now())
	default:
		return
	}
	w.badInARow = 0
}

// count notes the result of a probe. r.mu is held.
func (w *worker) count(err error) {
	if err == nil {
		w.probesGood++
	} else {
		w.probesBad++
	}
}
