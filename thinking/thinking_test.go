package thinking

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"baton/engine"
)

const (
	open, end, final, eos = 90, 91, 92, 99
	budget                = 20
)

// A model answers each part with what is scripted for it, one token a delta.
type model struct {
	t     *testing.T
	parts []part
	asked []*engine.Request
}

// A part is one generation: its tokens, and how it ends.
type part struct {
	ids    []engine.TokenID
	finish engine.FinishReason
	err    error
	silent bool // it ends with neither
}

func (m *model) Generate(_ context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		n := len(m.asked)
		m.asked = append(m.asked, req)
		if n >= len(m.parts) {
			m.t.Fatalf("part %d was asked for: %+v", n, req)
		}
		p := m.parts[n]
		req.Trace.Begin(req.ID+"-m00-r000", fmt.Sprintf("w%d", n))
		for i, id := range p.ids {
			d := engine.Delta{TokenIDs: []engine.TokenID{id}}
			if i == len(p.ids)-1 && p.finish == engine.FinishLength {
				d.FinishReason = p.finish // with the last token; stops come behind it
			}
			if !yield(d, nil) || d.FinishReason != "" {
				return
			}
		}
		switch {
		case p.silent:
		case p.err != nil:
			yield(engine.Delta{}, p.err)
		default:
			yield(engine.Delta{FinishReason: p.finish}, nil)
		}
	}
}

func stops(ids ...engine.TokenID) part   { return part{ids: ids, finish: engine.FinishStop} }
func lengths(ids ...engine.TokenID) part { return part{ids: ids, finish: engine.FinishLength} }

func request(opens, ends []engine.TokenID) *engine.Request {
	return &engine.Request{
		ID: "r-000", TokenIDs: []engine.TokenID{1, 2}, Constraint: &engine.Constraint{JSONObject: true}, HoldBack: true,
		Stop:    engine.StopConditions{MaxTokens: budget, MinTokens: 4, TokenIDs: []engine.TokenID{7}, EOS: []engine.TokenID{eos}},
		Thought: &engine.Thought{Opens: opens, Ends: ends},
	}
}

// A got is what the consumer of an answer has seen.
type got struct {
	ids    []engine.TokenID
	finish engine.FinishReason
	err    string
}

func consume(s *Stage, req *engine.Request) got {
	var g got
	for d, err := range s.Generate(context.Background(), req) {
		if err != nil {
			g.err = err.Error()
			continue
		}
		g.ids = append(g.ids, d.TokenIDs...)
		g.finish = d.FinishReason
	}
	return g
}

func TestParts(t *testing.T) {
	broken := &engine.Error{Kind: engine.Disconnected, Err: errors.New("lost")}
	ids := func(ids ...engine.TokenID) []engine.TokenID { return ids }
	for _, test := range []struct {
		name        string
		opens, ends []engine.TokenID
		parts       []part
		want        got
		asked       int // of which the last one is constrained, if constrained
		constrained bool
	}{
		{"the prompt opened it", nil, ids(end), []part{stops(10, 11, end), stops(20, eos)}, got{ids: ids(10, 11, end, 20, eos), finish: "stop"}, 2, true},
		{"the model opens it", ids(open), ids(end), []part{lengths(open), stops(10, end), stops(20, eos)}, got{ids: ids(open, 10, end, 20, eos), finish: "stop"}, 3, true},
		{"the model opens none", ids(open), ids(end), []part{lengths(33), stops(20, eos)}, got{ids: ids(20, eos), finish: "stop"}, 2, true},
		{"the model would have ended", ids(open), ids(end), []part{stops(eos), stops(20, eos)}, got{ids: ids(20, eos), finish: "stop"}, 2, true},
		{"messages", nil, ids(80, final, end), []part{stops(80, 81, end), stops(10, 80, final, end), stops(20, eos)},
			got{ids: ids(80, 81, end, 10, 80, final, end, 20, eos), finish: "stop"}, 3, true},
		{"a message of JSON", nil, ids(80, final, end), []part{stops(10, 80, final, 81, 82, end), stops(20, eos)},
			got{ids: ids(10, 80, final, 81, 82, end, 20, eos), finish: "stop"}, 2, true},
		{"another message, of the last one's name", nil, ids(80, final, end), []part{stops(final, 80, 81, final, end), stops(80, 82, eos)},
			got{ids: ids(final, 80, 81, final, end, 80, 82, eos), finish: "stop"}, 2, false},
		{"it ends in the reasoning", nil, ids(end), []part{stops(10, eos)}, got{ids: ids(10, eos), finish: "stop"}, 1, false},
		{"a call between messages ends it", nil, ids(80, final, end), []part{stops(80, 81, end), stops(10, eos)}, got{ids: ids(80, 81, end, 10, eos), finish: "stop"}, 2, false},
		{"a stop id of the client", nil, ids(end), []part{stops(10, 7)}, got{ids: ids(10, 7), finish: "stop"}, 1, false},
		{"nothing more comes", nil, ids(80, final, end), []part{stops(80, 81, end), stops()}, got{ids: ids(80, 81, end), finish: "stop"}, 2, false},
		{"the budget ends it", nil, ids(end), []part{lengths(10, 11)}, got{ids: ids(10, 11), finish: "length"}, 1, false},
		{"the thought used up the budget", nil, ids(end), []part{stops(append(make([]engine.TokenID, budget-1), end)...)},
			got{ids: append(make([]engine.TokenID, budget-1), end), finish: "length"}, 1, false},
		{"it is lost", nil, ids(end), []part{{ids: ids(10), err: broken}}, got{ids: ids(10), err: broken.Error()}, 1, false},
		{"the first look is lost", ids(open), ids(end), []part{{err: broken}}, got{err: broken.Error()}, 1, false},
		{"it ends without a word", nil, ids(end), []part{{ids: ids(10), silent: true}}, got{ids: ids(10), err: "internal: thinking: a stream ended without a finish reason or an error"}, 1, false},
	} {
		m := &model{t: t, parts: test.parts}
		g := consume(New(m), request(test.opens, test.ends))
		if test.want.err != "" && g.err != "" {
			test.want.err = g.err // the words are the error's own; that there is one counts
		}
		if !reflect.DeepEqual(g, test.want) || len(m.asked) != test.asked {
			t.Errorf("%s: %+v after %d parts, want %+v after %d", test.name, g, len(m.asked), test.want, test.asked)
			continue
		}
		for i, r := range m.asked {
			if last := i == len(m.asked)-1; (r.Constraint != nil) != (last && test.constrained) || r.HoldBack != (r.Constraint != nil) || r.Thought != nil {
				t.Errorf("%s: part %d: %+v", test.name, i, r)
			}
		}
	}
}

