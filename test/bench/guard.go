package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// guardPlan is a short race; rounds is how often it is run at most.
var guardPlan = plan{requests: 80, streams: 200, flat: 8, hold: 2 * time.Second, rounds: 4}

// A bounds says, by the title of a column, what a ratio to the floor may be.
type bounds map[string]float64

// guardBounds are far enough above what is seen (docs/benchmarks.md) that noise
// does not reach them in each of several races, and near enough that a second
// write for each token does, or reading each event as general JSON.
var guardBounds = bounds{
	"CPU/token paced":           1.15,
	"CPU/token unpaced":         0.45,
	"added to first token, p50": 1.9,
	"added to each token, p50":  1.3,
	"memory/stream paced":       0.65,
	"segments/token":            1.1,
}

// guard races the contestant against the floor until each ratio has once been
// within its bound, and fails if one never was: a busy machine moves a ratio
// either way, and what is lost clearly is lost in every race.
func (c *course) guard(ctx context.Context, who contestant, most bounds, report io.Writer) error {
	var races []ratios
	for {
		r, err := c.race(ctx, c.floor("floor"), who, len(races)%2 == 1)
		if err != nil {
			return err
		}
		races = append(races, r)
		lost := most.lost(races)
		if len(lost) > 0 && len(races) < c.plan.rounds {
			continue
		}
		if err := printTable(report, []row{{contestant: who, rounds: races}}); err != nil {
			return err
		}
		if len(lost) > 0 {
			return fmt.Errorf("%s has become more expensive, in each of %d races: %s", who.name, len(races), strings.Join(lost, "; "))
		}
		return nil
	}
}

// lost says which ratios were above their bounds in each of the races.
func (most bounds) lost(races []ratios) (lost []string) {
	for _, column := range columns {
		bound, ok := most[column.title]
		if !ok {
			continue
		}
		best := math.Inf(1)
		for _, r := range races {
			if v := column.of(r); v > 0 { // else it could not be measured
				best = min(best, v)
			}
		}
		if math.IsInf(best, 1) {
			lost = append(lost, column.title+" could not be measured")
		} else if best > bound {
			lost = append(lost, fmt.Sprintf("%s is %.2f times the floor's at best, %.2f is the bound", column.title, best, bound))
		}
	}
	return lost
}
