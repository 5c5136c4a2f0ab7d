package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"baton/engine"
	"baton/openai"
	"baton/tracing"
)

// What is told of a request when it is over, besides the metrics: the access log
// and the trace, both off by default, and how each attempt of a failed request
// went. Names and numbers, nothing of prompts or answers.

// record tells the access log and the tracer of the end of a request, with what
// the client was told, or would have been if its stream had not begun. outcome
// is "ok", the kind of a failure, or the code of a refusal.
func (c *call) record(status int, outcome string) {
	cfg := &c.server.cfg
	if !cfg.AccessLog && cfg.Tracer == nil {
		return
	}
	end := time.Now()
	if cfg.AccessLog {
		c.server.log.Info("request", c.accessArgs(status, outcome, end)...)
	}
	if cfg.Tracer != nil && !c.stranger {
		cfg.Tracer.Record(c.traced(status, outcome, end))
	}
}

func (c *call) accessArgs(status int, outcome string, end time.Time) []any {
	host, _, err := net.SplitHostPort(c.from.remote)
	if err != nil {
		host = c.from.remote // not of a TCP connection
	}
	args := []any{slog.String("request_id", c.ids.own)}
	if c.ids.shown != c.ids.own {
		args = append(args, slog.String("client_request_id", c.ids.shown))
	}
	model, promptTokens := c.asked()
	args = append(args,
		slog.String("model", model),
		slog.String("endpoint", c.ep.label),
		slog.Int("status", status),
		slog.String("outcome", outcome),
		slog.Bool("stream", c.requestType() == "stream"),
		slog.Int("prompt_tokens", promptTokens),
		slog.Int("completion_tokens", c.completionTokens()),
		slog.String("finish", c.finishes()),
		slog.Int("attempts", c.attempts()),
		slog.Int("migrations", c.migrations()))
	if c.toFirstToken > 0 {
		args = append(args, slog.Float64("ttft_ms", milliseconds(c.toFirstToken)))
	}
	return append(args,
		slog.Float64("duration_ms", milliseconds(end.Sub(c.start))),
		slog.String("remote", host))
}

func (c *call) traced(status int, outcome string, end time.Time) *tracing.Request {
	model, promptTokens := c.asked()
	r := &tracing.Request{
		Header:           c.from.header,
		Method:           c.from.method,
		Route:            c.from.route,
		ID:               c.ids.own,
		Model:            model,
		Stream:           c.requestType() == "stream",
		Status:           status,
		Outcome:          outcome,
		Finish:           c.finishes(),
		PromptTokens:     promptTokens,
		CompletionTokens: c.completionTokens(),
		ToFirstToken:     c.toFirstToken,
		Start:            c.start,
		End:              end,
		Choices:          make([]*engine.Trace, len(c.choices)),
	}
	if c.ids.shown != c.ids.own {
		r.ClientID = c.ids.shown
	}
	for i, choice := range c.choices {
		r.Choices[i] = &choice.trace
	}
	return r
}

// asked is what a prepared request asks; a refused one has no model.
func (c *call) asked() (model string, promptTokens int) {
	if c.prepared == nil {
		return "", 0
	}
	return c.prepared.Model, c.prepared.PromptTokens
}

// refusalCode is what a refusal is called in records.
func refusalCode(e *openai.Error) string {
	if e.Code == "" {
		return e.Type
	}
	return e.Code
}

// finishes is how the choices finished, each word once, in their order; "" if
// none did.
func (c *call) finishes() string {
	var words []string
	for _, choice := range c.choices {
		word := string(choice.delta.FinishReason)
		if word != "" && !strings.Contains(strings.Join(words, ","), word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, ",")
}

// maxRecordedAttempts bounds the list of attempts in one record of the log. The
// newest are kept; how many there were is said beside it.
const maxRecordedAttempts = 32

// An attemptRecord is an attempt as the log shows it: no engine's own words,
// which may quote a prompt.
type attemptRecord struct {
	ID         string  `json:"id"`
	Worker     string  `json:"worker"`
	Tokens     int     `json:"tokens"`
	Reason     string  `json:"reason"` // of its end
	Status     int     `json:"status,omitempty"`
	DurationMS float64 `json:"duration_ms"`
	Migration  string  `json:"migration,omitempty"`
	Carried    int     `json:"carried,omitempty"`
	GapMS      float64 `json:"gap_ms,omitempty"`
}

// attemptRecords is a list of JSON objects in a log of JSON, and a line to read
// in a log of text.
type attemptRecords []attemptRecord

func (c *call) attemptRecords() attemptRecords {
	var list attemptRecords
	for _, choice := range c.choices {
		for i := range choice.trace.Attempts {
			a := &choice.trace.Attempts[i]
			r := attemptRecord{
				ID: a.ID, Worker: a.WorkerID, Tokens: a.Tokens, Reason: tracing.Outcome(a),
				Migration: string(a.Migration), Carried: a.Carried, GapMS: milliseconds(a.Gap),
			}
			if a.Err != nil {
				r.Status = a.Err.Status
			}
			if !a.End.IsZero() {
				r.DurationMS = milliseconds(a.End.Sub(a.Start))
			}
			list = append(list, r)
		}
	}
	return list[max(len(list)-maxRecordedAttempts, 0):]
}

// MarshalJSON implements json.Marshaler, which slog would otherwise pass over in
// favour of the text.
func (l attemptRecords) MarshalJSON() ([]byte, error) { return json.Marshal([]attemptRecord(l)) }

// MarshalText implements encoding.TextMarshaler.
func (l attemptRecords) MarshalText() ([]byte, error) {
	var b []byte
	for i, a := range l {
		if i > 0 {
			b = append(b, "; "...)
		}
		b = fmt.Appendf(b, "%s on %s: %s", a.ID, a.Worker, a.Reason)
		if a.Status != 0 {
			b = fmt.Appendf(b, " (%d)", a.Status)
		}
		b = fmt.Appendf(b, " after %d tokens and %v ms", a.Tokens, a.DurationMS)
		if a.Migration != "" {
			b = fmt.Appendf(b, ", %s, carried %d, gap %v ms", a.Migration, a.Carried, a.GapMS)
		}
	}
	return b, nil
}
