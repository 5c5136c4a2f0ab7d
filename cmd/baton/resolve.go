package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"baton/engine"
	"baton/model"
)

const (
	// maxModelsPerWorker bounds what one worker can add to the metrics' labels.
	maxModelsPerWorker = 1000
	// maxAdaptersPerWorker bounds the LoRA adapters among them.
	maxAdaptersPerWorker = 256
	// maxModels bounds what all workers can add to them, those that are gone too:
	// the counters of a model stay until the process ends.
	maxModels = 10_000
	// maxNameBytes bounds a name that a worker gives, which may be the path of a file.
	maxNameBytes = 1024
)

// A foundModel is one model of a worker with what the frontend knows of it.
type foundModel struct {
	public, own string
	context     int    // in tokens; 0 = unknown
	base        string // the public name of the model that it is a LoRA adapter of; "" = it is none
	template    string // the chat template that the worker has; "" = it does not say
	model       *model.Model
}

// resolve finds the models that a worker says it serves. Those that cannot be
// tokenized for here are left out, with a warning, as long as there is another; else
// the error says why. Another tokenizer than the model's is a wrong flag or a wrong
// worker, so then the whole worker is out.
func (a *attacher) resolve(workerID, kind string, info engine.Info) ([]foundModel, []warning, error) {
	all := len(info.Models)
	models := slices.Clone(info.Models[:min(all, maxModelsPerWorker)])
	slices.SortStableFunc(models, func(a, b engine.ModelInfo) int { // a name that both have is the model's, not its adapter's
		return min(len(a.Parent), 1) - min(len(b.Parent), 1)
	})
	var found []foundModel
	var left []error
	names := make(map[string]bool)
	adapters := 0
	for _, m := range models {
		if m.Parent != "" {
			if adapters++; adapters > maxAdaptersPerWorker {
				continue
			}
		}
		if !isName(m.ID) || m.Parent != "" && !isName(m.Parent) {
			left = append(left, fmt.Errorf("a model of the worker has a name that cannot be one: %d bytes, of which there may be 1 to %d, or with something in it that cannot be printed", len(m.ID), maxNameBytes))
			continue
		}
		f, err := a.resolveOne(workerID, kind, m, models)
		if err == nil {
			err = a.count(f.public)
		}
		switch {
		case errors.Is(err, model.ErrOtherTokenizer) && m.Parent == "":
			return nil, nil, err
		case err == nil && names[f.public] && f.base != "":
			err = fmt.Errorf("the LoRA adapter %q has the public name of another model of the worker, %q; give it one of its own with --served-model-name %s=NAME", m.ID, f.public, m.ID)
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
	if adapters > maxAdaptersPerWorker {
		left = append(left, fmt.Errorf("the worker serves more LoRA adapters than are looked at: %d, the limit is %d", adapters, maxAdaptersPerWorker))
	}
	switch {
	case len(found) == 0 && len(left) > 0:
		return nil, nil, left[0]
	case len(found) == 0:
		return nil, nil, fmt.Errorf("the worker serves no model")
	}
	return found, leftOut(left...), nil
}

// isName reports whether a worker's name for a model can be shown to people and be a
// label of metrics.
func isName(s string) bool {
	return s != "" && len(s) <= maxNameBytes && utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) })
}

// resolveOne finds one model among all of its worker.
func (a *attacher) resolveOne(workerID, kind string, m engine.ModelInfo, all []engine.ModelInfo) (foundModel, error) {
	if m.Parent != "" {
		return a.resolveAdapter(workerID, kind, m, all)
	}
	public, found, err := a.models.Resolve(workerID, m.ID, m.Path)
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
	return foundModel{public: public, own: m.ID, context: m.ContextLength, template: m.ChatTemplate, model: found}, nil
}

// resolveAdapter finds a LoRA adapter, which has the tokenizer of its base.
func (a *attacher) resolveAdapter(workerID, kind string, m engine.ModelInfo, all []engine.ModelInfo) (foundModel, error) {
	parent, ok := baseOf(m, all)
	if !ok {
		return foundModel{}, fmt.Errorf("the LoRA adapter %q is one of %q, which the worker does not list", m.ID, m.Parent)
	}
	base, err := a.resolveOne(workerID, kind, parent, all)
	if err != nil {
		return foundModel{}, fmt.Errorf("the LoRA adapter %q has the tokenizer of its base: %w", m.ID, err)
	}
	public, found, err := a.models.ResolveAdapter(workerID, m.ID, base.model)
	a.flagNames.saw(m.ID, public)
	if err != nil {
		return foundModel{}, err
	}
	context := m.ContextLength
	if context == 0 {
		context = base.context
	}
	return foundModel{public: public, own: m.ID, context: context, base: base.public, model: found}, nil
}

// baseOf is the model of which m is an adapter. Servers name it by its own name, by
// where its files lie, or in words of the adapter's author; one server has one base,
// under one or several names.
func baseOf(m engine.ModelInfo, all []engine.ModelInfo) (engine.ModelInfo, bool) {
	for _, is := range []func(b engine.ModelInfo) bool{
		func(b engine.ModelInfo) bool { return b.ID == m.Parent },
		func(b engine.ModelInfo) bool { return b.Path == m.Parent },
		func(engine.ModelInfo) bool { return true },
	} {
		if i := slices.IndexFunc(all, func(b engine.ModelInfo) bool { return b.Parent == "" && is(b) }); i >= 0 {
			return all[i], true
		}
	}
	return engine.ModelInfo{}, false
}
