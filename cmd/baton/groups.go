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
	hinted map[string]bool // pairs of names
}

// A group is the workers of one public model.
type group struct {
	adapter bool // it shares its tokenizer with the base model, which it is not
	digest  model.Digest
	own     map[string]bool // what its workers call the model
	workers map[string]bool // by id
}

func newGroups(log *slog.Logger) *groups {
	return &groups{log: log, models: make(map[string]*group), hinted: make(map[string]bool)}
}

// add notes that a worker serves a model. What is new is logged.
func (g *groups) add(workerID string, f foundModel) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.models[f.public]
	if of == nil {
		of = &group{adapter: f.adapter, digest: f.model.Digest(), own: make(map[string]bool), workers: make(map[string]bool)}
		g.models[f.public] = of
	}
	known := of.workers[workerID] && of.own[f.own]
	of.workers[workerID], of.own[f.own] = true, true
	if known {
		return
	}
	g.log.Info("model has a worker", "model", f.public, "worker", workerID, "name_at_worker", f.own,
		"workers", len(of.workers), "tokenizer", f.model.Path)
	if !f.adapter {
		g.hint(f.public)
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
		pair := min(public, other) + "\x00" + max(public, other)
		if g.hinted[pair] {
			continue
		}
		g.hinted[pair] = true
		g.log.Info("two models have the same tokenizer; if they are the same model, the flags join them, so that answers can move between all their workers",
			"models", []string{other, public}, "flags", g.joinFlags(other, public))
	}
}

// joinFlags gives the workers' names of two models one public name.
func (g *groups) joinFlags(a, b string) string {
	var flags []string
	for _, public := range []string{a, b} {
		for _, own := range sorted(g.models[public].own) {
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

func shareAny(a, b map[string]bool) bool {
	for k := range a {
		if b[k] {
			return true
		}
	}
	return false
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
