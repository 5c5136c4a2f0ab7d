package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	openGap  = time.Second // of streams that are only to be open
	openRamp = time.Millisecond
	openHold = 6 * time.Second

	maxShownBytes = 4 << 10 // of what a contestant said that failed
)

// An opening is what open streams cost, one contestant at a time: memory is moved
// little by what else the machine does.
type opening struct {
	streams       int
	yardstick, it cost
}

// openAll holds so many streams open at each contestant, a token a second to
// each, the contestants after one another and each time freshly started.
func (c *course) openAll(ctx context.Context, yardstick, other contestant, counts []int) ([]opening, error) {
	if err := c.setPace(ctx, pace{Gap: openGap}); err != nil {
		return nil, err
	}
	var openings []opening
	for _, streams := range counts {
		o := opening{streams: streams}
		for begin, cost := range map[*contestant]*cost{&yardstick: &o.yardstick, &other: &o.it} {
			p, err := (*begin)(ctx)
			if err != nil {
				return nil, err
			}
			*cost, err = measure(p, func(p *process, edge func()) (crowd, error) {
				return paced(p.address, streams, openGap, time.Duration(streams)*openRamp, openHold, edge)
			})
			p.stop()
			if err != nil {
				said := p.output.Bytes()
				return nil, fmt.Errorf("%s, %d streams open: %w; it said:\n%s", p.name, streams, err, said[:min(len(said), maxShownBytes)])
			}
		}
		openings = append(openings, o)
	}
	return openings, nil
}

// printOpenings prints what each open stream costs, as ratios and in kilobytes.
func printOpenings(w io.Writer, openings []opening) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "open streams\tmemory/stream\tfloor\tbaton\tCPU/token")
	for _, o := range openings {
		fmt.Fprintf(t, "%d\t%.2f\t%.1f kB\t%.1f kB\t%.2f\n", o.streams, ratio(o.it.memoryPerStream, o.yardstick.memoryPerStream),
			o.yardstick.memoryPerStream/1000, o.it.memoryPerStream/1000, ratio(o.it.cpuPerToken, o.yardstick.cpuPerToken))
	}
	return t.Flush()
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
