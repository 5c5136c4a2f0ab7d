package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// promptWords is the length of every prompt.
const promptWords = 128

// settle is how long a load runs before its window opens.
const settle = 500 * time.Millisecond

// A solo is what single requests took on an idle machine.
type solo struct {
	first []time.Duration // from sending a request to its first token
	token []time.Duration // from the worker's stamp to the client, of all but the first
}

// oneAtATime sends requests to all processes in turns of ever changing order, so
// that what happens on the machine, and who was asked before, is alike for all.
// The worker must stamp with unit.
func oneAtATime(ctx context.Context, processes []*process, requests, tokens int, unit time.Duration) ([]solo, error) {
	results := make([]solo, len(processes))
	clients := make([]*client, len(processes))
	for i, p := range processes {
		clients[i] = p.client()
		defer clients[i].close()
	}
	order := rand.New(rand.NewPCG(1, 2))
	for range requests {
		for _, i := range order.Perm(len(clients)) {
			c := clients[i]
			r, first, sent := &results[i], true, time.Now()
			c.onToken = func(number int, now time.Time) {
				if first {
					r.first = append(r.first, now.Sub(sent))
					first = false
					return
				}
				r.token = append(r.token, age(number, now, unit))
			}
			if err := c.ask(tokens); err != nil {
				return nil, fmt.Errorf("%s: %w", processes[i].name, err)
			}
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return results, nil
}

// A crowd is many streams at once, and what they did while the window was open.
type crowd struct {
	streams int
	tokens  atomic.Int64 // in the window
	// segments are those with data that the clients were sent, of all answered tokens.
	segments, answered atomic.Int64
	window             atomic.Bool // is open

	mu       sync.Mutex // guards failures
	failures []error
}

// client makes a client whose tokens are counted. Its answers have to be in
// order: the worker must not stamp.
func (c *crowd) client(p *process) *client {
	one := p.client()
	one.inOrder = true
	one.onToken = func(int, time.Time) {
		if c.window.Load() {
			c.tokens.Add(1)
		}
	}
	return one
}

func (c *crowd) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = append(c.failures, err)
}

// hold opens the window after the time before, for the time hold. edge is called
// at its begin and end.
func (c *crowd) hold(ctx context.Context, before, hold time.Duration, edge func()) {
	pause(ctx, before)
	edge()
	c.window.Store(true)
	pause(ctx, hold)
	c.window.Store(false)
	edge()
}

// err makes one error of many, most of which would say the same.
func (c *crowd) err(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if n := len(c.failures); n > 0 {
		return fmt.Errorf("%d streams of %d failed: %w", n, c.streams, errors.Join(c.failures[:min(n, 3)]...))
	}
	return nil
}

// paced opens streams evenly over ramp, each with a token every gap, and holds
// them open for hold.
func paced(ctx context.Context, p *process, streams int, gap, ramp, hold time.Duration, edge func()) (*crowd, error) {
	tokens := int((ramp + 2*settle + hold) / gap)
	all := &crowd{streams: streams}
	var wg sync.WaitGroup
	start := time.Now()
	for i := range streams {
		wg.Go(func() {
			pause(ctx, time.Until(start.Add(ramp*time.Duration(i)/time.Duration(streams))))
			c := all.client(p)
			defer c.close()
			if err := c.ask(tokens); err != nil {
				all.failed(err)
				return
			}
			all.segments.Add(segmentsOf(c.conn))
			all.answered.Add(int64(tokens))
		})
	}
	all.hold(ctx, ramp+settle, hold, edge)
	wg.Wait()
	return all, all.err(ctx)
}

// unpaced keeps streams busy with answers of so many tokens, each as fast as it
// goes, for hold.
func unpaced(ctx context.Context, p *process, streams, tokens int, hold time.Duration, edge func()) (*crowd, error) {
	all := &crowd{streams: streams}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			c := all.client(p)
			defer c.close()
			for !stop.Load() {
				if err := c.ask(tokens); err != nil {
					all.failed(err)
					return
				}
			}
		})
	}
	all.hold(ctx, settle, hold, edge)
	stop.Store(true)
	wg.Wait()
	return all, all.err(ctx)
}

// pause sleeps until d is over or ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// quantile sorts of and returns what q of it is not above; 0 if it is empty.
func quantile(of []time.Duration, q float64) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[min(int(q*float64(len(of))), len(of)-1)]
}

// median sorts of and returns its middle; 0 if it is empty.
func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}
