package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// compareLimit bounds all of a comparison, the installation included.
const compareLimit = 20 * time.Minute

// compareRounds is how many rounds there is time for.
const compareRounds = 3

// A comparison is what is asked for.
type comparison struct {
	peers string // names separated by commas; empty = all
	quick bool
}

// compare races baton and other gateways against the floor, each in turn, and
// prints one table. A peer that fails is said in one line and left out of what
// follows; what was measured until the time was over, or somebody interrupted, is
// printed in any case.
func (c *course) compare(ctx context.Context, what comparison, stdout, progress io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, compareLimit)
	defer cancel()
	var names []string
	if what.peers != "" {
		names = strings.Split(what.peers, ",")
	}
	peers, err := c.install(ctx, names, progress)
	if err != nil {
		return err
	}
	counts := []int{100, 1000, 10000}
	if what.quick {
		counts = counts[:1]
	}
	s := &standings{course: c, progress: progress}
	for _, who := range append([]contestant{c.floor("floor / floor"), c.baton("baton", c.binary, "3")}, peers...) {
		s.rows = append(s.rows, &row{contestant: who})
	}
	s.round(ctx, 1)
	for _, streams := range counts {
		s.openings(ctx, streams)
	}
	for round := 2; round <= min(c.plan.rounds, compareRounds); round++ {
		s.round(ctx, round)
	}
	return errors.Join(s.print(stdout), s.failure(ctx))
}

// Standings are what is known so far.
type standings struct {
	course   *course
	rows     []*row
	progress io.Writer
	longest  time.Duration // race
}

// round races each contestant once against the floor.
func (s *standings) round(ctx context.Context, round int) {
	for _, r := range s.rows {
		if r.failed != nil || !timeFor(ctx, 2*s.longest) {
			continue
		}
		begin := time.Now()
		result, err := s.course.race(ctx, s.course.floor("floor"), r.contestant, round%2 == 0)
		if !s.fine(ctx, r, err) {
			continue
		}
		s.longest = max(s.longest, time.Since(begin))
		r.rounds = append(r.rounds, result)
		fmt.Fprintf(s.progress, "round %d, %s: %s\n", round, r.name, result)
	}
}

// openings holds so many streams open at each contestant, or as many as files may
// be open.
func (s *standings) openings(ctx context.Context, streams int) {
	const reserve = 200 // files of a gateway that are no stream's
	if most := int(s.course.files)/2 - reserve; s.course.files > 0 && most < streams {
		fmt.Fprintf(s.progress, "%d open streams need more open files than are allowed here (ulimit -n): it is %d\n", streams, most)
		streams = most
	}
	least := 2*time.Duration(streams)*openRamp + 3*openHold
	for _, r := range s.rows {
		if r.failed != nil || r.mostOpen > 0 && streams > r.mostOpen || !timeFor(ctx, 2*least) {
			continue
		}
		o, err := s.course.open(ctx, r.contestant, streams)
		if err != nil && ctx.Err() == nil { // it may well race, though
			fmt.Fprintln(s.progress, oneLine(err))
			r.mostOpen = streams - 1
			continue
		}
		if s.fine(ctx, r, err) {
			r.openings = append(r.openings, o)
			fmt.Fprintf(s.progress, "%d open streams, %s: %.1f kB each\n", streams, r.name, o.memoryPerStream/1000)
		}
	}
}

// fine says whether err is nil, and notes it.
func (s *standings) fine(ctx context.Context, r *row, err error) bool {
	if err != nil && ctx.Err() == nil {
		r.failed = err
		fmt.Fprintf(s.progress, "%s: left out from here on: %s\n", r.name, oneLine(err))
	}
	return err == nil
}

// oneLine is what an error says, of which a crowd has made several lines.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// timeFor says whether something that takes d may begin.
func timeFor(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(deadline) > d)
}

// print prints the rows in which something was measured.
func (s *standings) print(w io.Writer) error {
	var rows []row
	for _, r := range s.rows {
		if len(r.rounds) > 0 || len(r.openings) > 0 {
			rows = append(rows, *r)
		}
	}
	fmt.Fprintln(w, "Multiples of the floor, which was raced at the same time; medians, and the range of the rounds.")
	return printTable(w, rows)
}

// failure is why the table is not whole; that a peer failed is no reason.
func (s *standings) failure(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return errors.New("interrupted")
	}
	for _, r := range s.rows[:2] {
		if r.failed != nil {
			return fmt.Errorf("%s: %w", r.name, r.failed)
		}
	}
	return nil
}
