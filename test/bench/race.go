package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// A plan is how much load a race makes.
type plan struct {
	requests int           // one at a time, to each contestant
	streams  int           // paced, to each contestant
	flat     int           // unpaced streams to each contestant
	hold     time.Duration // of a window
	rounds   int
}

const (
	soloTokens = 5
	soloGap    = 2 * time.Millisecond
	soloUnit   = 10 * time.Microsecond // so that a token may be under way for 100 ms
	pacedGap   = 50 * time.Millisecond

	rampPerStream = 2 * time.Millisecond
	flatTokens    = 1000
)

// part is a part of the load, for those that could not bear all of it.
func (p plan) part(share float64) plan {
	if share > 0 {
		p.streams = max(2, int(share*float64(p.streams)))
		p.flat = max(2, int(share*float64(p.flat)))
		p.requests = max(2, int(share*float64(p.requests)))
	}
	return p
}

// A course is where races are run: one worker for all.
type course struct {
	plan   plan
	dir    string // of the model, and of what is built
	binary string // baton
	self   string // this program, which is the worker and the floor too
	worker *process
	files  uint64 // that a process may have open
}

// wantedFiles is enough for a gateway with 10,000 open streams: each has two
// connections, and what shares a process's files among several is not fair.
const wantedFiles = 1 << 16

// A contestant is a program that is raced.
type contestant struct {
	command
	// text says that it asks the worker for text, not for token ids.
	text bool
	// share, if not 0, is the part of the load under which it is raced.
	share float64
	// mostOpen, if not 0, is how many open streams it is given at most.
	mostOpen int
	size     int64 // of its program or of all that is installed for it, in bytes; 0 = not told
}

// Ratios are what a contestant cost, as multiples of what the yardstick cost at
// the same time. A ratio that could not be measured is 0.
type ratios struct {
	pacedCPU   float64 // CPU time per token, streams at the pace of an engine
	unpacedCPU float64 // CPU time per token, streams as fast as they go
	first      float64 // what the time to the first token is longer than directly
	first99    float64 // the same, of the slowest hundredth
	token      float64 // what a token is under way longer than directly
	token99    float64 // the same, of the slowest hundredth
	memory     float64 // per open stream, paced
	segments   float64 // TCP segments that a client is sent, per paced token

	start time.Duration // of the contestant, from its start to its first answer; no ratio
}

// race starts both, runs all kinds of load once against both at the same time,
// and ends them. With swapped, the contestant is started and served first. It
// fails if an answer was not complete.
func (c *course) race(ctx context.Context, yardstick, other contestant, swapped bool) (ratios, error) {
	both := make([]*process, 2)
	order := []int{0, 1}
	if swapped {
		order = []int{1, 0}
	}
	for _, i := range order {
		p, err := start(ctx, []contestant{yardstick, other}[i].command)
		if err != nil {
			return ratios{}, err
		}
		defer p.stop()
		both[i] = p
	}
	before, err := c.tokenAnswers(ctx)
	if err != nil {
		return ratios{}, err
	}
	r := ratios{start: both[1].started}
	load := c.plan.part(other.share)
	for _, leg := range []func(context.Context, plan, []*process, *ratios) error{c.solo, c.paced, c.unpaced} {
		if err := leg(ctx, load, both, &r); err != nil {
			return ratios{}, err
		}
	}
	after, err := c.tokenAnswers(ctx)
	least := load.requests + load.streams
	if !other.text {
		least *= 2
	}
	if err == nil && after-before < least {
		err = fmt.Errorf("the worker gave %d answers by its token protocol, fewer than the %d asked for", after-before, least)
	}
	return r, err
}

