package tracing

import (
	"context"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"baton/engine"
)

// maxAttemptSpans bounds the spans below one request: one that waits for busy
// workers asks them again and again. The newest are kept.
const maxAttemptSpans = 128

// A Request is one request of the API that has ended.
type Request struct {
	Header           http.Header // traceparent and tracestate are read
	Method, Route    string
	ID, ClientID     string // ClientID is "" if the client gave none
	Model            string // "" = it was refused before that was known
	Stream           bool
	Status           int    // what the client was told, or would have been
	Outcome          string // "ok", the kind of a failure, or the code of a refusal
	Finish           string
	PromptTokens     int
	CompletionTokens int
	ToFirstToken     time.Duration // 0 = there was no token
	Start, End       time.Time
	Choices          []*engine.Trace
}

// Record makes the spans of a request. It keeps nothing of r. On a nil Tracer it
// does nothing.
func (t *Tracer) Record(r *Request) {
	if t == nil {
		return
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, r.Method+" "+r.Route, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(r.Start))
	defer span.End(trace.WithTimestamp(r.End))
	if !span.IsRecording() {
		return // sampled out
	}
	span.SetAttributes(r.attributes()...)
	if r.Status >= 500 {
		span.SetStatus(codes.Error, r.Outcome)
	}
	skip := -maxAttemptSpans
	for _, choice := range r.Choices {
		skip += len(choice.Attempts)
	}
	if skip > 0 {
		span.SetAttributes(attribute.Int("baton.attempts_not_shown", skip))
	}
	for i, choice := range r.Choices {
		for j := range choice.Attempts {
			if skip--; skip < 0 {
				t.attempt(ctx, &choice.Attempts[j], i, r.End)
			}
		}
	}
}

// attributes has the names of OpenTelemetry's conventions where there are some.
func (r *Request) attributes() []attribute.KeyValue {
	attempts, migrations := 0, 0
	for _, choice := range r.Choices {
		attempts += len(choice.Attempts)
		migrations += choice.Migrations()
	}
	a := []attribute.KeyValue{
		attribute.String("http.request.method", r.Method),
		attribute.String("http.route", r.Route),
		attribute.Int("http.response.status_code", r.Status),
		attribute.Int("gen_ai.usage.input_tokens", r.PromptTokens),
		attribute.Int("gen_ai.usage.output_tokens", r.CompletionTokens),
		attribute.String("baton.request_id", r.ID),
		attribute.Bool("baton.stream", r.Stream),
		attribute.String("baton.outcome", r.Outcome),
		attribute.Int("baton.attempts", attempts),
		attribute.Int("baton.migrations", migrations),
	}
	text := func(key, value string) {
		if value != "" {
			a = append(a, attribute.String(key, value))
		}
	}
	text("gen_ai.request.model", r.Model)
	text("baton.client_request_id", r.ClientID)
	text("baton.finish_reason", r.Finish)
	for _, choice := range r.Choices {
		if choice.NotMoved != "" {
			text("baton.not_moved", string(choice.NotMoved))
			break
		}
	}
	if r.Status >= 400 {
		text("error.type", r.Outcome)
	}
	if r.ToFirstToken > 0 {
		a = append(a, attribute.Float64("baton.time_to_first_token_ms", milliseconds(r.ToFirstToken)))
	}
	return a
}

// attempt makes the span of one try on one worker. One that never came to its
// books, because the process ended it, ends with the request.
func (t *Tracer) attempt(ctx context.Context, a *engine.Attempt, choice int, requestEnd time.Time) {
	end := a.End
	if end.IsZero() {
		end = requestEnd
	}
	attributes := []attribute.KeyValue{
		attribute.String("baton.worker", a.WorkerID),
		attribute.String("baton.attempt_id", a.ID),
		attribute.Int("baton.choice", choice),
		attribute.Int("baton.tokens", a.Tokens),
		attribute.String("baton.outcome", Outcome(a)),
	}
	if a.Migration != "" {
		attributes = append(attributes,
			attribute.String("baton.migration_type", string(a.Migration)),
			attribute.Int("baton.tokens_carried", a.Carried),
			attribute.Float64("baton.gap_ms", milliseconds(a.Gap)))
	}
	if a.Err != nil {
		attributes = append(attributes, attribute.String("error.type", a.Err.Kind.String()))
		if a.Err.Status != 0 {
			attributes = append(attributes, attribute.Int("http.response.status_code", a.Err.Status))
		}
	}
	_, span := t.tracer.Start(ctx, "attempt", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(a.Start), trace.WithAttributes(attributes...))
	if a.Err != nil && a.Err.Kind != engine.Cancelled {
		span.SetStatus(codes.Error, a.Err.Kind.String())
	}
	span.End(trace.WithTimestamp(end))
}

// Outcome is how an attempt ended: "ok", or the kind of its failure.
func Outcome(a *engine.Attempt) string {
	if a.Err == nil {
		return "ok"
	}
	return a.Err.Kind.String()
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
