package model

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"baton/hub"
)

// ErrOtherTokenizer is in the chain of an error that says so of a worker: its
// tokenizer is not that of the model whose public name it has. Trying again does
// not help.
var ErrOtherTokenizer = errors.New("another tokenizer")

// A Set holds the models by public name. It is safe for concurrent use.
type Set struct {
	options Options
	find    finder
	shared  tokenizers

	mu     sync.Mutex // guards all below; never held while a file is read
	models map[string]*Model
	origin map[string]origin   // by public name; none for a model that was there from the start
	loads  map[string]*loading // by path
}

// An origin is the worker that brought a model, and what it calls the model.
type origin struct{ worker, own string }

// loading is the one reading of a path, which any number may wait for.
type loading struct {
	done  chan struct{} // closed when model or err is set
	model *Model        // without a public name
	err   error
}

// NewSet loads every model whose path the options name, so that a wrong path is
// one sentence at the start and not an error on the first request. Those that have
// to be fetched first are not waited for: see [Set.Run].
func NewSet(options Options) (*Set, error) {
	if err := options.checkParsers(); err != nil {
		return nil, err
	}
	s := &Set{
		options: options,
		find:    localFinder(),
		models:  make(map[string]*Model),
		origin:  make(map[string]origin),
		loads:   make(map[string]*loading),
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if h := options.Hub; h != nil {
		s.find.hub = h
		if !h.IsOffline() {
			s.find.fetches = newFetches(h, options.Log)
		}
	}
	if path := options.path(""); path != "" {
		if _, err := s.load(path); err != nil && !errors.Is(err, ErrFetching) {
			return nil, wrongPath("", path, err)
		}
	}
	for _, name := range options.configured() {
		path := options.path(name)
		if path == "" {
			continue // a worker will say where it is
		}
		m, err := s.load(path)
		if errors.Is(err, ErrFetching) {
			continue
		}
		if err != nil {
			return nil, wrongPath(name+"=", path, err)
		}
		s.models[name] = m.named(name, &options)
	}
	return s, nil
}

// Run fetches the models that are wanted and not on this machine, until ctx ends.
// Without it they stay on their way for ever.
func (s *Set) Run(ctx context.Context) error {
	if s.find.fetches == nil {
		return nil
	}
	return s.find.fetches.run(ctx)
}

// wrongPath is err with the flag before it. Most errors begin with the path, which
// is then not said twice.
func wrongPath(name, path string, err error) error {
	if strings.HasPrefix(err.Error(), path) {
		return fmt.Errorf("--model-path %s%w", name, err)
	}
	return fmt.Errorf("--model-path %s%s: %w", name, path, err)
}

// Get returns the model with this public name. It is there from the start if a
// path is configured for it, else since a worker that serves it was resolved.
func (s *Set) Get(public string) (*Model, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.models[public]
	return m, ok
}

// Known tells whether public is a configured name or that of a model.
func (s *Set) Known(public string) bool {
	if _, ok := s.Get(public); ok {
		return true
	}
	_, found := slices.BinarySearch(s.options.configured(), public)
	return found
}

// Names returns all public names, sorted: the configured ones and those that
// workers brought.
func (s *Set) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.AppendSeq(s.options.configured(), maps.Keys(s.models))
	slices.Sort(all)
	return slices.Compact(all)
}

// Resolve returns the public name and the model of what a worker calls own.
// hintPath is where the worker says its files are ("" if it does not say). Where no
// path is configured it is used if it is a folder, a .gguf file or a model of the hub
// cache on this machine; else what the worker says is looked for on the hub.
//
// The error is one sentence for the log. It is not final, unless it is
// ErrOtherTokenizer: a worker may be resolved again, for instance after the model
// was fetched. It is [ErrFetching] while nothing is wrong, and only time is needed.
func (s *Set) Resolve(worker, own, hintPath string) (public string, m *Model, err error) {
	public = s.options.public(own)
	m, found, err := s.configuredOrHinted(public, own, hintPath)
	switch {
	case err != nil:
		return public, nil, fmt.Errorf("model %q: %w", public, err)
	case !found:
		m, err = s.joinUnseen(public, own, hintPath)
		return public, m, err
	}
	m, err = s.join(public, origin{worker, own}, m)
	return public, m, err
}

