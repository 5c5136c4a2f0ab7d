package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// A row is what became of one contestant.
type row struct {
	contestant
	rounds   []ratios  // to the yardstick
	openings []opening // one after another, smallest first
	failed   error     // why it is not measured any more
}

// A column of the table of ratios. They are printed below each other, because
// there are more of them than contestants.
type column struct {
	title string
	of    func(ratios) float64
}

var columns = []column{
	{"CPU/token paced", func(r ratios) float64 { return r.pacedCPU }},
	{"CPU/token unpaced", func(r ratios) float64 { return r.unpacedCPU }},
	{"tokens/s and core", func(r ratios) float64 { return ratio(1, r.unpacedCPU) }},
	{"added to first token, p50", func(r ratios) float64 { return r.first }},
	{"added to first token, p99", func(r ratios) float64 { return r.first99 }},
	{"added to each token, p50", func(r ratios) float64 { return r.token }},
	{"added to each token, p99", func(r ratios) float64 { return r.token99 }},
	{"memory/stream paced", func(r ratios) float64 { return r.memory }},
	{"segments/token", func(r ratios) float64 { return r.segments }},
}

// perTable is how many contestants fit beside each other into a terminal.
const perTable = 4

// printTable prints the median of each ratio and, in parentheses, its range, and
// below them what is no ratio. What open streams cost is printed as multiples of
// what they cost at the first row's contestant.
func printTable(w io.Writer, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	yardstick := rows[0].openings
	for group := range slices.Chunk(rows, perTable) {
		t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		line := func(title string, cell func(r row) string) {
			fmt.Fprint(t, title)
			for _, r := range group {
				fmt.Fprint(t, "\t", cell(r))
			}
			fmt.Fprintln(t)
		}
		line("", func(r row) string { return r.name })
		for _, c := range columns {
			line(c.title, func(r row) string {
				return summary(r.values(c.of), "%.2f")
			})
		}
		for i, y := range yardstick {
			line(fmt.Sprintf("memory/stream, %d open", y.streams), func(r row) string {
				if i >= len(r.openings) {
					return nothing
				}
				return summary([]float64{ratio(r.openings[i].memoryPerStream, y.memoryPerStream)}, "%.2f")
			})
		}
		milliseconds := func(r ratios) float64 { return float64(r.start) / float64(time.Millisecond) }
		line("start-up, ms", func(r row) string { return summary(r.values(milliseconds), "%.0f") })
		line("size, MB", func(r row) string { return summary([]float64{float64(r.size) / 1e6}, "%.1f") })
		fmt.Fprintln(t)
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// values are what was measured of one ratio, without what could not be.
func (r row) values(of func(ratios) float64) (values []float64) {
	for _, round := range r.rounds {
		values = append(values, of(round))
	}
	return values
}

const nothing = "–"

// summary leaves out what is 0, which was not measured.
func summary(values []float64, format string) string {
	values = slices.DeleteFunc(values, func(v float64) bool { return v <= 0 })
	switch len(values) {
	case 0:
		return nothing
	case 1:
		return fmt.Sprintf(format, values[0])
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", median(values), slices.Min(values), slices.Max(values))
}

// printOpenings prints what open streams cost at the last row's contestant, as
// multiples of what they cost at the first one's, and in kilobytes.
func printOpenings(w io.Writer, rows []row) error {
	yardstick, it := rows[0], rows[len(rows)-1]
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "open streams\tmemory/stream\t%s\t%s\tCPU/token\n", yardstick.name, it.name)
	for i, y := range yardstick.openings {
		o := it.openings[i]
		fmt.Fprintf(t, "%d\t%.2f\t%.1f kB\t%.1f kB\t%.2f\n", o.streams, ratio(o.memoryPerStream, y.memoryPerStream),
			y.memoryPerStream/1000, o.memoryPerStream/1000, ratio(o.cpuPerToken, y.cpuPerToken))
	}
	return t.Flush()
}
