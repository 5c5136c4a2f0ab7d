package discovery

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// A Source knows where workers are.
type Source interface {
	// Run calls report with all targets when it knows them, and again each time that
	// they may have changed, until ctx ends; then it returns nil. It calls report from
	// one goroutine at a time, and the slice belongs to the callee. Two targets with
	// the same URL are never reported together.
	Run(ctx context.Context, report func([]Target)) error
}

// A Target is where one worker listens.
type Target struct {
	URL  string // http://host:port or https://host:port, nothing else
	Kind string // the engine, as stated; "" = ask the worker
}

// Address returns the host:port of the target's URL.
func (t Target) Address() string {
	_, address, _ := strings.Cut(t.URL, "://")
	return strings.ReplaceAll(address, "%25", "%")
}

// maxTargets bounds the workers that a source reports.
const maxTargets = 10_000

// Static is a Source that knows its targets from the beginning.
type Static []Target

// Run implements Source.
func (s Static) Run(ctx context.Context, report func([]Target)) error {
	report(slices.Clone(s))
	<-ctx.Done()
	return nil
}

// Join returns the Source of all that sources report. Where two of them have the same
// URL the kind that the former states counts. A source that has not reported yet keeps
// none of the others waiting.
func Join(log *slog.Logger, sources ...Source) Source {
	return &joined{log: log, sources: sources, sets: make([][]Target, len(sources))}
}

type joined struct {
	log     *slog.Logger
	sources []Source

	mu      sync.Mutex // guards what follows, and is held while the union is reported
	sets    [][]Target
	tooMany bool // the log knows
}

// Run implements Source.
func (j *joined) Run(ctx context.Context, report func([]Target)) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, s := range j.sources {
		group.Go(func() error {
			return s.Run(ctx, func(targets []Target) {
				j.mu.Lock()
				defer j.mu.Unlock()
				j.sets[i] = targets
				if all, ok := j.union(); ok {
					report(all)
				}
			})
		})
	}
	return group.Wait()
}

// union returns all targets, and false if they are too many. j.mu is held.
func (j *joined) union() ([]Target, bool) {
	var all []Target
	seen := make(map[string]bool)
	for _, t := range slices.Concat(j.sets...) {
		if !seen[t.URL] {
			seen[t.URL] = true
			all = append(all, t)
		}
	}
	tooMany := len(all) > maxTargets
	if tooMany && !j.tooMany {
		j.log.Error("there are more workers than can be used; those of before stay", "err", errTooMany(len(all)))
	}
	j.tooMany = tooMany
	return all, !tooMany
}

func errTooMany(n int) error {
	return fmt.Errorf("%d workers; the limit is %d", n, maxTargets)
}