// configuredOrHinted loads the model that the flags mean, else the one that the
// worker's words mean; found is false if they mean nothing here.
func (s *Set) configuredOrHinted(public, own, hintPath string) (m *Model, found bool, err error) {
	if path := s.options.path(public); path != "" {
		m, err = s.load(path)
		return m, true, err
	}
	hint := s.hint(public, own, hintPath)
	if hint == "" {
		return nil, false, nil
	}
	place, err := s.find.placeHinted(hint)
	switch {
	case errors.Is(err, ErrFetching):
		return nil, true, err
	case err != nil:
		return nil, true, fmt.Errorf("the worker names %q: %w", hint, err)
	}
	m, err = s.loadPlace(place)
	return m, true, err
}

// hint returns which of a worker's words means something here, "" if none does. The
// name of a model is a hint too: it is often a hub id. What is on this machine comes
// first; then what another worker brought under the same name; then the hub.
func (s *Set) hint(public, own, hintPath string) string {
	for _, hint := range []string{hintPath, own} {
		if s.find.isLocal(hint) {
			return hint
		}
	}
	if s.find.fetches == nil || s.isBrought(public, own) {
		return ""
	}
	for _, hint := range []string{hintPath, own} {
		if isHubWord(hint) {
			return hint
		}
	}
	return ""
}

// isHubWord tells whether a worker's word is likely to name a model of the hub: a path
// into a hub cache, or ORG/NAME. A name without an owner is more often one that people
// made up, and a .gguf file is one of the worker's machine (models/tiny/q8.gguf).
func isHubWord(hint string) bool {
	if _, ok := hub.RefOfCachePath(hint); ok {
		return true
	}
	ref, ok := hub.ParseRef(hint)
	return ok && ref.HasOwner() && ref.File == ""
}

// isBrought tells whether a worker that calls its model own brought the model public.
func (s *Set) isBrought(public, own string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, ok := s.origin[public]
	return ok && from.own == own
}

// join makes a loaded model the one with this public name, or checks that it may
// stand beside the one that is.
func (s *Set) join(public string, from origin, m *Model) (*Model, error) {
	s.mu.Lock()
	first, ok := s.models[public]
	if !ok {
		first = m.named(public, &s.options)
		s.models[public] = first
		s.origin[public] = from
	}
	firstFrom := s.origin[public]
	s.mu.Unlock()

	if first.Tokenizer != m.Tokenizer && first.Digest() != m.Digest() {
		return nil, fmt.Errorf("model %q: %s has %w than %s, so both cannot be one model; "+
			"give them different names with --served-model-name WORKERNAME=NAME", public, describe(from, m), ErrOtherTokenizer, describe(firstFrom, first))
	}
	return first, nil
}

// joinUnseen is join for a worker whose files are not on this machine.
func (s *Set) joinUnseen(public, own, hintPath string) (*Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wayOut := "give its folder, its .gguf file (any quantization of it will do) or its hub id with " + PathFlag(public)
	first, ok := s.models[public]
	switch {
	case ok && s.origin[public].own == own:
		return first, nil // the same model on another machine
	case ok:
		return nil, fmt.Errorf("model %q: whether the worker's model %q has the same tokenizer as %s cannot be seen from here; %s",
			public, own, describe(s.origin[public], first), wayOut)
	case hintPath == "":
		return nil, fmt.Errorf("model %q: the worker does not say where the files of %q are; %s", public, own, wayOut)
	default:
		return nil, fmt.Errorf("model %q: the worker runs %s, which is not on this machine; %s", public, hintPath, wayOut)
	}
}

func describe(from origin, m *Model) string {
	if from.worker == "" {
		return m.Path
	}
	return fmt.Sprintf("%q of worker %s (%s)", from.own, from.worker, m.Path)
}

// load reads a path once. Whoever comes while it is read waits; a failure is
// forgotten, so that the next one tries again.
func (s *Set) load(path string) (*Model, error) {
	place, err := s.find.place(path)
	if err != nil {
		return nil, err
	}
	return s.loadPlace(place)
}

func (s *Set) loadPlace(place string) (*Model, error) {
	s.mu.Lock()
	l, ok := s.loads[place]
	if ok {
		s.mu.Unlock()
		<-l.done
		return l.model, l.err
	}
	l = &loading{done: make(chan struct{}), err: errors.New("loading was broken off")}
	s.loads[place] = l
	s.mu.Unlock()

	defer func() {
		if l.err != nil {
			s.mu.Lock()
			delete(s.loads, place)
			s.mu.Unlock()
		}
		close(l.done)
	}()
	l.model, l.err = load(place, &s.shared)
	return l.model, l.err
}

// named returns the model under a public name.
func (m *Model) named(public string, options *Options) *Model {
	named := *m
	named.Name = public
	named.Formats = options.formatsOf(&named)
	return &named
}
