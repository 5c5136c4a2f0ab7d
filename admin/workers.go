package admin

import (
	"net/http"

	"baton/engine"
	"baton/router"
)

// A Worker is an element of the reply to GET /admin/workers.
type Worker struct {
	ID       string   `json:"id"`
	URL      string   `json:"url"`
	Kind     string   `json:"kind"` // of engine; "" until it is known
	Models   []string `json:"models"`
	State    string   `json:"state"`     // starting, ready, suspect, inhibited, draining or removing
	Reason   string   `json:"reason"`    // why it is not asked now; "" if it is
	InFlight int      `json:"in_flight"` // requests running there
}

// A Group is one model and the workers between which its answers move.
type Group struct {
	Model string `json:"model"`
	Base  string `json:"base,omitempty"` // the model that it is a LoRA adapter of

	// The smallest and the largest context of its workers, in tokens; 0 = unknown.
	// What is longer than a worker's context does not move there.
	SmallestContext int `json:"smallest_context"`
	LargestContext  int `json:"largest_context"`

	// DifferentParameters are those that its workers understand differently: an
	// answer that uses one may not move exactly. PartialParameters are those that
	// only some of its workers have: a request that uses one moves between these.
	DifferentParameters []string `json:"different_parameters"`
	PartialParameters   []string `json:"partial_parameters"`

	Workers []Member `json:"workers"`
}

// A Member is a worker of a Group.
type Member struct {
	ID            string `json:"id"`
	Kind          string `json:"kind"`
	Name          string `json:"name"`           // what the worker calls the model
	ContextLength int    `json:"context_length"` // in tokens; 0 = unknown
}

// WorkersReply is the reply to GET /admin/workers.
type WorkersReply struct {
	Workers []Worker `json:"workers"`
	Groups  []Group  `json:"groups"`
	Hints   []Hint   `json:"hints"`
}

// A Hint names two models that have the same tokenizer and could be one, and the
// flags of serve that would make them one.
type Hint struct {
	Models []string `json:"models"`
	Flags  string   `json:"flags"`
}

func (a *Admin) listWorkers(w http.ResponseWriter, r *http.Request) {
	list := WorkersReply{Workers: []Worker{}, Groups: []Group{}, Hints: a.workers.Hints()}
	for _, s := range a.workers.Workers() {
		models := s.Models
		if models == nil {
			models = []string{}
		}
		list.Workers = append(list.Workers, Worker{
			ID: s.ID, URL: s.URL, Kind: s.Kind, Models: models, State: s.State, Reason: s.Reason, InFlight: s.InFlight,
		})
	}
	if list.Hints == nil {
		list.Hints = []Hint{}
	}
	for _, g := range a.workers.Groups() {
		list.Groups = append(list.Groups, groupOf(g))
	}
	reply(w, http.StatusOK, list)
}

func groupOf(g router.Group) Group {
	shown := Group{
		Model: g.Model, Base: g.Base,
		DifferentParameters: names(g.Differences()), PartialParameters: names(g.Partial()),
		Workers: []Member{},
	}
	shown.SmallestContext, shown.LargestContext = g.Contexts()
	for _, m := range g.Members {
		shown.Workers = append(shown.Workers, Member{m.WorkerID, m.Kind, m.Own, m.ContextLength})
	}
	return shown
}

func names(parameters []engine.Parameter) []string {
	words := make([]string, len(parameters))
	for i, p := range parameters {
		words[i] = string(p)
	}
	return words
}
