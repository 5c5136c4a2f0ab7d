package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A lossPlan is how streams lose their worker.
type lossPlan struct {
	gap    time.Duration // between two tokens of a stream
	ramp   time.Duration // between the starts of two streams
	window time.Duration // before the loss, and after it
	stall  time.Duration // the stall bound
}

var fullLoss = lossPlan{gap: openGap, ramp: openRamp, window: 6 * time.Second, stall: 4 * time.Second}

const (
	// directShare is the part of the streams that are added as a yardstick: they come
	// from the surviving worker directly.
	directShare = 0.05
	// spareFiles are those of a process that are no connections of streams.
	spareFiles = 300
)

// A loss is a way in which half of the streams lose their worker at once.
type loss struct {
	name    string
	frozen  bool   // the worker stands still, and is not killed
	spacing string // of moves, as the flag has it; "" = the default
}

var losses = []loss{
	{name: "killed"},
	{name: "killed, no spacing", spacing: "0"},
	{name: "frozen", frozen: true},
	{name: "frozen, no spacing", frozen: true, spacing: "0"},
}

// after is how long after the loss the first stream can move.
func (p lossPlan) after(l loss) time.Duration {
	if l.frozen {
		return p.stall - p.gap
	}
	return 0
}

// A lossRun is what a loss did.
type lossRun struct {
	loss
	plan            lossPlan
	streams, direct []*follower
	loads           [2]load // before the loss, and after it
}

// A load is a window and the CPU time that the frontend took in it.
type load struct {
	span
	cpu time.Duration
}

// A follower is one stream and what came of it.
type follower struct {
	tokens   []time.Duration // when each came, after the begin of the run
	attempts []followed      // as the frontend tells of them
	err      error
}

// A followed attempt of a stream.
type followed struct {
	Worker string `json:"worker"`
	Tokens int    `json:"tokens"`
	Error  string `json:"error"`
}

// follow asks c for so many tokens and notes when they come.
func (f *follower) follow(c *client, tokens int, begin time.Time) {
	f.tokens = make([]time.Duration, 0, tokens)
	c.inOrder = true
	c.onToken = func(_ int, now time.Time) { f.tokens = append(f.tokens, now.Sub(begin)) }
	c.onComment = func(comment []byte) {
		var said struct{ Trace []followed }
		if json.Unmarshal(comment, &said) == nil {
			f.attempts = said.Trace
		}
	}
	f.err = c.ask(tokens)
	c.close()
}

// loseAll has streams lose half of their workers, in each way.
func (c *course) loseAll(ctx context.Context, plan lossPlan, streams int, progress io.Writer) (runs []*lossRun, err error) {
	if most := int(c.files-spareFiles) / 2; streams > most {
		fmt.Fprintf(progress, "%d streams, as many as %d open files allow\n", most, c.files)
		streams = most
	}
	for _, l := range losses {
		r, err := c.lose(ctx, plan, l, streams)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		fmt.Fprintf(progress, "%d streams, %s: %d failed\n", streams, l.name, r.failed())
		r.complain(progress)
		runs = append(runs, r)
	}
	return runs, nil
}

// lose opens streams over two workers, and streams that come from the worker that
// will survive, and takes the other one away.
func (c *course) lose(ctx context.Context, plan lossPlan, l loss, streams int) (*lossRun, error) {
	doomed, err := start(ctx, command{name: "worker", args: []string{c.self, "worker", "{address}"}})
	if err != nil {
		return nil, err
	}
	defer doomed.stop()
	for _, w := range []*process{c.worker, doomed} {
		if err := w.setPace(ctx, pace{Gap: plan.gap}); err != nil {
			return nil, err
		}
	}
	front, err := start(ctx, c.overTwo(plan, l, doomed))
	if err != nil {
		return nil, err
	}
	defer front.stop()
	if err := front.waitWorkers(ctx, 2); err != nil {
		return nil, err
	}
	ramp := max(time.Duration(streams)*plan.ramp, plan.gap) // their tokens come evenly over a gap
	r := &lossRun{loss: l, plan: plan}
	r.loads[0].span = span{ramp + 2*plan.gap, ramp + 2*plan.gap + plan.window}
	r.loads[1].span = span{r.loads[0].to + plan.after(l), r.loads[0].to + plan.after(l) + plan.window}

	begin := time.Now()
	var all sync.WaitGroup
	follow := func(p *process, n int) []*follower {
		followers := make([]*follower, n)
		for i := range followers {
			followers[i] = &follower{}
			at := ramp * time.Duration(i) / time.Duration(n)
			all.Go(func() {
				pause(ctx, time.Until(begin.Add(at)))
				followers[i].follow(p.client(), int((r.loads[1].to-at)/plan.gap)+1, begin)
			})
		}
		return followers
	}
	r.streams, r.direct = follow(front, streams), follow(c.worker, max(10, int(directShare*float64(streams))))
	for i := range r.loads {
		before := front.cpuAt(ctx, begin.Add(r.loads[i].from))
		if i == 1 && !l.frozen {
			doomed.stop()
		}
		r.loads[i].cpu = front.cpuAt(ctx, begin.Add(r.loads[i].to)) - before
		if i == 0 && l.frozen {
			err = doomed.freeze()
		}
	}
	all.Wait()
	return r, errors.Join(err, ctx.Err())
}

// overTwo is the command of the frontend with one worker more.
func (c *course) overTwo(plan lossPlan, l loss, more *process) command {
	cmd := c.baton("baton", c.binary, "3").command
	cmd.args = append(cmd.args, "--worker", "vllm=http://"+more.address, "--stall-timeout", plan.stall.String())
	if l.spacing != "" {
		cmd.args = append(cmd.args, "--migration-spacing", l.spacing)
	}
	cmd.header = "X-Baton-Debug: 1\r\n"
	return cmd
}

// waitWorkers waits until so many workers of the model may be asked.
func (p *process) waitWorkers(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		text, err := p.request(ctx, "GET", "/health", "")
		if err == nil && strings.Contains(text, fmt.Sprintf(`"ready_workers":%d`, n)) {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w; /health said %s (%v)", ctx.Err(), text, err)
		}
		pause(ctx, 10*time.Millisecond)
	}
}

// cpuAt waits and returns the CPU time that the process has used then.
func (p *process) cpuAt(ctx context.Context, at time.Time) time.Duration {
	pause(ctx, time.Until(at))
	u, _ := p.usage() // 0 in the table is what could not be read
	return u.cpu
}

// failed is the number of answers that were not complete.
func (r *lossRun) failed() (n int) {
	for _, f := range r.streams {
		if f.err != nil {
			n++
		}
	}
	return n
}

// wrong is how many of these had a token too few or too many, or a wrong one.
func (r *lossRun) wrong() (n int) {
	for _, f := range r.streams {
		if errors.Is(f.err, errTokens) {
			n++
		}
	}
	return n
}

// complain says of each sort of failure how many answers failed that way.
func (r *lossRun) complain(w io.Writer) {
	counts := make(map[string]int)
	for _, f := range slices.Concat(r.streams, r.direct) {
		if f.err != nil {
			counts[sortOf(f.err)]++
		}
	}
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(w, "  %d: %s\n", counts[text], text)
	}
}

// sortOf is an error without its numbers, such as those of ports.
func sortOf(err error) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return '#'
		}
		return r
	}, err.Error())
}
