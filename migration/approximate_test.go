package migration

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"baton/engine"
)

// A mixed engine is a fleet whose n-th attempt runs on an engine with the n-th
// parameters. An attempt delivers so many tokens and is lost, the last one ends.
type mixed struct {
	parameters []engine.Parameters
	tokens     []int
	asked      int
}

func (m *mixed) Generate(_ context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		n := m.asked
		m.asked++
		attempt := req.Trace.Begin(req.ID, string(rune('a'+n)))
		attempt.Parameters = m.parameters[n]
		for range m.tokens[n] {
			attempt.Tokens++
			if !yield(engine.Delta{TokenIDs: []engine.TokenID{1}}, nil) {
				return
			}
		}
		if n < len(m.tokens)-1 {
			yield(engine.Delta{}, &engine.Error{Kind: engine.Disconnected, WorkerID: attempt.WorkerID})
			return
		}
		yield(engine.Delta{FinishReason: engine.FinishStop}, nil)
	}
}

// The record of a move names the parameters that do not go on exactly. What counts
// is where tokens were generated, not a worker that died before its first.
func TestRecordNamesWhatIsApproximate(t *testing.T) {
	exact := engine.Parameters{engine.PresencePenalty: {Meaning: "all"}, engine.Seed: {Meaning: "x"}}
	other := engine.Parameters{engine.PresencePenalty: {Meaning: "output"}, engine.Seed: {Fidelity: engine.Redrawn, Meaning: "x"}}
	for _, tc := range []struct {
		name       string
		parameters []engine.Parameters
		tokens     []int
		want       []string // the value in each record; "" = it has none
	}{
		{"one engine", []engine.Parameters{exact, exact}, []int{2, 1}, []string{""}},
		{"another engine", []engine.Parameters{exact, other}, []int{2, 1}, []string{"presence_penalty,seed"}},
		{"not without a token", []engine.Parameters{exact, other}, []int{0, 3}, []string{""}},
		{"past a worker that delivered nothing", []engine.Parameters{exact, other, other}, []int{2, 0, 1}, []string{"presence_penalty,seed", "presence_penalty,seed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log strings.Builder
			op := New(&mixed{parameters: tc.parameters, tokens: tc.tokens}, Config{Limit: 3}, slog.New(slog.NewTextHandler(&log, nil)), newRegistry(), "test")
			req := request(4)
			seed := int64(7)
			req.Sampling = engine.SamplingParams{Temperature: 1, TopP: 1, RepetitionPenalty: 1, PresencePenalty: 0.5, Seed: &seed}
			if got := collect(op.Generate(t.Context(), req)); got.err != nil {
				t.Fatal(got.err)
			}
			var got []string
			for line := range strings.Lines(log.String()) {
				_, rest, _ := strings.Cut(line, "approximate=")
				value, _, _ := strings.Cut(rest, " ")
				got = append(got, strings.TrimSpace(value))
			}
			if strings.Join(got, " ") != strings.Join(tc.want, " ") {
				t.Errorf("got %q, want %q in\n%s", got, tc.want, log.String())
			}
		})
	}
}
