package enginetest

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"baton/engine"
)

// parameters checks that the client's table of parameters is true as far as what
// it sends shows it:
//
//   - a parameter is refused exactly if it is called unsupported;
//   - any other one reaches the worker, or is done by the client;
//   - with an exact one a continuation differs from the first attempt in nothing
//     but the ids, what is left of the budget, and the request's own id;
//   - with a compensated one it differs in something else too.
//
// What the engine then makes of it is for tests with the engine.
func (s suite) parameters(t *testing.T) {
	for _, name := range engine.AllParameters {
		t.Run(string(name), func(t *testing.T) {
			inBubble(t, s.newClient, Reply{Pieces: []string{s.whole()}}, func(w *worker) {
				w.checkParameter(name)
			})
		})
	}
}

func (w *worker) checkParameter(name engine.Parameter) {
	first, next := using(name), continued(using(name))
	fidelity := w.client.Parameters()[name].Fidelity
	want := ""
	if fidelity == engine.Unsupported {
		want = string(name)
	}
	if got := w.client.Unsupported(first); got != want {
		w.Fatalf("it is %s to the table, and a request with it lacks %q", fidelity, got)
	}
	if fidelity == engine.Unsupported {
		return
	}
	without := NewRequest()
	if name != engine.Temperature {
		without.Sampling.Temperature = first.Sampling.Temperature // some say nothing of a greedy answer
	}
	neutral, ids := w.bodyOf(without)
	if !slices.Equal(ids, scriptIDs) {
		w.Fatalf("a neutral request got %v", ids)
	}
	body, ids := w.bodyOf(first)
	if len(differences("", neutral, body)) == 0 && slices.Equal(ids, scriptIDs) {
		w.Errorf("the parameter changes neither what is sent nor what is delivered")
	}
	again, _ := w.bodyOf(next)
	var unexplained []string
	for _, d := range differences("", body, again) {
		if !d.isOf(first, next) {
			unexplained = append(unexplained, d.String())
		}
	}
	switch {
	case fidelity == engine.Exact && len(unexplained) > 0:
		w.Errorf("exact, but a continuation differs in %v", unexplained)
	case fidelity == engine.Compensated && len(unexplained) == 0:
		w.Errorf("compensated, but a continuation is sent as if it were not one")
	}
}

// using is NewRequest with one parameter.
func using(name engine.Parameter) *engine.Request {
	req := NewRequest()
	s := &req.Sampling
	switch name {
	case engine.Temperature:
		s.Temperature = 0.5
	case engine.TopP:
		s.Temperature, s.TopP = 1, 0.5
	case engine.TopK:
		s.Temperature, s.TopK = 1, 7
	case engine.MinP:
		s.Temperature, s.MinP = 1, 0.25
	case engine.LogitBias:
		s.LogitBias = map[engine.TokenID]float64{7: 3}
	case engine.RepetitionPenalty:
		s.RepetitionPenalty = 1.25
	case engine.PresencePenalty:
		s.PresencePenalty = 0.5
	case engine.FrequencyPenalty:
		s.FrequencyPenalty = 0.5
	case engine.Seed:
		seed := int64(11)
		s.Temperature, s.Seed = 1, &seed
	case engine.MaxTokens:
		req.Stop.MaxTokens = 13
	case engine.MinTokens:
		req.Stop.MinTokens = 9
	case engine.StopTokenIDs:
		req.Stop.TokenIDs = []engine.TokenID{12}
	case engine.IgnoreEOS:
		req.Stop.IgnoreEOS = true
	case engine.Logprobs:
		req.Output = engine.OutputOptions{Logprobs: true, TopLogprobs: 2}
	case engine.Priority:
		req.Priority = 3
	case engine.CacheSalt:
		req.CacheSalt = "salt"
	case engine.JSONSchema:
		req.Constraint = &engine.Constraint{JSONSchema: json.RawMessage(`{"type":"integer"}`)}
	case engine.JSONObject:
		req.Constraint = &engine.Constraint{JSONObject: true}
	case engine.Regex:
		req.Constraint = &engine.Constraint{Regex: "[0-9]+"}
	case engine.Choice:
		req.Constraint = &engine.Constraint{Choice: []string{"yes", "no"}}
	case engine.Grammar:
		req.Constraint = &engine.Constraint{Grammar: `root ::= "yes"`}
	case engine.StructuralTag:
		req.Constraint = &engine.Constraint{StructuralTag: json.RawMessage(`{"type":"structural_tag","structures":[],"triggers":[]}`)}
	}
	return req
}

// continued is req moved after two tokens.
func continued(req *engine.Request) *engine.Request {
	next := *req
	next.ID = "req-7-m01-r000"
	next.TokenIDs = append(slices.Clone(req.TokenIDs), 21, 22)
	next.Carried = 2
	next.Stop.MaxTokens -= 2
	next.Stop.MinTokens = max(0, next.Stop.MinTokens-2)
	return &next
}

// bodyOf returns the body of the first request that the client makes of req, and
// the ids that come of it. The fake server's answer does not follow req, so that
// how the generation ends is not looked at.
func (w *worker) bodyOf(req *engine.Request) (body any, ids []engine.TokenID) {
	w.mu.Lock()
	before := len(w.requests)
	w.mu.Unlock()
	for delta, err := range w.client.Generate(w.Context(), req) {
		if err != nil {
			break
		}
		ids = append(ids, delta.TokenIDs...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.requests) == before {
		w.Fatal("the worker was not asked")
	}
	if err := json.Unmarshal(w.requests[before].body, &body); err != nil {
		w.Fatal(err)
	}
	return body, ids
}

// A difference is a place at which two JSON bodies have different values.
type difference struct {
	path   string
	before any
	after  any
}

func (d difference) String() string { return fmt.Sprintf("%s: %v, then %v", d.path, d.before, d.after) }

// isOf reports whether the difference is one between the two requests themselves.
func (d difference) isOf(first, next *engine.Request) bool {
	for _, pair := range [][2]any{
		{first.TokenIDs, next.TokenIDs}, {first.ID, next.ID},
		{first.Stop.MaxTokens, next.Stop.MaxTokens}, {first.Stop.MinTokens, next.Stop.MinTokens},
	} {
		if reflect.DeepEqual(d.before, asJSON(pair[0])) && reflect.DeepEqual(d.after, asJSON(pair[1])) {
			return true
		}
	}
	return false
}

// asJSON is v as a decoded body holds it.
func asJSON(v any) (decoded any) {
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &decoded)
	}
	if err != nil {
		return math.NaN() // equal to nothing
	}
	return decoded
}

// differences compares two decoded bodies. Objects are compared by their fields,
// everything else as a whole.
func differences(path string, a, b any) []difference {
	x, isObject := a.(map[string]any)
	y, both := b.(map[string]any)
	if !isObject || !both {
		if reflect.DeepEqual(a, b) {
			return nil
		}
		return []difference{{path, a, b}}
	}
	var all []difference
	for name := range x {
		all = append(all, differences(path+"/"+name, x[name], y[name])...)
	}
	for name := range y {
		if _, there := x[name]; !there {
			all = append(all, difference{path + "/" + name, nil, y[name]})
		}
	}
	return all
}
