package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"baton/config"
	"baton/engine"
	"baton/engine/transport"
	"baton/model"
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
	warned    map[string]string // what was last said of the models that a worker's id serves in vain
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
	if a.firstLook(spec.URL) && errors.Is(err, model.ErrOtherTokenizer) {
		a.failStart(err)
	}
	return w, err
}

// firstLook reports whether this was the first look at a worker that --worker names.
func (a *attacher) firstLook(url string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.unlooked[url]
	delete(a.unlooked, url)
	return first
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
	found, err := a.resolve(spec.ID, client.Kind(), info)
	if err != nil {
		return nil, err
	}
	checked := make(map[model.Digest]bool)
	for _, f := range found {
		if f.adapter || checked[f.model.Digest()] {
			continue
		}
		checked[f.model.Digest()] = true
		if err := checkTokenizer(ctx, client, spec.ID, f); err != nil {
			return nil, err
		}
	}
	w := &router.Worker{Client: withModel(client, link, found[0].model), Info: info}
	for _, f := range found {
		a.announce(f.public)
		a.groups.add(spec.ID, f)
		w.Models = append(w.Models, router.Model{Name: f.public, Own: f.own, ContextLength: f.context})
	}
	return w, nil
}

const (
	// maxModelsPerWorker bounds what one worker can add to the metrics' labels.
	maxModelsPerWorker = 1000
	// maxModels bounds what all workers can add to them, those that are gone too:
	// the counters of a model stay until the process ends.
	maxModels = 10_000
)

// announce tells onModel of a model that is new.
func (a *attacher) announce(public string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.seen[public] {
		a.seen[public] = true
		a.onModel(public)
	}
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

// A foundModel is one model of a worker with what the frontend knows of it.
type foundModel struct {
	public, own string
	context     int  // in tokens; 0 = unknown
	adapter     bool // a LoRA adapter of another model
	model       *model.Model
}

// resolve finds the models that a worker says it serves. Those that cannot be
// tokenized for here are left out, with lines in the log, as long as there is
// another; else the error says why. Another tokenizer than the model's is a wrong
// flag or a wrong worker, so then the whole worker is out.
func (a *attacher) resolve(workerID, kind string, info engine.Info) ([]foundModel, error) {
	all := len(info.Models)
	info.Models = info.Models[:min(all, maxModelsPerWorker)]
	var found []foundModel
	var left []error
	names := make(map[string]bool)
	for _, m := range info.Models {
		f, err := a.resolveOne(workerID, kind, m, info.Models)
		if err == nil {
			err = a.count(f.public)
		}
		if errors.Is(err, model.ErrOtherTokenizer) {
			return nil, err
		}
		if err != nil {
			left = append(left, err)
			continue
		}
		if names[f.public] { // several names of one model, all of which have one public name
			continue
		}
		names[f.public] = true
		found = append(found, f)
	}
	if all > maxModelsPerWorker {
		left = append(left, fmt.Errorf("the worker serves more models than are looked at: %d, the limit is %d", all, maxModelsPerWorker))
	}
	switch {
	case len(found) == 0 && len(left) > 0:
		return nil, left[0]
	case len(found) == 0:
		return nil, fmt.Errorf("the worker serves no model")
	}
	a.warnLeftOut(workerID, left)
	return found, nil
}

// warnLeftOut says which models of a worker are left out, unless it said the
// same the last time: workers are attached to again and again.
func (a *attacher) warnLeftOut(workerID string, left []error) {
	said := fmt.Sprint(left)
	a.mu.Lock()
	again := a.warned[workerID] == said || a.warned[workerID] == "" && len(left) == 0
	a.warned[workerID] = said
	a.mu.Unlock()
	if again {
		return
	}
	for _, err := range left {
		a.log.Warn("model left out", "worker", workerID, "err", err)
	}
}

// resolveOne finds one model. A LoRA adapter has the tokenizer of its base.
func (a *attacher) resolveOne(workerID, kind string, m engine.ModelInfo, all []engine.ModelInfo) (foundModel, error) {
	hint := m.Path
	for _, base := range all {
		if m.Parent != "" && base.ID == m.Parent {
			hint = base.Path
		}
	}
	public, found, err := a.models.Resolve(workerID, m.ID, hint)
	a.flagNames.saw(m.ID, public)
	if err != nil {
		return foundModel{}, err
	}
	// llama.cpp counts exactly the tokens of its file; other engines may have rows
	// more than tokens, to fill up a matrix.
	if m.VocabSize != 0 && (m.VocabSize < found.VocabSize || kind == engine.LlamaCPP && m.VocabSize != found.VocabSize) {
		return foundModel{}, fmt.Errorf("model %q: worker %s has another tokenizer than %s: its vocabulary has %d tokens, not %d; give the files of the worker's model with %s",
			public, workerID, found.Path, m.VocabSize, found.VocabSize, model.PathFlag(public))
	}
	return foundModel{public: public, own: m.ID, context: m.ContextLength, adapter: m.Parent != "", model: found}, nil
}
