package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
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
		return runWorker(ctx, args[1])
	}
	if len(args) >= 3 && args[0] == "floor" {
		return runFloor(ctx, args[1], args[2], args[3:])
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	p := plan{requests: 320, streams: 500, flat: 16, hold: 5 * time.Second, rounds: 4}
	flags.IntVar(&p.rounds, "rounds", p.rounds, "how often each race is run")
	flags.IntVar(&p.streams, "streams", p.streams, "paced streams to each contestant")
	flags.DurationVar(&p.hold, "hold", p.hold, "measured time of the paced and of the unpaced load")
	binary := flags.String("baton", "", "the program to race; empty = build it from this source")
	against := flags.String("against", "", "instead of racing the floor, race this other build of the program")
	open := flags.String("open", "", "instead of racing, hold so many streams open, a token a second to each; numbers separated by commas")
	lose := flags.String("lose", "", "instead of racing, open so many streams over two workers and take one of these away; numbers separated by commas")
	quick := flags.Bool("quick", false, "a short race with few streams, whose figures mean little")
	compare := flags.Bool("compare", false, "race other gateways, too, in 20 minutes at most; installs them into a cache folder")
	peers := flags.String("peers", "", "with -compare: which, names separated by commas; empty = all")
	guard := flags.Bool("guard", false, "race shortly and fail if baton has clearly become more expensive")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case *quick:
		p = plan{requests: 30, streams: 20, flat: 4, hold: time.Second, rounds: 1}
	case *guard:
		p = guardPlan
	}
	c, err := newCourse(ctx, p, *binary)
	if err != nil {
		return err
	}
	defer c.close()
	baton := c.baton("baton", c.binary, "3")
	switch {
	case *guard:
		return c.guard(ctx, baton, guardBounds, stdout)
	case *compare:
		return c.compare(ctx, comparison{peers: *peers, quick: *quick}, stdout, stderr)
	case *open != "":
		counts, err := parseCounts(*open)
		if err != nil {
			return err
		}
		rows, err := c.openAll(ctx, []contestant{c.floor("floor"), baton}, counts)
		if err != nil {
			return err
		}
		return printOpenings(stdout, rows)
	case *lose != "":
		counts, err := parseCounts(*lose)
		if err != nil {
			return err
		}
		return c.loseAndPrint(ctx, counts, stdout, stderr)
	case *against != "":
		return c.raceAndPrint(ctx, []match{{c.baton("the other", *against, "3"), c.baton("baton / the other", c.binary, "3")}}, stdout, stderr)
	}
	return c.raceAndPrint(ctx, c.races(), stdout, stderr)
}

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
	c.files = raiseFiles(wantedFiles)
	c.worker, err = start(ctx, command{name: "worker", args: []string{c.self, "worker", "{address}"}})
	return err
}

func (c *course) close() {
	if c.worker != nil {
		c.worker.stop()
	}
	os.RemoveAll(c.dir)
}

// floor makes the contestant that is the yardstick. Handicaps make it worse.
func (c *course) floor(name string, handicaps ...string) contestant {
	return contestant{command: command{
		name: name,
		args: append([]string{c.self, "floor", "{address}", "http://" + c.worker.address}, handicaps...),
	}}
}

// baton makes the contestant of a program that may move a request so often.
func (c *course) baton(name, program, migrationLimit string) contestant {
	return contestant{
		command: command{name: name, args: []string{program, "serve", "--http-host", "127.0.0.1", "--http-port", "{port}",
			"--worker", "vllm=http://" + c.worker.address, "--model-path", c.dir, "--migration-limit", migrationLimit}},
		size: sizeOf(program),
	}
}

// A match is who races whom. Its name is the contestant's.
type match struct{ yardstick, contestant contestant }

// races are the floor against itself, which shows what a ratio of 1 looks like
// here, baton against the floor, and baton with migration against itself without.
func (c *course) races() []match {
	floor := c.floor("floor")
	return []match{
		{floor, c.floor("floor / floor")},
		{floor, c.baton("baton / floor", c.binary, "3")},
		{c.baton("baton", c.binary, "0"), c.baton("baton, limit 3 / 0", c.binary, "3")},
	}
}

// raceAll runs each race in each round.
func (c *course) raceAll(ctx context.Context, races []match, progress io.Writer) ([]row, error) {
	rows := make([]row, len(races))
	for round := range c.plan.rounds {
		for i, race := range races {
			r, err := c.race(ctx, race.yardstick, race.contestant, round%2 == 1)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", race.contestant.name, err)
			}
			rows[i].contestant, rows[i].rounds = race.contestant, append(rows[i].rounds, r)
			fmt.Fprintf(progress, "round %d of %d, %s: %s\n", round+1, c.plan.rounds, race.contestant.name, r)
		}
	}
	return rows, nil
}

func (c *course) raceAndPrint(ctx context.Context, races []match, stdout, progress io.Writer) error {
	rows, err := c.raceAll(ctx, races, progress)
	if err != nil {
		return err
	}
	return printTable(stdout, rows)
}

// String is one line about a race that is over.
func (r ratios) String() string {
	return fmt.Sprintf("CPU paced %.2f, unpaced %.2f, first token %.2f, each token %.2f, memory %.2f", r.pacedCPU, r.unpacedCPU, r.first, r.token, r.memory)
}

func build(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "baton")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "baton/cmd/baton").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build baton: %w\n%s", err, out)
	}
	return binary, nil
}

// sizeOf is how large a file is, or all files below a folder, in bytes; 0 where
// there is nothing.
func sizeOf(path string) (size int64) {
	filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}
