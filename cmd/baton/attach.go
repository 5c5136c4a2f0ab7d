package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"baton/config"
	"baton/engine/transport"
	"baton/model"
	"baton/parser"
	"baton/router"
)

// An attacher finds out what is behind a worker's address: which engine, which
// models, and what the frontend must know in order to tokenize for them.
type attacher struct {
	connectTimeout time.Duration
	models         *model.Set
	groups         *groups
	flagNames      *flagNames
	log            *slog.Logger
	onModel        func(name string) // told of every model before its first request
	workerKey      func() string     // nil = workers get none

	failStart context.CancelCauseFunc // ends what checkingStart runs
	mu        sync.Mutex              // guards the rest
	unlooked  map[string]bool         // URLs of --worker that nobody has tried to attach to yet
	links     map[string]*transport.Link
	warned    map[string]string // what a worker, by its id, was last warned of
	seen      map[string]bool   // public names; true = onModel was told
}

func newAttacher(cfg *config.Serve, models *model.Set, log *slog.Logger) *attacher {
	a := &attacher{
		connectTimeout: cfg.ConnectTimeout,
		models:         models,
		groups:         newGroups(log),
		flagNames:      newFlagNames(cfg, log),
		log:            log,
		failStart:      func(error) {},
		unlooked:       make(map[string]bool),
		links:          make(map[string]*transport.Link),
		warned:         make(map[string]string),
		seen:           make(map[string]bool),
	}
	a.groups.shown = len(cfg.Workers) == 0 // those that are discovered come when they come
	for _, w := range cfg.Workers {
		a.unlooked[w.URL] = true
	}
	return a
}

// checkingStart returns run, which calls attach, such that it ends with an error
// when the start has failed. The start fails if the first look at any worker that
// --worker names finds that two workers are one model by the flags and have
// different tokenizers: the flags are wrong, and which of the two is meant cannot be
// known. A worker that turns up so later, or was discovered, is kept out, with a line
// in the log, because the others serve by then; so is, at any time, one that does not
// fit the files of its model.
func (a *attacher) checkingStart(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		a.failStart = cancel
		err := run(ctx)
		if cause := context.Cause(ctx); errors.Is(cause, model.ErrOtherTokenizer) {
			return cause
		}
		return err
	}
}

// attach implements router.Attach.
func (a *attacher) attach(ctx context.Context, spec router.Spec) (*router.Worker, error) {
	w, err := a.find(ctx, spec)
	a.flagNames.looked(spec.ID, err == nil, time.Now())
	first, all := a.firstLook(spec.URL)
	if first && errors.Is(err, model.ErrOtherTokenizer) {
		a.failStart(err)
	}
	if all {
		a.groups.show()
	}
	return w, err
}

// firstLook reports whether this was the first look at a worker that --worker names,
// and whether there was one at all of them now.
func (a *attacher) firstLook(url string) (first, all bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first = a.unlooked[url]
	delete(a.unlooked, url)
	return first, len(a.unlooked) == 0
}

// forget gives up what is kept of a worker that is gone.
func (a *attacher) forget(workerID string) {
	a.mu.Lock()
	link := a.links[workerID]
	delete(a.links, workerID)
	delete(a.warned, workerID)
	a.mu.Unlock()
	if link != nil {
		link.Close()
	}
	a.groups.forget(workerID)
	a.flagNames.forget(workerID)
}

// link returns the way to a worker, the same one each time.
func (a *attacher) link(spec router.Spec) (*transport.Link, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if link := a.links[spec.ID]; link != nil {
		return link, nil
	}
	link, err := transport.New(transport.Options{URL: spec.URL, WorkerID: spec.ID, APIKey: a.workerKey, ConnectTimeout: a.connectTimeout})
	if err == nil {
		a.links[spec.ID] = link
	}
	return link, err
}

// find asks a worker what it is, and checks that the frontend can tokenize for it.
func (a *attacher) find(ctx context.Context, spec router.Spec) (*router.Worker, error) {
	link, err := a.link(spec)
	if err != nil {
		return nil, err
	}
	link.Close() // what is kept leads to a worker that may be gone
	client, info, err := identify(ctx, link, spec.Kind)
	if err != nil {
		return nil, err
	}
	found, warnings, err := a.resolve(spec.ID, client.Kind(), info)
	if err != nil {
		return nil, err
	}
	checked := make(map[model.Digest]bool)
	for _, f := range found {
		if f.base != "" || checked[f.model.Digest()] {
			continue
		}
		checked[f.model.Digest()] = true
		if err := checkTokenizer(ctx, client, spec.ID, f); err != nil {
			return nil, err
		}
		if err := compareTemplates(f); err != nil {
			warnings = append(warnings, warning{"the chat template of the worker is not that of the model's files, which is the one that is used", err})
		}
	}
	client = withModel(client, found[0].model)
	found, out := a.groups.set(spec.ID, client, found)
	if len(found) == 0 {
		return nil, out[0]
	}
	a.warn(spec.ID, append(warnings, leftOut(out...)...))
	w := &router.Worker{Client: client, Info: info}
	if slices.ContainsFunc(warnings, func(w warning) bool { return model.MayComeLater(w.err) }) {
		w.Info.Models = nil // no worker says that, so this one is attached to again, when the files may be there
	}
	for _, f := range found {
		a.announce(f.public, f.model)
		w.Models = append(w.Models, router.Model{Name: f.public, Own: f.own, ContextLength: f.context, Base: f.base})
	}
	return w, nil
}

// A warning is a record of the log about a worker that serves all the same.
type warning struct {
	message string
	err     error
}

func leftOut(errs ...error) []warning {
	var warnings []warning
	for _, err := range errs {
		warnings = append(warnings, warning{"model left out", err})
	}
	return warnings
}

// warn logs what there is to be warned of about a worker, unless it was the same the
// last time: workers are attached to again and again.
func (a *attacher) warn(workerID string, warnings []warning) {
	said := ""
	for _, w := range warnings {
		said += fmt.Sprintf("%s: %v\n", w.message, w.err)
	}
	a.mu.Lock()
	again := a.warned[workerID] == said
	a.warned[workerID] = said
	a.mu.Unlock()
	if again {
		return
	}
	for _, w := range warnings {
		a.log.Warn(w.message, "worker", workerID, "err", w.err)
	}
}

// announce tells onModel of a model that is new, and the log of how its answers are read.
func (a *attacher) announce(public string, m *model.Model) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen[public] {
		return
	}
	a.seen[public] = true
	a.onModel(public)
	if m.Template != nil {
		a.log.Info("how the answers of a model are read", "model", public,
			"tool_call_parser", formatName(m.Formats.Tool), "reasoning_parser", formatName(m.Formats.Reasoning))
	}
}

func formatName(f *parser.Format) string {
	if f == nil {
		return "none"
	}
	return f.Name
}

// count counts a model, once. Its error says that there were too many.
func (a *attacher) count(public string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, counted := a.seen[public]; counted {
		return nil
	}
	if len(a.seen) >= maxModels {
		return fmt.Errorf("model %q: workers have brought %d models since the start, which is the limit", public, maxModels)
	}
	a.seen[public] = false
	return nil
}
