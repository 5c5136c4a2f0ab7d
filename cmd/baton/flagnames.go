package main

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"baton/config"
)

// flagNames finds names in [NAME=] flags that no worker has: a typo there would
// otherwise be a flag without effect and without a word.
type flagNames struct {
	log     *slog.Logger
	workers int // how many there are; math.MaxInt = nobody knows

	mu       sync.Mutex // guards what follows
	unseen   []flagName
	attached map[string]bool // ids of workers that were attached
	own      []string        // what the workers call their models
	public   []string        // what clients call them
	began    time.Time       // the first look at any worker
	said     bool
}

// A flagName is one flag with a name.
type flagName struct {
	flag string // as it was written
	name string
	own  bool // name is the worker's own one, not the public one
}

const (
	// flagNamesGrace is how long workers that are not there yet may still bring a
	// name that a flag has.
	flagNamesGrace = 15 * time.Second
	// maxListedNames bounds a list in a record.
	maxListedNames = 10
)

func newFlagNames(cfg *config.Serve, log *slog.Logger) *flagNames {
	f := &flagNames{log: log, workers: len(cfg.Workers), attached: make(map[string]bool)}
	if cfg.Discovery != "" && cfg.Discovery != config.DiscoverStatic {
		f.workers = math.MaxInt
	}
	for _, n := range cfg.ModelPaths {
		f.expect("--model-path", n, false)
	}
	for _, n := range cfg.ToolCallParsers {
		f.expect("--tool-call-parser", n, false)
	}
	for _, n := range cfg.ReasoningParsers {
		f.expect("--reasoning-parser", n, false)
	}
	for _, n := range cfg.ServedNames {
		f.expect("--served-model-name", n, true)
	}
	return f
}

func (f *flagNames) expect(flag string, n config.Named, own bool) {
	if n.Name != "" {
		f.unseen = append(f.unseen, flagName{fmt.Sprintf("%s %v", flag, n), n.Name, own})
	}
}

// saw notes that a worker has a model.
func (f *flagNames) saw(own, public string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.said || len(f.unseen) == 0 {
		return
	}
	f.own, f.public = append(f.own, own), append(f.public, public)
	f.unseen = slices.DeleteFunc(f.unseen, func(n flagName) bool { return n.own && n.name == own || !n.own && n.name == public })
}

// looked notes a look at a worker. When all workers are there, or there was time
// enough for those whose models are known, it warns of the names that none of them has, once.
func (f *flagNames) looked(workerID string, attached bool, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.began.IsZero() {
		f.began = now
	}
	if attached {
		f.attached[workerID] = true
	}
	there := len(f.attached)
	if f.said || len(f.own) == 0 || there < f.workers && now.Sub(f.began) < flagNamesGrace {
		return
	}
	f.said = true
	for _, n := range f.unseen {
		thereIs := f.public
		if n.own {
			thereIs = f.own
		}
		f.log.Warn("a flag names a model that no worker has", "flag", n.flag, "there_is", listed(thereIs))
	}
}

// forget notes that a worker is gone.
func (f *flagNames) forget(workerID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.attached, workerID)
}

// listed is a list of bounded length, in order, with each name once.
func listed(names []string) []string {
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	if n := len(sorted); n > maxListedNames {
		return append(sorted[:maxListedNames], fmt.Sprintf("and %d more", n-maxListedNames))
	}
	return sorted
}
