package main

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"baton/model"
)

// groups remembers which workers serve which model, and tells people about it:
// an answer moves within a group only, so two groups that could be one are
// worth a hint.
type groups struct {
	log *slog.Logger

	mu     sync.Mutex // guards what follows
	models map[string]*group
	hinted map[pair]bool
}

// A pair is two public names, in order.
type pair struct{ a, b string }

// A group is the workers of one public model.
type group struct {
	adapter bool // it shares its tokenizer with the base model, which it is not
	digest  model.Digest
	workers map[string]string // by id, what the worker calls the model
}

func newGroups(log *slog.Logger) *groups {
	return &groups{log: log, models: make(map[string]*group), hinted: make(map[pair]bool)}
}

// add notes that a worker serves a model. What is new is logged.
func (g *groups) add(workerID string, f foundModel) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.models[f.public]
	if of == nil {
		of = &group{adapter: f.adapter, digest: f.model.Digest(), workers: make(map[string]string)}
		g.models[f.public] = of
	}
	if of.workers[workerID] == f.own {
		return
	}
	of.workers[workerID] = f.own
	g.log.Info("model has a worker", "model", f.public, "worker", workerID, "name_at_worker", f.own,
		"workers", len(of.workers), "tokenizer", f.model.Path)
	if !f.adapter {
		g.hint(f.public)
	}
}

// forget notes that a worker is gone.
func (g *groups) forget(workerID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, public := range slices.Sorted(maps.Keys(g.models)) {
		of := g.models[public]
		if _, ok := of.workers[workerID]; !ok {
			continue
		}
		if delete(of.workers, workerID); len(of.workers) > 0 {
			continue
		}
		delete(g.models, public)
		maps.DeleteFunc(g.hinted, func(p pair, _ bool) bool { return p.a == public || p.b == public })
		g.log.Warn("model has no worker any more", "model", public, "last_worker", workerID)
	}
}

// hint names the flag that would join public with another model that has the
// same tokenizer, once per pair. Names that one worker has for both are aliases,
// or two models for sure.
func (g *groups) hint(public string) {
	of := g.models[public]
	for _, other := range slices.Sorted(maps.Keys(g.models)) {
		o := g.models[other]
		if other == public || o.adapter || o.digest != of.digest || shareAny(o.workers, of.workers) {
			continue
		}
		both := pair{min(public, other), max(public, other)}
		if g.hinted[both] {
			continue
		}
		g.hinted[both] = true
		g.log.Info("two models have the same tokenizer; if they are the same model, the flags join them, so that answers can move between all their workers",
			"models", []string{other, public}, "flags", g.joinFlags(other, public))
	}
}

// joinFlags gives the workers' names of two models one public name.
func (g *groups) joinFlags(a, b string) string {
	var flags []string
	for _, public := range []string{a, b} {
		for _, own := range slices.Compact(slices.Sorted(maps.Values(g.models[public].workers))) {
			flags = append(flags, fmt.Sprintf("--served-model-name '%s=%s'", own, niceName(a)))
		}
	}
	return strings.Join(flags, " ")
}

// niceName makes a name for clients of the path that llama.cpp names its model by.
func niceName(model string) string {
	if !strings.HasSuffix(model, ".gguf") {
		return model
	}
	return strings.TrimSuffix(model[strings.LastIndexAny(model, `/\`)+1:], ".gguf")
}

func shareAny(a, b map[string]string) bool {
	for k := range a {
		if _, ok := b[k]; ok {
			return true
		}
	}
	return false
}