func (c *course) solo(ctx context.Context, load plan, both []*process, r *ratios) error {
	if err := c.setPace(ctx, pace{Gap: soloGap, Stamp: soloUnit}); err != nil {
		return err
	}
	results, err := oneAtATime(ctx, append([]*process{c.worker}, both...), load.requests, soloTokens, soloUnit)
	if err != nil {
		return err
	}
	// The slowest are held against the direct median, too: the slowest direct ones
	// tell of the machine, and less them there may be nothing left.
	added := func(q float64, of func(solo) []time.Duration) float64 {
		direct := quantile(of(results[0]), .5)
		return ratio(float64(quantile(of(results[2]), q)-direct), float64(quantile(of(results[1]), q)-direct))
	}
	first := func(s solo) []time.Duration { return s.first }
	token := func(s solo) []time.Duration { return s.token }
	r.first, r.first99 = added(.5, first), added(.99, first)
	r.token, r.token99 = added(.5, token), added(.99, token)
	return nil
}

func (c *course) paced(ctx context.Context, load plan, both []*process, r *ratios) error {
	if err := c.setPace(ctx, pace{Gap: pacedGap}); err != nil {
		return err
	}
	ramp := time.Duration(load.streams) * rampPerStream
	costs, err := sideBySide(both, func(p *process, edge func()) (*crowd, error) {
		return paced(ctx, p, load.streams, pacedGap, ramp, load.hold, edge)
	})
	if err == nil {
		r.pacedCPU = ratio(costs[1].cpuPerToken, costs[0].cpuPerToken)
		r.memory = ratio(costs[1].memoryPerStream, costs[0].memoryPerStream)
		r.segments = ratio(costs[1].segmentsPerToken, costs[0].segmentsPerToken)
	}
	return err
}

func (c *course) unpaced(ctx context.Context, load plan, both []*process, r *ratios) error {
	if err := c.setPace(ctx, pace{}); err != nil {
		return err
	}
	costs, err := sideBySide(both, func(p *process, edge func()) (*crowd, error) {
		return unpaced(ctx, p, load.flat, flatTokens, load.hold, edge)
	})
	if err == nil {
		r.unpacedCPU = ratio(costs[1].cpuPerToken, costs[0].cpuPerToken)
	}
	return err
}

func (c *course) setPace(ctx context.Context, p pace) error { return c.worker.setPace(ctx, p) }

// setPace changes the pace of p, which is a worker.
func (p *process) setPace(ctx context.Context, pace pace) error {
	body, err := json.Marshal(pace)
	if err == nil {
		_, err = p.request(ctx, "POST", "/pace", string(body))
	}
	return err
}

// tokenAnswers is how many answers the worker has given by its token protocol.
func (c *course) tokenAnswers(ctx context.Context) (int, error) {
	text, err := c.worker.request(ctx, "GET", "/answers", "")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// A cost is what a contestant used in a window.
type cost struct {
	cpuPerToken      float64 // in nanoseconds
	segmentsPerToken float64
	memoryPerStream  float64 // in bytes, above what it used when idle
}

// sideBySide puts the same load on both at the same time.
func sideBySide(both []*process, load func(p *process, edge func()) (*crowd, error)) ([]cost, error) {
	costs, failures := make([]cost, len(both)), make([]error, len(both))
	var wg sync.WaitGroup
	for i, p := range both {
		wg.Go(func() { costs[i], failures[i] = measure(p, load) })
	}
	wg.Wait()
	for i, err := range failures {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", both[i].name, err)
		}
	}
	return costs, nil
}

func measure(p *process, load func(p *process, edge func()) (*crowd, error)) (cost, error) {
	idle, err := p.usage()
	if err != nil {
		return cost{}, err
	}
	var edges []usage
	result, err := load(p, func() {
		u, _ := p.usage()
		edges = append(edges, u)
	})
	if err != nil {
		return cost{}, err
	}
	tokens := float64(result.tokens.Load())
	if tokens == 0 {
		return cost{}, fmt.Errorf("no token came in the window")
	}
	begin, end := edges[0], edges[1]
	return cost{
		cpuPerToken:      float64(end.cpu-begin.cpu) / tokens,
		segmentsPerToken: ratio(float64(result.segments.Load()), float64(result.answered.Load())),
		memoryPerStream:  float64(end.memory-idle.memory) / float64(result.streams),
	}, nil
}

// ratio returns 0 where there is nothing to compare.
func ratio(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return a / b
}
