package router

import (
	"slices"
	"strings"

	"baton/engine"
)

// A Group is the workers of one model: the answers of that model move between
// them and nowhere else.
type Group struct {
	Model   string
	Base    string // the model that it is a LoRA adapter of; "" = none
	Members []Member
}

// A Member is a worker of a Group.
type Member struct {
	WorkerID      string
	Kind          string // the engine's name
	Own           string // what the worker calls the model
	ContextLength int    // in tokens; 0 = unknown
	Parameters    engine.Parameters
}

// Groups returns the groups of the attached workers, by the names of their models.
func (r *Router) Groups() []Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	byModel := make(map[string]*Group)
	for _, w := range r.workers {
		if w.up == nil || w.removed {
			continue
		}
		kind, parameters := w.up.Client.Kind(), w.up.Client.Parameters()
		for _, m := range w.up.Models {
			g := byModel[m.Name]
			if g == nil {
				g = &Group{Model: m.Name, Base: m.Base}
				byModel[m.Name] = g
			}
			g.Members = append(g.Members, Member{w.spec.ID, kind, m.Own, m.ContextLength, parameters})
		}
	}
	all := make([]Group, 0, len(byModel))
	for _, g := range byModel {
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b Group) int { return strings.Compare(a.Model, b.Model) })
	return all
}

// Contexts returns the smallest and the largest context among the members, in
// tokens. Those that are not known count as none; 0 = no one's is known.
func (g *Group) Contexts() (smallest, largest int) {
	for _, m := range g.Members {
		if m.ContextLength == 0 {
			continue
		}
		if smallest == 0 {
			smallest = m.ContextLength
		}
		smallest, largest = min(smallest, m.ContextLength), max(largest, m.ContextLength)
	}
	return smallest, largest
}

// Differences lists the parameters that not all members understand alike: an
// answer that uses one of them may not move exactly.
func (g *Group) Differences() []engine.Parameter {
	return g.parameters(func(name engine.Parameter) bool {
		var first *engine.Support
		for _, m := range g.Members {
			s := m.Parameters[name]
			switch {
			case s.Fidelity == engine.Unsupported:
			case first == nil:
				first = &s
			case s.Meaning != first.Meaning:
				return true
			}
		}
		return false
	})
}

// Partial lists the parameters that some members have and others have not: a
// request that uses one of them moves between the former only.
func (g *Group) Partial() []engine.Parameter {
	return g.parameters(func(name engine.Parameter) bool {
		lacking := 0
		for _, m := range g.Members {
			if m.Parameters[name].Fidelity == engine.Unsupported {
				lacking++
			}
		}
		return lacking > 0 && lacking < len(g.Members)
	})
}

func (g *Group) parameters(is func(engine.Parameter) bool) []engine.Parameter {
	return slices.DeleteFunc(slices.Clone(engine.AllParameters), func(name engine.Parameter) bool { return !is(name) })
}

// Kinds lists the engines of the members, each once, in order.
func (g *Group) Kinds() []string {
	var kinds []string
	for _, m := range g.Members {
		kinds = append(kinds, m.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}
