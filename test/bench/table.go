package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// A row is all rounds of one race.
type row struct {
	name   string
	rounds []ratios
}

var columns = []struct {
	title string
	of    func(ratios) float64
}{
	{"CPU/token paced", func(r ratios) float64 { return r.pacedCPU }},
	{"CPU/token unpaced", func(r ratios) float64 { return r.unpacedCPU }},
	{"added to first token", func(r ratios) float64 { return r.first }},
	{"added to each token", func(r ratios) float64 { return r.token }},
	{"memory/stream", func(r ratios) float64 { return r.memory }},
}

// printTable prints the median of each ratio and, in parentheses, its range.
func printTable(w io.Writer, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprint(t, "race")
	for _, c := range columns {
		fmt.Fprint(t, "\t", c.title)
	}
	fmt.Fprintln(t)
	for _, r := range rows {
		fmt.Fprint(t, r.name)
		for _, c := range columns {
			fmt.Fprint(t, "\t", summary(r.rounds, c.of))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func summary(rounds []ratios, of func(ratios) float64) string {
	var values []float64
	for _, r := range rounds {
		if v := of(r); v > 0 {
			values = append(values, v)
		}
	}
	switch len(values) {
	case 0:
		return "–"
	case 1:
		return fmt.Sprintf("%.2f", values[0])
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median(values), slices.Min(values), slices.Max(values))
}
