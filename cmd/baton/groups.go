package main

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"baton/admin"
	"baton/engine"
	"baton/model"
	"baton/router"
)

// groups remembers which workers serve which model, and tells people about it: an
// answer moves within a group only. It keeps out of a group what would only look
// like a member, and hints at two groups that could be one.
type groups struct {
	log *slog.Logger

	mu     sync.Mutex // guards what follows
	models map[string]*group
	hinted map[pair]bool
	shown  bool // the start of the log is over: what changes is told from now on
}

// A pair is two public names, in order.
type pair struct{ a, b string }

// A group is the workers of one public model.
type group struct {
	base    string // the public name of what it is a LoRA adapter of; "" = it is none
	digest  model.Digest
	workers map[string]router.Member // by id
	told    string                   // what was last said of how its workers differ
}

func newGroups(log *slog.Logger) *groups {
	return &groups{log: log, models: make(map[string]*group), hinted: make(map[pair]bool)}
}

// set notes what a worker serves now, and returns those of found that are in their
// groups. The others are not the model that the other workers of the group have, as
// the errors say. What is new is logged.
func (g *groups) set(workerID string, client engine.Client, found []foundModel) (in []foundModel, out []error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	serves := make(map[string]bool)
	for _, f := range found {
		if err := g.conflict(workerID, f); err != nil {
			out = append(out, err)
			continue
		}
		in = append(in, f)
		serves[f.public] = true
		g.add(f, router.Member{WorkerID: workerID, Kind: client.Kind(), Own: f.own, ContextLength: f.context, Parameters: client.Parameters()})
	}
	g.leave(workerID, func(public string) bool { return serves[public] })
	return in, out
}

// conflict says why a worker's model cannot be in the group of its name: ids mean
// the same there, but the model is another one.
func (g *groups) conflict(workerID string, f foundModel) error {
	of := g.models[f.public]
	if of == nil || of.base == f.base {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(of.workers)) {
		if id != workerID {
			return fmt.Errorf("model %q is %s on worker %s, and %s on worker %s; give one of them another name with --served-model-name %s=NAME",
				f.public, adapterOf(f.base), workerID, adapterOf(of.base), id, f.own)
		}
	}
	delete(g.models, f.public) // nobody else has it
	return nil
}

func adapterOf(base string) string {
	if base == "" {
		return "no LoRA adapter"
	}
	return fmt.Sprintf("a LoRA adapter of %q", base)
}

// add notes one model of a worker. g.mu is held.
func (g *groups) add(f foundModel, m router.Member) {
	of := g.models[f.public]
	if of == nil {
		of = &group{base: f.base, digest: f.model.Digest(), workers: make(map[string]router.Member)}
		g.models[f.public] = of
	}
	before, known := of.workers[m.WorkerID]
	of.workers[m.WorkerID] = m
	if !known || before.Own != m.Own {
		g.log.Info("model has a worker", "model", f.public, "worker", m.WorkerID, "name_at_worker", f.own,
			"workers", len(of.workers), "tokenizer", f.model.Path)
		if f.base == "" {
			g.hint(f.public)
		}
	}
	if !g.shown {
		return
	}
	if !known && len(of.workers) == 2 { // there was one, which had nobody to move to
		g.tellMembers(f.public)
	}
	g.tellDifferences(f.public)
}

// forget notes that a worker is gone.
func (g *groups) forget(workerID string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.leave(workerID, func(string) bool { return false })
}

// leave takes a worker out of all groups but those that it stays in. g.mu is held.
func (g *groups) leave(workerID string, stays func(public string) bool) {
	for _, public := range slices.Sorted(maps.Keys(g.models)) {
		of := g.models[public]
		if _, ok := of.workers[workerID]; !ok || stays(public) {
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

// maxShownGroups bounds how many groups the start of the log lists.
const maxShownGroups = 50

// show lists the groups, once: the first look at every worker is over.
func (g *groups) show() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shown || len(g.models) == 0 {
		return
	}
	g.shown = true
	for i, public := range slices.Sorted(maps.Keys(g.models)) {
		if i == maxShownGroups {
			g.log.Info("there are more models; baton workers lists them", "models", len(g.models))
			return
		}
		g.tellMembers(public)
		g.tellDifferences(public)
	}
}

// tellMembers says between which workers the answers of a model move. g.mu is held.
func (g *groups) tellMembers(public string) {
	of := g.models[public]
	ids := slices.Sorted(maps.Keys(of.workers))
	args := []any{"model", public, "workers", listed(ids), "tokenizer_digest", of.digest.String()}
	if of.base != "" {
		args = append(args, "adapter_of", of.base)
	}
	if len(ids) == 1 {
		g.log.Info("the model has one worker so far, and its answers cannot move", args...)
		return
	}
	g.log.Info("answers of the model can move between its workers", args...)
}

// tellDifferences says what not every worker of a model has alike, unless it said
// the same the last time. g.mu is held.
func (g *groups) tellDifferences(public string) {
	of := g.models[public]
	all := router.Group{Model: public, Members: slices.Collect(maps.Values(of.workers))}
	smallest, largest := all.Contexts()
	different, partial := all.Differences(), all.Partial()
	now := fmt.Sprint(smallest, largest, different, partial)
	if now == of.told {
		return
	}
	of.told = now
	if smallest != largest {
		g.log.Info("the contexts of the model's workers differ; what is longer than the smallest does not move there",
			"model", public, "smallest", smallest, "largest", largest)
	}
	if len(different) > 0 {
		g.log.Info("the engines of the model's workers understand parameters differently; answers that use them may not move exactly",
			"model", public, "kinds", all.Kinds(), "parameters", different)
	}
	if len(partial) > 0 {
		g.log.Info("not every worker of the model has these parameters; answers that use them move between those that have",
			"model", public, "kinds", all.Kinds(), "parameters", partial)
	}
}

// hint names the flag that would join public with another model that has the
// same tokenizer, once per pair. Names that one worker has for both are aliases,
// or two models for sure.
func (g *groups) hint(public string) {
	of := g.models[public]
	for _, other := range slices.Sorted(maps.Keys(g.models)) {
		o := g.models[other]
		if other == public || o.base != "" || o.digest != of.digest || shareAny(o.workers, of.workers) {
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

// maxHints bounds how many hints an operator is given.
const maxHints = 20

// hints are the pairs of models that could be one, as things are now.
func (g *groups) hints() []admin.Hint {
	g.mu.Lock()
	defer g.mu.Unlock()
	var hints []admin.Hint
	byTokenizer := make(map[model.Digest][]string) // names that came before
	for _, public := range slices.Sorted(maps.Keys(g.models)) {
		of := g.models[public]
		if of.base != "" {
			continue
		}
		for _, other := range byTokenizer[of.digest] {
			if len(hints) == maxHints {
				return hints
			}
			if !shareAny(g.models[other].workers, of.workers) {
				hints = append(hints, admin.Hint{Models: []string{other, public}, Flags: g.joinFlags(other, public)})
			}
		}
		byTokenizer[of.digest] = append(byTokenizer[of.digest], public)
	}
	return hints
}

// joinFlags gives the workers' names of two models one public name.
func (g *groups) joinFlags(a, b string) string {
	var flags []string
	for _, public := range []string{a, b} {
		names := make(map[string]bool)
		for _, m := range g.models[public].workers {
			names[m.Own] = true
		}
		for _, own := range slices.Sorted(maps.Keys(names)) {
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

func shareAny(a, b map[string]router.Member) bool {
	for k := range a {
		if _, ok := b[k]; ok {
			return true
		}
	}
	return false
}
