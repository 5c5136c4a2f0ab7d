package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"baton/hub"
)

// ErrFetching is in the chain of an error that says so of a model: its files are on
// their way, and nothing has gone wrong so far.
var ErrFetching = errors.New("being fetched")

// MayComeLater tells of an error of [Set.Resolve] whether the model may be there the
// next time without anybody's doing: it is on its way from the hub.
func MayComeLater(err error) bool {
	_, ofHub := errors.AsType[*hub.Error](err)
	return ofHub || errors.Is(err, ErrFetching)
}

const (
	// maxFetches bounds how many models are fetched in all: workers may name any.
	maxFetches = 64
	// parallelFetches is how many models are fetched at a time.
	parallelFetches = 2
	// fetchRetry is the time after which a fetch that failed is tried again; it
	// doubles up to maxFetchRetry. Where a person must act it is finalRetry at once.
	fetchRetry    = time.Second
	finalRetry    = time.Minute
	maxFetchRetry = 5 * time.Minute
	// restWait is how long a model of which the tokenizer is here waits for the rest.
	restWait = 15 * time.Second
)

// fetches are the models that are fetched while others serve.
type fetches struct {
	hub  *hub.Hub
	log  *slog.Logger
	new  chan *fetch   // what Run has not seen yet
	slot chan struct{} // one for each that may be on its way

	mu  sync.Mutex // guards all and what it leads to
	all map[hub.Ref]*fetch
}

// A fetch is one model on its way.
type fetch struct {
	ref     hub.Ref
	wanted  time.Time // first
	found   hub.Found
	done    bool
	failure error // of the last attempt
	without bool  // it was said that it is done without
}

func newFetches(h *hub.Hub, log *slog.Logger) *fetches {
	return &fetches{
		hub:  h,
		log:  log,
		new:  make(chan *fetch, maxFetches),
		slot: make(chan struct{}, parallelFetches),
		all:  make(map[hub.Ref]*fetch),
	}
}

// want returns what was fetched, or says how far it is. Whoever wants a model first
// starts its fetch.
func (f *fetches) want(ref hub.Ref) (hub.Found, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.all[ref]
	switch {
	case one == nil && len(f.all) >= maxFetches:
		return hub.Found{}, fmt.Errorf("%s is not fetched: %d models were wanted of the hub since the start, which is the limit; give its folder with --model-path", ref, maxFetches)
	case one == nil:
		one = &fetch{ref: ref, wanted: time.Now()}
		f.all[ref] = one
		f.new <- one // has room for all that may be in the map
	case one.done:
		return one.found, nil
	case one.failure != nil:
		return hub.Found{}, one.failure
	}
	return hub.Found{}, fmt.Errorf("the files of %s are %w from the hub; the worker is used as soon as they are there", ref, ErrFetching)
}

// isOverdue tells whether the rest of a model was waited for long enough.
func (f *fetches) isOverdue(ref hub.Ref) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.all[ref]
	return one == nil || time.Since(one.wanted) >= restWait
}

// doWithout says, once, that the part of a model that is on this machine has to do.
func (f *fetches) doWithout(ref hub.Ref, place string, why error) {
	f.mu.Lock()
	one := f.all[ref]
	said := one == nil || one.without
	if one != nil {
		one.without = true
	}
	f.mu.Unlock()
	if !said {
		f.log.Warn("a model is used without asking the hub for what may be missing of it: end ids, defaults or the chat template could differ from the worker's",
			"model", ref.String(), "folder", place, "err", why)
	}
}

// run fetches what is wanted until ctx ends and all it started has.
func (f *fetches) run(ctx context.Context) error {
	var group errgroup.Group
	for {
		select {
		case <-ctx.Done():
			return group.Wait()
		case one := <-f.new:
			group.Go(func() error {
				f.fetch(ctx, one)
				return nil
			})
		}
	}
}

// fetch makes attempts until one succeeds.
func (f *fetches) fetch(ctx context.Context, one *fetch) {
	said, wait := "", time.Duration(0)
	for {
		err := f.attempt(ctx, one)
		if err == nil || ctx.Err() != nil {
			return
		}
		wait = retryIn(wait, err)
		if text := err.Error(); text != said {
			said = text
			f.log.Log(ctx, levelOf(err), "a model's files cannot be fetched; baton tries again", "model", one.ref.String(), "in", wait, "err", text)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// levelOf is that of the record on a fetch that failed: an error is what a person
// must do something about.
func levelOf(err error) slog.Level {
	if e, ok := errors.AsType[*hub.Error](err); ok && e.IsFinal() {
		return slog.LevelError
	}
	return slog.LevelWarn
}

// retryIn is the time to the next attempt after one that failed.
func retryIn(last time.Duration, err error) time.Duration {
	wait := max(2*last, fetchRetry)
	e, ok := errors.AsType[*hub.Error](err)
	if ok && e.IsFinal() {
		wait = max(wait, finalRetry)
	}
	wait = min(wait, maxFetchRetry)
	if ok {
		wait = max(wait, e.RetryAfter)
	}
	return wait
}

// attempt waits for its turn and asks the hub once.
func (f *fetches) attempt(ctx context.Context, one *fetch) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case f.slot <- struct{}{}:
	}
	found, err := f.hub.Fetch(ctx, one.ref)
	<-f.slot
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() == nil {
		one.found, one.failure, one.done = found, err, err == nil
	}
	return err
}
