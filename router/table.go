package router

import (
	"fmt"
	"slices"
	"time"

	"baton/engine"
)

// A table says which worker serves what. It is immutable; attaching a worker
// makes a new one.
type table struct {
	models map[string]*served // by public name
}

// served is one model of a table.
type served struct {
	members       []member // in the order of the workers
	contextLength int      // the largest among the members; 0 = unknown
	since         time.Time
}

// A member is a worker as the server of one model.
type member struct {
	w             *worker
	client        engine.Client
	own           string // what the worker calls the model
	contextLength int    // 0 = unknown
}

// buildTable makes the table of the workers that are attached. Models that old
// had already keep their date. r.mu is held.
func buildTable(old *table, workers []*worker, now time.Time) *table {
	t := &table{models: make(map[string]*served)}
	for _, w := range workers {
		if w.up == nil {
			continue
		}
		for _, m := range w.up.Models {
			s := t.models[m.Name]
			if s == nil {
				s = &served{since: now}
				if old != nil && old.models[m.Name] != nil {
					s.since = old.models[m.Name].since
				}
				t.models[m.Name] = s
			}
			s.members = append(s.members, member{w, w.up.Client, m.Own, m.ContextLength})
			s.contextLength = max(s.contextLength, m.ContextLength)
		}
	}
	return t
}

// What the API calls the two ways in which no worker can do what is asked for.
const (
	codeUnsupported = "unsupported_parameter"
	codeTooLong     = "context_length_exceeded"
)

// lacking says to a client what no worker of req's model can do: a parameter, or a
// keyword of the schema that it sent.
func lacking(req *engine.Request, what string) string {
	switch {
	case req.Constraint != nil && slices.Contains(req.Constraint.Keywords, what):
		return fmt.Sprintf("The keyword '%s' in the JSON schema is not supported: no worker of the model '%s' enforces it.", what, req.Model)
	case req.Constraint != nil && what == string(engine.MinTokens):
		return fmt.Sprintf("'%s' is not supported together with structured output: no worker of the model '%s' has both.", what, req.Model)
	}
	return fmt.Sprintf("'%s' is not supported: no worker of the model '%s' has it.", what, req.Model)
}

// capable returns the members of req's model that can do what it asks for. If
// the model has members and none can, the error is for the client.
func (t *table) capable(req *engine.Request) ([]member, *engine.Error) {
	s := t.models[req.Model]
	if s == nil {
		return nil, nil
	}
	need := len(req.TokenIDs) + 1 // a worker is never asked for zero tokens
	able, largest, unsupported := 0, 0, ""
	var fit []member
	for _, m := range s.members {
		if param := m.client.Unsupported(req); param != "" {
			if unsupported == "" {
				unsupported = param
			}
			continue
		}
		able++
		if m.contextLength == 0 || m.contextLength >= need {
			fit = append(fit, m)
		}
		largest = max(largest, m.contextLength)
	}
	switch {
	case able == 0:
		return nil, &engine.Error{
			Kind: engine.InvalidRequest, Status: 400, Param: unsupported, Code: codeUnsupported,
			Message: lacking(req, unsupported),
		}
	case len(fit) == 0:
		return nil, &engine.Error{
			Kind: engine.InvalidRequest, Status: 400, Code: codeTooLong,
			Message: fmt.Sprintf("The request has %d tokens, which leaves no room for an answer: the context of the model '%s' is %d tokens.",
				len(req.TokenIDs), req.Model, largest),
		}
	}
	return fit, nil
}
