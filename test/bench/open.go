package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	openGap  = time.Second // of streams that are only to be open
	openRamp = time.Millisecond
	openHold = 3 * time.Second
)

// An opening is what each of so many open streams costs. Contestants are asked
// one after another: what else the machine does moves memory little.
type opening struct {
	streams int
	cost
}

// open holds so many streams open at a freshly started contestant, a token a
// second to each.
func (c *course) open(ctx context.Context, who contestant, streams int) (opening, error) {
	if err := c.setPace(ctx, pace{Gap: openGap}); err != nil {
		return opening{}, err
	}
	p, err := start(ctx, who.command)
	if err != nil {
		return opening{}, err
	}
	result, err := measure(p, func(p *process, edge func()) (*crowd, error) {
		return paced(ctx, p, streams, openGap, time.Duration(streams)*openRamp, openHold, edge)
	})
	p.stop()
	if err != nil {
		return opening{}, fmt.Errorf("%s, %d streams open: %w; it said: %s", p.name, streams, err, p.said())
	}
	return opening{streams: streams, cost: result}, nil
}

// openAll opens streams at each of the contestants, in each of the numbers.
func (c *course) openAll(ctx context.Context, contestants []contestant, counts []int) ([]row, error) {
	rows := make([]row, len(contestants))
	for i, who := range contestants {
		rows[i].contestant = who
		for _, streams := range counts {
			o, err := c.open(ctx, who, streams)
			if err != nil {
				return nil, err
			}
			rows[i].openings = append(rows[i].openings, o)
		}
	}
	return rows, nil
}

// parseCounts reads numbers that commas separate.
func parseCounts(text string) ([]int, error) {
	var counts []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no number of streams", part)
		}
		counts = append(counts, n)
	}
	return counts, nil
}
