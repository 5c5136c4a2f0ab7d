package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"
)

// A span is a time of a run, after its begin.
type span struct{ from, to time.Duration }

func (s span) has(t time.Duration) bool { return s.from <= t && t < s.to }

// longestGap is the longest time between two tokens of which the later one came in
// the span; 0 if there is none.
func (f *follower) longestGap(s span) (longest time.Duration) {
	for i := 1; i < len(f.tokens); i++ {
		if s.has(f.tokens[i]) {
			longest = max(longest, f.tokens[i]-f.tokens[i-1])
		}
	}
	return longest
}

// lateness is by how much its tokens in the span came later than at its earliest
// pace, in the mean. It reports false if none came.
func (f *follower) lateness(s span, gap time.Duration) (time.Duration, bool) {
	earliest, late, n := time.Duration(math.MaxInt64), time.Duration(0), 0
	for i, at := range f.tokens {
		at -= time.Duration(i) * gap
		earliest = min(earliest, at)
		if s.has(f.tokens[i]) {
			late, n = late+at, n+1
		}
	}
	if n == 0 {
		return 0, false
	}
	return late/time.Duration(n) - earliest, true
}

// moved reports whether the stream lost its worker.
func (f *follower) moved() bool { return len(f.attempts) > 1 }

// split tells the streams that were carried through which lost their worker from
// those that stayed where they were.
func (r *lossRun) split() (moved, stayed []*follower) {
	for _, f := range r.streams {
		switch {
		case f.err != nil:
		case f.moved():
			moved = append(moved, f)
		default:
			stayed = append(stayed, f)
		}
	}
	return moved, stayed
}

// pauses are how long those that moved waited for the first token of the next worker
// from the loss on, or, if the worker stood still, from the stall bound on.
func (r *lossRun) pauses() (pauses []time.Duration) {
	moved, _ := r.split()
	for _, f := range moved {
		next := f.attempts[0].Tokens
		switch {
		case next == 0 || next >= len(f.tokens): // it had no token before
		case r.frozen:
			pauses = append(pauses, f.tokens[next]-f.tokens[next-1]-r.plan.stall)
		default:
			pauses = append(pauses, f.tokens[next]-r.loads[0].to)
		}
	}
	return pauses
}

func longestGaps(of []*follower, s span) (gaps []time.Duration) {
	for _, f := range of {
		gaps = append(gaps, f.longestGap(s))
	}
	return gaps
}

func latenesses(of []*follower, s span, gap time.Duration) (all []time.Duration) {
	for _, f := range of {
		if late, ok := f.lateness(s, gap); ok {
			all = append(all, late)
		}
	}
	return all
}

// moves is how often streams were moved, and how often the worker that lives was
// blamed for it.
func (r *lossRun) moves(survivor string) (moves, blamed int) {
	for _, f := range r.streams {
		moves += max(0, len(f.attempts)-1)
		for _, a := range f.attempts {
			if a.Error != "" && a.Worker == survivor {
				blamed++
			}
		}
	}
	return moves, blamed
}

// loseAndPrint loses half of each number of streams in each way, and fails if an
// answer did.
func (c *course) loseAndPrint(ctx context.Context, counts []int, stdout, progress io.Writer) error {
	failed := 0
	for _, streams := range counts {
		runs, err := c.loseAll(ctx, fullLoss, streams, progress)
		if err != nil {
			return err
		}
		if err := printLosses(stdout, runs, c.worker.address); err != nil {
			return err
		}
		for _, r := range runs {
			failed += r.failed()
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d answers failed", failed)
	}
	return nil
}

// printLosses prints what losses of a number of streams did, one beside the other.
func printLosses(w io.Writer, runs []*lossRun, survivor string) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	line := func(title string, cell func(r *lossRun) string) {
		fmt.Fprint(t, title)
		for _, r := range runs {
			fmt.Fprint(t, "\t", cell(r))
		}
		fmt.Fprintln(t)
	}
	number := func(title string, of func(r *lossRun) int) {
		line(title, func(r *lossRun) string { return fmt.Sprint(of(r)) })
	}
	line("", func(r *lossRun) string { return r.name })
	number("streams", func(r *lossRun) int { return len(r.streams) })
	number("that moved", func(r *lossRun) int { moved, _ := r.split(); return len(moved) })
	number("moves", func(r *lossRun) int { moves, _ := r.moves(survivor); return moves })
	number("of these, from the worker that lives", func(r *lossRun) int { _, blamed := r.moves(survivor); return blamed })
	number("failed answers", (*lossRun).failed)
	number("of these, with tokens lost, doubled or wrong", (*lossRun).wrong)
	line("pause of who moved, ms: p50, p99, max", func(r *lossRun) string { return threeOf(r.pauses()) })
	for i, when := range []string{"before", "after"} {
		line("longest gap of who stayed, "+when, func(r *lossRun) string {
			_, stayed := r.split()
			return threeOf(longestGaps(stayed, r.loads[i].span))
		})
		line("the same, directly", func(r *lossRun) string { return threeOf(longestGaps(r.direct, r.loads[i].span)) })
	}
	for i, when := range []string{"before", "after"} {
		line("mean lateness of who stayed, "+when, func(r *lossRun) string {
			_, stayed := r.split()
			return threeOf(latenesses(stayed, r.loads[i].span, r.plan.gap))
		})
		line("the same, directly", func(r *lossRun) string { return threeOf(latenesses(r.direct, r.loads[i].span, r.plan.gap)) })
	}
	line("CPU time per token, after / before", func(r *lossRun) string {
		return fmt.Sprintf("%.2f", ratio(r.cpuPerToken(1), r.cpuPerToken(0)))
	})
	line("load of a core, before, after", func(r *lossRun) string {
		return fmt.Sprintf("%.2f, %.2f", r.loads[0].share(), r.loads[1].share())
	})
	fmt.Fprintln(t)
	return t.Flush()
}

// threeOf prints quantiles in milliseconds.
func threeOf(of []time.Duration) string {
	ms := func(q float64) float64 { return float64(quantile(of, q)) / float64(time.Millisecond) }
	return fmt.Sprintf("%.0f, %.0f, %.0f", ms(.5), ms(.99), ms(1))
}

// share is what the frontend had of one core.
func (l load) share() float64 { return float64(l.cpu) / float64(l.to-l.from) }

// cpuPerToken is the CPU time of the frontend in one of the windows, per token in it.
func (r *lossRun) cpuPerToken(i int) float64 {
	n := 0
	for _, f := range r.streams {
		for _, at := range f.tokens {
			if r.loads[i].has(at) {
				n++
			}
		}
	}
	return ratio(float64(r.loads[i].cpu), float64(n))
}
