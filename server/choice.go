package server

import (
	"context"
	"errors"
	"sync/atomic"
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
	deliver          deliverFunc
	index            int
	ended            bool          // nothing more is taken
	completionTokens atomic.Int64  // others may read it, see Server.Requests
	start            time.Time     // of the call
	lastToken        time.Duration // when the newest token came, after start
	delta            backend.Delta // the newest one; its slices end with the iteration
	events           eventEncoder  // of a stream; nil in a JSON reply
	encoder          encoder       // it is this, if the stream is one of chunks
	reading          *reading      // nil = the answer is text and nothing else
	latencies        latencyCounts

	call    *call
	request *backend.Request
	trace   engine.Trace
	failure error // why it ended without a finish reason
}

// noToken is the lastToken of a choice that has no token yet.
const noToken = -1

func newChoice(c *call, index int) *choice {
	choice := &choice{call: c, index: index, start: c.start, lastToken: noToken, request: c.prepared.Choices[index].Request}
	choice.reading = newReading(c.prepared, c.ids.own, index)
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
	c.deliver = deliver
	c.call.server.generator.Generate(ctx, c.request)(c.take) // cheaper than a range statement: see the router's attempt
	if !c.ended {
		return &engine.Error{Kind: engine.Internal, Err: errors.New("stream ended without finish reason and without error")}
	}
	return c.failure
}

// take takes the next delta. It returns false when the choice has ended.
func (c *choice) take(delta backend.Delta, err error) bool {
	if c.ended {
		return false // finished means finished, whatever comes after
	}
	if err == nil {
		c.delta = delta
		c.observe()
		if err = c.deliver(c); err != nil {
			c.call.lost(err)
		}
	}
	c.failure = err
	c.ended = err != nil || delta.FinishReason != ""
	return !c.ended
}

func (c *choice) observe() {
	c.completionTokens.Store(int64(c.delta.CompletionTokens))
	n := len(c.delta.TokenIDs)
	if n == 0 {
		return
	}
	now := time.Since(c.start)
	if c.lastToken == noToken {
		c.call.sawToken(now)
	} else {
		c.latencies.observe(now-c.lastToken, n)
	}
	c.lastToken = now
}

// sawToken is called at the first token of each choice, after the call's start.
func (c *call) sawToken(after time.Duration) {
	c.firstToken.Do(func() {
		c.toFirstToken = after
		c.model.queued.Dec()
		c.model.firstToken.Observe(after.Seconds())
	})
}
