package main

import (
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
	token []time.Duration // from the worker's stamp to the client
}

// oneAtATime sends requests to all addresses in turns of ever changing order, so
// that what happens on the machine, and who was asked before, is alike for all.
// The worker must stamp with unit.
func oneAtATime(addresses []string, requests, tokens int, unit time.Duration) ([]solo, error) {
	results := make([]solo, len(addresses))
	clients := make([]*client, len(addresses))
	for i, address := range addresses {
		clients[i] = &client{address: address, prompt: prompt(promptWords)}
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
				}
				first = false
				r.token = append(r.token, age(number, now, unit))
			}
			if err := c.ask(tokens); err != nil {
				return nil, fmt.Errorf("%s: %w", c.address, err)
			}
		}
	}
	return results, nil
}

// A crowd is what many streams at once did within a window.
type crowd struct {
	streams int
	tokens  int64
}

// paced opens streams evenly over ramp, each with a token every gap, and holds
// them open for hold. edge is called at the window's begin and end. The worker
// must not stamp: the order is checked.
func paced(address string, streams int, gap, ramp, hold time.Duration, edge func()) (crowd, error) {
	tokens := int((ramp + 2*settle + hold) / gap)
	var open atomic.Bool // the window is
	var count atomic.Int64
	var mu sync.Mutex // guards failures
	var failures []error
	var wg sync.WaitGroup
	start := time.Now()
	for i := range streams {
		wg.Go(func() {
			time.Sleep(time.Until(start.Add(ramp * time.Duration(i) / time.Duration(streams))))
			c := &client{address: address, prompt: prompt(promptWords), inOrder: true}
			defer c.close()
			c.onToken = func(int, time.Time) {
				if open.Load() {
					count.Add(1)
				}
			}
			if err := c.ask(tokens); err != nil {
				mu.Lock()
				failures = append(failures, err)
				mu.Unlock()
			}
		})
	}
	time.Sleep(ramp + settle)
	edge()
	open.Store(true)
	time.Sleep(hold)
	open.Store(false)
	edge()
	wg.Wait()
	return crowd{streams: streams, tokens: count.Load()}, joinFailures(address, failures)
}

// unpaced keeps streams busy with answers of so many tokens, each as fast as it
// goes, for hold. The worker must not stamp: the order is checked.
func unpaced(address string, streams, tokens int, hold time.Duration, edge func()) (crowd, error) {
	var open, stop atomic.Bool
	var count atomic.Int64
	var mu sync.Mutex // guards failures
	var failures []error
	var wg sync.WaitGroup
	for range streams {
		wg.Go(func() {
			c := &client{address: address, prompt: prompt(promptWords), inOrder: true}
			defer c.close()
			c.onToken = func(int, time.Time) {
				if open.Load() {
					count.Add(1)
				}
			}
			for !stop.Load() {
				if err := c.ask(tokens); err != nil {
					mu.Lock()
					failures = append(failures, err)
					mu.Unlock()
					return
				}
			}
		})
	}
	time.Sleep(settle)
	edge()
	open.Store(true)
	time.Sleep(hold)
	open.Store(false)
	edge()
	stop.Store(true)
	wg.Wait()
	return crowd{streams: streams, tokens: count.Load()}, joinFailures(address, failures)
}

// joinFailures makes one error of many, most of which would say the same.
func joinFailures(address string, failures []error) error {
	if n := len(failures); n > 0 {
		return fmt.Errorf("%s: %d streams failed: %w", address, n, errors.Join(failures[:min(n, 3)]...))
	}
	return nil
}

// median sorts of and returns its middle; 0 if it is empty.
func median[T time.Duration | float64](of []T) T {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}
