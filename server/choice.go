package server

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"baton/backend"
	"baton/engine"
)

// maxParallelChoices bounds how many choices of one request run at a time; the
// others wait for their turn.
const maxParallelChoices = 16

// A choice is one element of the answer while it is generated. Everything in it
// belongs to the goroutine that runs it, until all choices have ended.
type choice struct {
	call    *call
	index   int
	request *backend.Request
	trace   engine.Trace

	delta            backend.Delta // the newest one; its slices end with the iteration
	completionTokens int
	lastToken        time.Time
	latencies        latencyCounts
}

func newChoice(c *call, index int) *choice {
	choice := &choice{call: c, index: index, request: c.prepared.Choices[index].Request}
	choice.request.Tokens.Trace = &choice.trace
	return choice
}

// A deliverFunc takes the newest delta of a choice. With several choices it is
// called from several goroutines.
type deliverFunc func(*choice) error

// run runs all choices and returns when every one has ended. If one fails the
// others are cancelled, and its error is returned: an answer that lacks a choice
// is none. A single choice runs on the caller's goroutine.
func (c *call) run(ctx context.Context, deliver deliverFunc) error {
	if len(c.choices) == 1 {
		return c.choices[0].run(ctx, deliver)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallelChoices)
	for _, choice := range c.choices {
		group.Go(func() error { return choice.run(ctx, deliver) })
	}
	return group.Wait()
}

// run ranges over the generation. A panic becomes an error here, because on a
// goroutine of its own nobody else could catch it, and a begun stream must end
// with an error event.
func (c *choice) run(ctx context.Context, deliver deliverFunc) (err error) {
	defer func() {
		if v := recover(); v != nil {
			c.call.server.logPanic(c.call.ids, v)
			err = &engine.Error{Kind: engine.Internal, Err: errors.New("panic")}
		}
	}()
	if e := engine.CauseOf(ctx); e != nil {
		return e // before its turn came
	}
	for delta, err := range c.call.server.generator.Generate(ctx, c.request) {
		if err != nil {
			return err
		}
		c.delta = delta
		c.observe()
		if err := deliver(c); err != nil {
			c.call.lost(err)
			return err
		}
		if delta.FinishReason != "" {
			return nil // finished means finished, whatever comes after
		}
	}
	return &engine.Error{Kind: engine.Internal, Err: errors.New("stream ended without finish reason and without error")}
}

func (c *choice) observe() {
	c.completionTokens = c.delta.CompletionTokens
	n := len(c.delta.TokenIDs)
	if n == 0 {
		return
	}
	now := time.Now()
	if c.lastToken.IsZero() {
		c.call.sawToken(now)
	} else {
		c.latencies.observe(now.Sub(c.lastToken), n)
	}
	c.lastToken = now
}

// sawToken is called at the first token of each choice.
func (c *call) sawToken(now time.Time) {
	c.firstToken.Do(func() {
		c.model.queued.Dec()
		c.model.firstToken.Observe(now.Sub(c.start).Seconds())
	})
}
