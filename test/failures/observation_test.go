package failures

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"baton/test/harness"
)

const namespace = "test"

// An observation is all that a run shows.
type observation struct {
	answer *harness.Answer
	broken error // a rule of the stream that was broken

	start time.Time
	gap   time.Duration // the longest wait before a piece of text
	end   time.Duration // from the last piece, or the start, to the end
	took  time.Duration

	counted []string
	logged  []string
}

func readError(a *harness.Answer, body io.Reader) error {
	var envelope struct{ Error *harness.APIError }
	if err := json.NewDecoder(body).Decode(&envelope); err != nil || envelope.Error == nil {
		return fmt.Errorf("status %d without an error object (%v)", a.Status, err)
	}
	a.Error = envelope.Error
	return nil
}

// readWhole reads an answer that is one JSON object.
func readWhole(a *harness.Answer, body io.Reader) error {
	var reply struct {
		Choices []struct {
			Message struct{ Content string }
			Finish  string `json:"finish_reason"`
		}
		Usage *harness.Usage
	}
	if err := json.NewDecoder(body).Decode(&reply); err != nil || len(reply.Choices) != 1 || reply.Usage == nil {
		return fmt.Errorf("no whole answer (%v): %+v", err, reply)
	}
	a.Text, a.Finish, a.Usage, a.Done = reply.Choices[0].Message.Content, reply.Choices[0].Finish, reply.Usage, true
	return nil
}

// silence is the longest wait of the client.
func (o *observation) silence() time.Duration { return max(o.gap, o.end) }

// client says what the client got.
func (o *observation) client() string {
	switch a := o.answer; {
	case a == nil || o.broken != nil:
		return fmt.Sprintf("BROKEN: %v", o.broken)
	case a.Error == nil:
		return "complete, exact"
	case a.Status != 200 && a.Error.Code == "":
		return fmt.Sprintf("%d, the engine's own words", a.Status)
	case a.Status != 200:
		return fmt.Sprintf("%d `%s`", a.Status, a.Error.Code)
	case a.Text == "":
		return fmt.Sprintf("keep-alives, error event `%s`", a.Error.Code)
	default:
		return fmt.Sprintf("the beginning, error event `%s`", a.Error.Code)
	}
}

// counted lists the counters that rose.
func (s *stage) counted() []string {
	families, err := s.metrics.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	var list []string
	for _, f := range families {
		label := map[string]string{
			namespace + "_model_migration_total":         "migration_type",
			namespace + "_model_migration_refused_total": "reason",
			namespace + "_requests_total":                "error_type",
		}[f.GetName()]
		if label == "" {
			continue
		}
		name := strings.TrimPrefix(f.GetName(), namespace+"_")
		for _, m := range f.GetMetric() {
			n := m.GetCounter().GetValue()
			value := ""
			for _, l := range m.GetLabel() {
				if l.GetName() == label {
					value = l.GetValue()
				}
			}
			if n > 0 && value != "" {
				list = append(list, fmt.Sprintf("%s{%s} %v", strings.TrimSuffix(strings.TrimPrefix(name, "model_"), "_total"), value, n))
			}
		}
	}
	slices.Sort(list)
	return list
}

// A recorder keeps what is logged from Warn on: the message and the reason.
type recorder struct {
	mu    sync.Mutex // guards lines
	lines []string
}

func (r *recorder) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler               { return r }
func (r *recorder) WithGroup(string) slog.Handler                    { return r }

func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	line := record.Message
	record.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "reason", "kind", "not_moved":
			if a.Key == "kind" && record.Message == "request migrated" {
				break // that is in the counters
			}
			word, _, _ := strings.Cut(a.Value.String(), " ")
			line += ", " + a.Key + "=" + word
		}
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	return nil
}

func (r *recorder) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = nil
}

// story is what was logged, each line once. Its order is that of the alphabet:
// of what happens at the same moment either may be first.
func (r *recorder) story() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := slices.Clone(r.lines)
	slices.Sort(lines)
	return slices.Compact(lines)
}
