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
	soloTokens = 8
	soloGap    = 2 * time.Millisecond
	soloUnit   = 10 * time.Microsecond // so that a token may be under way for 100 ms
	pacedGap   = 50 * time.Millisecond

	rampPerStream = 2 * time.Millisecond
	flatTokens    = 1000
)

// Ratios are what a contestant cost, as multiples of what the yardstick cost at
// the same time. A ratio that could not be measured is 0.
type ratios struct {
	pacedCPU   float64 // CPU time per token, streams at the pace of an engine
	unpacedCPU float64 // CPU time per token, streams as fast as they go
	first      float64 // what the time to the first token is longer than directly
	token      float64 // what a token is under way longer than directly
	memory     float64 // per open stream
}

// inverted are the ratios of the yardstick to the contestant.
func (r ratios) inverted() ratios {
	return ratios{
		pacedCPU:   ratio(1, r.pacedCPU),
		unpacedCPU: ratio(1, r.unpacedCPU),
		first:      ratio(1, r.first),
		token:      ratio(1, r.token),
		memory:     ratio(1, r.memory),
	}
}

// A course is where races are run: one worker for all.
type course struct {
	plan   plan
	dir    string // of the model, and of what is built
	binary string // baton
	self   string // this program, which is the worker and the floor too
	worker *process
}

// raceInTurn races both, in every other round with their places exchanged, so
// that who is started and served first is no advantage.
func (c *course) raceInTurn(ctx context.Context, round int, yardstick, other contestant) (ratios, error) {
	if round%2 == 0 {
		return c.race(ctx, yardstick, other)
	}
	r, err := c.race(ctx, other, yardstick)
	return r.inverted(), err
}

// race starts both, runs all kinds of load once against both at the same time,
// and ends them. It fails if an answer was not complete.
func (c *course) race(ctx context.Context, yardstick, other contestant) (ratios, error) {
	var both []*process
	for _, begin := range []contestant{yardstick, other} {
		p, err := begin(ctx)
		if err != nil {
			return ratios{}, err
		}
		defer p.stop()
		both = append(both, p)
	}
	before, err := c.tokenAnswers(ctx)
	if err != nil {
		return ratios{}, err
	}
	var r ratios
	for _, leg := range []func(context.Context, []*process, *ratios) error{c.solo, c.paced, c.unpaced} {
		if err := leg(ctx, both, &r); err != nil {
			return ratios{}, err
		}
		if err := ctx.Err(); err != nil {
			return ratios{}, err
		}
	}
	after, err := c.tokenAnswers(ctx)
	if least := len(both) * (c.plan.requests + c.plan.streams); err == nil && after-before < least {
		err = fmt.Errorf("the worker gave %d answers by its token protocol, fewer than the %d asked for", after-before, least)
	}
	return r, err
}

func (c *course) solo(ctx context.Context, both []*process, r *ratios) error {
	if err := c.setPace(ctx, pace{Gap: soloGap, Stamp: soloUnit}); err != nil {
		return err
	}
	results, err := oneAtATime([]string{c.worker.address, both[0].address, both[1].address}, c.plan.requests, soloTokens, soloUnit)
	if err != nil {
		return err
	}
	added := func(of func(solo) []time.Duration) float64 {
		direct := median(of(results[0]))
		return ratio(float64(median(of(results[2]))-direct), float64(median(of(results[1]))-direct))
	}
	r.first = added(func(s solo) []time.Duration { return s.first })
	r.token = added(func(s solo) []time.Duration { return s.token })
	return nil
}

func (c *course) paced(ctx context.Context, both []*process, r *ratios) error {
	if err := c.setPace(ctx, pace{Gap: pacedGap}); err != nil {
		return err
	}
	ramp := time.Duration(c.plan.streams) * rampPerStream
	costs, err := sideBySide(both, func(p *process, edge func()) (crowd, error) {
		return paced(p.address, c.plan.streams, pacedGap, ramp, c.plan.hold, edge)
	})
	if err == nil {
		r.pacedCPU = ratio(costs[1].cpuPerToken, costs[0].cpuPerToken)
		r.memory = ratio(costs[1].memoryPerStream, costs[0].memoryPerStream)
	}
	return err
}

func (c *course) unpaced(ctx context.Context, both []*process, r *ratios) error {
	if err := c.setPace(ctx, pace{}); err != nil {
		return err
	}
	costs, err := sideBySide(both, func(p *process, edge func()) (crowd, error) {
		return unpaced(p.address, c.plan.flat, flatTokens, c.plan.hold, edge)
	})
	if err == nil {
		r.unpacedCPU = ratio(costs[1].cpuPerToken, costs[0].cpuPerToken)
	}
	return err
}

func (c *course) setPace(ctx context.Context, p pace) error {
	body, err := json.Marshal(p)
	if err == nil {
		_, err = c.worker.request(ctx, "POST", "/pace", string(body))
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
	cpuPerToken     float64 // in nanoseconds
	memoryPerStream float64 // in bytes, above what it used when idle
}

// sideBySide puts the same load on both at the same time.
func sideBySide(both []*process, load func(p *process, edge func()) (crowd, error)) ([]cost, error) {
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

func measure(p *process, load func(p *process, edge func()) (crowd, error)) (cost, error) {
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
	if result.tokens == 0 {
		return cost{}, fmt.Errorf("no token came in the window")
	}
	begin, end := edges[0], edges[1]
	return cost{
		cpuPerToken:     float64(end.cpu-begin.cpu) / float64(result.tokens),
		memoryPerStream: float64(end.memory-idle.memory) / float64(result.streams),
	}, nil
}

// ratio returns 0 where there is nothing to compare.
func ratio(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return a / b
}
