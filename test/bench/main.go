package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the program in one of its roles.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 2 && args[0] == "worker" {
		return runWorker(args[1])
	}
	if len(args) == 3 && args[0] == "floor" {
		return runFloor(args[1], args[2])
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	p := plan{requests: 200, streams: 500, flat: 16, hold: 5 * time.Second}
	flags.IntVar(&p.rounds, "rounds", 4, "how often each race is run")
	flags.IntVar(&p.streams, "streams", p.streams, "paced streams to each contestant")
	flags.DurationVar(&p.hold, "hold", p.hold, "measured time of the paced and of the unpaced load")
	binary := flags.String("baton", "", "the program to race; empty = build it from this source")
	against := flags.String("against", "", "instead of racing the floor, race this other build of the program")
	open := flags.String("open", "", "instead of racing, hold so many streams open, a token a second to each; numbers separated by commas")
	quick := flags.Bool("quick", false, "a short race with few streams, whose figures mean little")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *quick {
		p = plan{requests: 20, streams: 20, flat: 4, hold: time.Second, rounds: 1}
	}
	c, err := newCourse(ctx, p, *binary)
	if err != nil {
		return err
	}
	defer c.close()
	if *open != "" {
		counts, err := parseCounts(*open)
		if err != nil {
			return err
		}
		openings, err := c.openAll(ctx, c.floor, c.baton(c.binary, "3"), counts)
		if err != nil {
			return err
		}
		return printOpenings(stdout, openings)
	}
	races := c.races()
	if *against != "" {
		races = []match{{"baton / the other", c.baton(*against, "3"), c.baton(c.binary, "3")}}
	}
	rows, err := c.raceAll(ctx, races, stderr)
	if err != nil {
		return err
	}
	return printTable(stdout, rows)
}

// A contestant starts a program that is raced.
type contestant func(ctx context.Context) (*process, error)

// newCourse builds what is raced, unless binary is it, and starts the worker.
func newCourse(ctx context.Context, p plan, binary string) (*course, error) {
	dir, err := os.MkdirTemp("", "baton-bench-")
	if err != nil {
		return nil, err
	}
	c := &course{plan: p, dir: dir, binary: binary}
	if err := c.prepare(ctx); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *course) prepare(ctx context.Context) (err error) {
	if c.binary == "" {
		if c.binary, err = build(ctx, c.dir); err != nil {
			return err
		}
	}
	if err := writeModel(c.dir); err != nil {
		return err
	}
	if c.self, err = os.Executable(); err != nil {
		return err
	}
	c.worker, err = start(ctx, "worker", c.self, "worker", "{address}")
	return err
}

func (c *course) close() {
	if c.worker != nil {
		c.worker.stop()
	}
	os.RemoveAll(c.dir)
}

// floor starts the yardstick.
func (c *course) floor(ctx context.Context) (*process, error) {
	return start(ctx, "floor", c.self, "floor", "{address}", "http://"+c.worker.address)
}

// baton makes the contestant of a program that may move a request so often.
func (c *course) baton(program, migrationLimit string) contestant {
	return func(ctx context.Context) (*process, error) {
		return start(ctx, "baton", program, "serve", "--http-host", "127.0.0.1", "--http-port", "{port}",
			"--worker", "vllm=http://"+c.worker.address, "--model-path", c.dir, "--migration-limit", migrationLimit)
	}
}

// A match is who races whom.
type match struct {
	name                  string
	yardstick, contestant contestant
}

// races are the floor against itself, which shows what a ratio of 1 looks like
// here, baton against the floor, and baton with migration against itself without.
func (c *course) races() []match {
	return []match{
		{"floor / floor", c.floor, c.floor},
		{"baton / floor", c.floor, c.baton(c.binary, "3")},
		{"baton --migration-limit 3 / 0", c.baton(c.binary, "0"), c.baton(c.binary, "3")},
	}
}

// raceAll runs each race in each round.
func (c *course) raceAll(ctx context.Context, races []match, progress io.Writer) ([]row, error) {
	rows := make([]row, len(races))
	for round := range c.plan.rounds {
		for i, race := range races {
			r, err := c.raceInTurn(ctx, round, race.yardstick, race.contestant)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", race.name, err)
			}
			rows[i].name, rows[i].rounds = race.name, append(rows[i].rounds, r)
			fmt.Fprintf(progress, "round %d of %d, %s: CPU paced %.2f, unpaced %.2f, first token %.2f, memory %.2f\n",
				round+1, c.plan.rounds, race.name, r.pacedCPU, r.unpacedCPU, r.first, r.memory)
		}
	}
	return rows, nil
}

func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "baton")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "baton/cmd/baton").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build baton: %w\n%s", err, out)
	}
	return binary, nil
}
