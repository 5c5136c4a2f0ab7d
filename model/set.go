package model

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
)

// Options are the values of the flags, as they were given.
type Options struct {
	Paths       []string // --model-path [NAME=]PATH
	ServedNames []string // --served-model-name [WORKERNAME=]NAME
}

// A Set holds the models by public name. It is safe for concurrent use.
type Set struct {
	names *names

	mu     sync.Mutex // guards all below; never held while a file is read
	models map[string]*Model
	// firstOwn is what the worker that brought a public name calls the model;
	// "" for a model that was there from the start.
	firstOwn map[string]string
	loads    map[string]*loading // by path
}

// loading is the one reading of a path, which any number may wait for.
type loading struct {
	done  chan struct{} // closed when model or err is set
	model *Model        // without a public name
	err   error
}

// NewSet reads the flags, and loads every model whose path they name, so that a
// wrong path is one sentence at the start and not an error on the first request.
func NewSet(opts Options) (*Set, error) {
	n, err := parseNames(opts.Paths, opts.ServedNames)
	if err != nil {
		return nil, err
	}
	s := &Set{
		names:    n,
		models:   make(map[string]*Model),
		firstOwn: make(map[string]string),
		loads:    make(map[string]*loading),
	}
	if n.defaultPath != "" {
		if _, err := s.load(n.defaultPath); err != nil {
			return nil, fmt.Errorf("--model-path %s: %w", n.defaultPath, err)
		}
	}
	for _, name := range n.configured() {
		path := n.path(name)
		if path == "" {
			continue // a worker will say where it is
		}
		m, err := s.load(path)
		if err != nil {
			return nil, fmt.Errorf("--model-path %s=%s: %w", name, path, err)
		}
		s.models[name] = m.named(name)
	}
	return s, nil
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
	_, found := slices.BinarySearch(s.names.configured(), public)
	return found
}

// Names returns all public names, sorted: the configured ones and those that
// workers brought.
func (s *Set) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.AppendSeq(s.names.configured(), maps.Keys(s.models))
	slices.Sort(all)
	return slices.Compact(all)
}

// Resolve returns the public name and the model of what a worker calls
// workerModelID. hintPath is where the worker says its files are ("" if it does
// not say); it is used if no path is configured and it is a folder, a .gguf
// file or a cached hub id on this machine.
//
// The error is one sentence for the log. It is not final: a worker may be
// resolved again, for instance after the model was fetched.
func (s *Set) Resolve(workerModelID, hintPath string) (public string, m *Model, err error) {
	public = s.names.public(workerModelID)
	if path := s.names.path(public); path != "" {
		m, err = s.load(path)
		if err != nil {
			return public, nil, fmt.Errorf("model %q: %w", public, err)
		}
		m, err = s.join(public, workerModelID, m)
		return public, m, err
	}

	path, found := findHint(hintPath, workerModelID)
	if !found {
		m, err = s.joinUnseen(public, workerModelID, hintPath)
		return public, m, err
	}
	m, err = s.load(path)
	if err != nil {
		return public, nil, fmt.Errorf("model %q: %w", public, err)
	}
	m, err = s.join(public, workerModelID, m)
	return public, m, err
}

// findHint returns the first of a worker's hints that is on this machine. The
// name of a model is a hint too: it is often a hub id.
func findHint(hints ...string) (path string, found bool) {
	for _, hint := range hints {
		if hint == "" || !filepath.IsAbs(hint) && !isHubID(hint) {
			continue // a relative path of the worker's machine means something else here
		}
		if place, err := locate(hint); err == nil && (filepath.IsAbs(hint) || place != hint) {
			return place, true
		}
	}
	return "", false
}

// join makes a loaded model the one with this public name, or checks that it may
// stand beside the one that is.
func (s *Set) join(public, own string, m *Model) (*Model, error) {
	s.mu.Lock()
	first, ok := s.models[public]
	if !ok {
		first = m.named(public)
		s.models[public] = first
		s.firstOwn[public] = own
	}
	firstOwn := s.firstOwn[public]
	s.mu.Unlock()

	if first.Tokenizer != m.Tokenizer && first.Digest() != m.Digest() {
		return nil, fmt.Errorf("model %q: the worker's model %q (%s) has another tokenizer than %s, so both cannot be one model; "+
			"give them different names with --served-model-name WORKERNAME=NAME", public, own, m.Path, describe(firstOwn, first))
	}
	return first, nil
}

// joinUnseen is join for a worker whose files are not on this machine.
func (s *Set) joinUnseen(public, own, hintPath string) (*Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wayOut := fmt.Sprintf("give its folder, its .gguf file (any quantization of it will do) or its hub id with --model-path %s=PATH", public)
	first, ok := s.models[public]
	switch {
	case ok && s.firstOwn[public] == own:
		return first, nil // the same model on another machine
	case ok:
		return nil, fmt.Errorf("model %q: whether the worker's model %q has the same tokenizer as %s cannot be seen from here; %s",
			public, own, describe(s.firstOwn[public], first), wayOut)
	case hintPath == "":
		return nil, fmt.Errorf("model %q: the worker does not say where the files of %q are; %s", public, own, wayOut)
	default:
		return nil, fmt.Errorf("model %q: the worker runs %s, which is not on this machine; %s", public, hintPath, wayOut)
	}
}

func describe(own string, m *Model) string {
	if own == "" {
		return m.Path
	}
	return fmt.Sprintf("%q (%s)", own, m.Path)
}

// load reads a path once. Whoever comes while it is read waits; a failure is
// forgotten, so that the next one tries again.
func (s *Set) load(path string) (*Model, error) {
	place, err := locate(path)
	if err != nil {
		return nil, err
	}
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
	l.model, l.err = load(place)
	return l.model, l.err
}

// named returns the model under a public name.
func (m *Model) named(public string) *Model {
	named := *m
	named.Name = public
	return &named
}