// TestPartsGoOn: each part begins where the one before ended, with the rest of the limits.
func TestPartsGoOn(t *testing.T) {
	m := &model{t: t, parts: []part{lengths(open), stops(10, 11, end), stops(20, eos)}}
	req := request([]engine.TokenID{open}, []engine.TokenID{end})
	req.Carried = 1
	consume(New(m), req)
	type want struct {
		id, prefer           string
		ids, stopIDs         []engine.TokenID
		carried, most, least int
	}
	for i, w := range []want{
		{"r-000", "", []engine.TokenID{1, 2}, []engine.TokenID{7}, 1, 1, 0},
		{"r-000p01", "w0", []engine.TokenID{1, 2, open}, []engine.TokenID{7, end}, 2, budget - 1, 0},
		{"r-000p02", "w1", []engine.TokenID{1, 2, open, 10, 11, end}, []engine.TokenID{7}, 5, budget - 4, 0},
	} {
		r := m.asked[i]
		if g := (want{r.ID, r.Prefer, r.TokenIDs, r.Stop.TokenIDs, r.Carried, r.Stop.MaxTokens, r.Stop.MinTokens}); !reflect.DeepEqual(g, w) {
			t.Errorf("part %d: %+v, want %+v", i, g, w)
		}
	}
	if !slices.Equal(req.TokenIDs, []engine.TokenID{1, 2}) || !slices.Equal(req.Stop.TokenIDs, []engine.TokenID{7}) || req.Stop.MaxTokens != budget {
		t.Errorf("the request was changed: %+v", req)
	}
}

// TestContextIsFull: no worker is asked for a token that has no place.
func TestContextIsFull(t *testing.T) {
	m := &model{t: t, parts: []part{stops(10, end)}}
	req := request(nil, []engine.TokenID{end})
	req.ContextLength = 4
	if g := consume(New(m), req); g.finish != engine.FinishLength || len(m.asked) != 1 {
		t.Errorf("%+v after %d parts", g, len(m.asked))
	}
}

// TestConsumerLeaves: in each part, and nothing more is asked for.
func TestConsumerLeaves(t *testing.T) {
	for after, asked := range []int{1: 1, 2: 2, 3: 2, 5: 3} {
		if asked == 0 {
			continue
		}
		m := &model{t: t, parts: []part{lengths(open), stops(10, end), stops(20, eos)}}
		n := 0
		for range New(m).Generate(t.Context(), request([]engine.TokenID{open}, []engine.TokenID{end})) {
			if n++; n == after {
				break
			}
		}
		if n != after || len(m.asked) != asked {
			t.Errorf("left after %d deltas: %d parts were asked for, want %d", n, len(m.asked), asked)
		}
	}
}

// TestOthersPass: without a constraint or a thought nothing is changed.
func TestOthersPass(t *testing.T) {
	for _, change := range []func(*engine.Request){
		func(r *engine.Request) { r.Constraint = nil },
		func(r *engine.Request) { r.Thought = nil },
	} {
		m := &model{t: t, parts: []part{stops(1, eos)}}
		req := request(nil, []engine.TokenID{end})
		change(req)
		if consume(New(m), req); len(m.asked) != 1 || m.asked[0] != req {
			t.Errorf("%+v", m.asked)
		}
	}
}

// TestFailedWorkersAreAvoided: also by the parts that follow, but not those that were
// only busy.
func TestFailedWorkersAreAvoided(t *testing.T) {
	m := &model{t: t, parts: []part{stops(10, end), stops(20, eos)}}
	req := request(nil, []engine.TokenID{end})
	req.Avoid = []string{"z"}
	req.Trace = &engine.Trace{Attempts: []engine.Attempt{
		{WorkerID: "busy", Err: &engine.Error{Kind: engine.Overloaded}},
		{WorkerID: "lost", Err: &engine.Error{Kind: engine.Disconnected}, Tokens: 3},
		{WorkerID: "lost", Err: &engine.Error{Kind: engine.CannotConnect}},
	}}
	consume(New(m), req)
	if got := m.asked[1].Avoid; !slices.Equal(got, []string{"z", "lost"}) || m.asked[1].Prefer != "w0" {
		t.Errorf("avoided %v, preferred %s", got, m.asked[1].Prefer)
	}
}
