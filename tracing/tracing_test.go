package tracing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"baton/engine"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// moved is a request that lost a worker after three tokens and finished on the
// next one.
func moved() *Request {
	lost := &engine.Error{Kind: engine.Disconnected, WorkerID: "a:1", Err: errors.New("a secret of the engine")}
	return &Request{
		Header: http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}},
		Method: "POST", Route: "/v1/chat/completions", ID: "chatcmpl-1", ClientID: "mine", Model: "m", Stream: true,
		Status: 200, Outcome: "ok", Finish: "stop", PromptTokens: 9, CompletionTokens: 5,
		ToFirstToken: 20 * time.Millisecond, Start: start, End: start.Add(time.Second),
		Choices: []*engine.Trace{{Attempts: []engine.Attempt{
			{ID: "chatcmpl-1-000-m00-r000", WorkerID: "a:1", Start: start.Add(time.Millisecond), End: start.Add(400 * time.Millisecond), Tokens: 3, Err: lost},
			{ID: "chatcmpl-1-000-m01-r000", WorkerID: "b:1", Start: start.Add(401 * time.Millisecond), End: start.Add(999 * time.Millisecond), Tokens: 2,
				Migration: engine.OngoingRequest, Carried: 3, Gap: 1500 * time.Microsecond},
		}}},
	}
}

// spansOf records r and returns the spans, the request's last.
func spansOf(t *testing.T, r *Request, opts ...sdk.TracerProviderOption) tracetest.SpanStubs {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(append(opts, sdk.WithSyncer(exporter))...)
	(&Tracer{provider: provider, tracer: provider.Tracer("baton")}).Record(r)
	return exporter.GetSpans()
}

func attributesOf(s tracetest.SpanStub) map[attribute.Key]string {
	m := make(map[attribute.Key]string)
	for _, kv := range s.Attributes {
		m[kv.Key] = kv.Value.String()
	}
	return m
}

func mustHave(t *testing.T, s tracetest.SpanStub, want map[attribute.Key]string) {
	t.Helper()
	got := attributesOf(s)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("span %q: %s is %q, want %q", s.Name, key, got[key], value)
		}
	}
}

func TestMovedRequest(t *testing.T) {
	spans := spansOf(t, moved())
	if len(spans) != 3 {
		t.Fatalf("%d spans", len(spans))
	}
	first, second, request := spans[0], spans[1], spans[2]
	if id := request.Parent.SpanID().String(); id != "b7ad6b7169203331" || !request.Parent.IsRemote() {
		t.Errorf("the request's parent is %s", id)
	}
	for _, s := range spans {
		if id := s.SpanContext.TraceID().String(); id != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s: trace %s", s.Name, id)
		}
	}
	if request.Name != "POST /v1/chat/completions" || request.SpanKind != trace.SpanKindServer || !request.StartTime.Equal(start) ||
		!request.EndTime.Equal(start.Add(time.Second)) || request.Status.Code != codes.Unset {
		t.Errorf("request %+v", request)
	}
	mustHave(t, request, map[attribute.Key]string{
		"http.response.status_code": "200", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": "9", "gen_ai.usage.output_tokens": "5",
		"baton.request_id": "chatcmpl-1", "baton.client_request_id": "mine", "baton.attempts": "2", "baton.migrations": "1",
		"baton.outcome": "ok", "baton.finish_reason": "stop", "baton.stream": "true", "baton.time_to_first_token_ms": "20", "error.type": "",
	})
	for _, s := range []tracetest.SpanStub{first, second} {
		if s.Name != "attempt" || s.SpanKind != trace.SpanKindClient || s.Parent.SpanID() != request.SpanContext.SpanID() {
			t.Errorf("attempt %+v", s)
		}
	}
	mustHave(t, first, map[attribute.Key]string{
		"baton.worker": "a:1", "baton.attempt_id": "chatcmpl-1-000-m00-r000", "baton.tokens": "3", "baton.outcome": "disconnected",
		"error.type": "disconnected", "baton.migration_type": "",
	})
	mustHave(t, second, map[attribute.Key]string{
		"baton.worker": "b:1", "baton.tokens": "2", "baton.outcome": "ok", "error.type": "",
		"baton.migration_type": "ongoing_request", "baton.tokens_carried": "3", "baton.gap_ms": "1.5",
	})
	if first.Status.Code != codes.Error || second.Status.Code != codes.Unset {
		t.Errorf("status %v, %v", first.Status, second.Status)
	}
	if d := first.EndTime.Sub(first.StartTime); d != 399*time.Millisecond {
		t.Errorf("the first attempt took %v", d)
	}
	for _, s := range spans {
		for key, value := range attributesOf(s) {
			if strings.Contains(value, "secret") {
				t.Errorf("%s of %s: an engine's words", key, s.Name)
			}
		}
	}
}

// A client that does not trace begins one; a failure is one; attempts that were
// not moves and the reason for no move are told.
func TestFailedRequest(t *testing.T) {
	r := moved()
	r.Header = http.Header{"Traceparent": {"nonsense"}}
	r.Status, r.Outcome, r.Finish = 502, "disconnected", ""
	r.Choices[0].NotMoved = engine.MovesUsedUp
	spans := spansOf(t, r)
	request := spans[len(spans)-1]
	if request.Parent.IsValid() || request.Status.Code != codes.Error {
		t.Errorf("request %+v", request)
	}
	mustHave(t, request, map[attribute.Key]string{"error.type": "disconnected", "baton.not_moved": "limit", "http.response.status_code": "502"})
}

func TestAttemptSpansAreBounded(t *testing.T) {
	r := moved()
	for range 3 {
		c := &engine.Trace{}
		for range maxAttemptSpans / 2 {
			c.Begin("id", "w")
		}
		r.Choices = append(r.Choices, c)
	}
	spans := spansOf(t, r)
	if len(spans) != maxAttemptSpans+1 {
		t.Fatalf("%d spans", len(spans))
	}
	mustHave(t, spans[0], map[attribute.Key]string{"baton.worker": "w", "baton.choice": "2"})
	mustHave(t, spans[len(spans)-1], map[attribute.Key]string{"baton.attempts_not_shown": "66", "baton.attempts": "194"})
	if !spans[0].EndTime.Equal(r.End) {
		t.Errorf("an attempt without an end ended at %v", spans[0].EndTime)
	}
}

// The client's decision not to sample is honoured, and so is the sampler.
func TestSampling(t *testing.T) {
	r := moved()
	r.Header = http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}}
	if spans := spansOf(t, r); len(spans) != 0 {
		t.Errorf("%d spans", len(spans))
	}
	if spans := spansOf(t, moved(), sdk.WithSampler(sdk.NeverSample())); len(spans) != 0 {
		t.Errorf("%d spans", len(spans))
	}
}

func TestWanted(t *testing.T) {
	tests := map[string]struct {
		env      map[string]string
		endpoint string
		warns    bool
	}{
		"nothing set":  {map[string]string{"OTEL_SERVICE_NAME": "x"}, "", false},
		"endpoint":     {map[string]string{envEndpoint: "http://c:4318"}, "http://c:4318", false},
		"traces only":  {map[string]string{envTracesEndpoint: "http://t:1/x", envEndpoint: "http://c:4318"}, "http://t:1/x", false},
		"disabled":     {map[string]string{envEndpoint: "http://c:4318", envDisabled: "TRUE"}, "", false},
		"not disabled": {map[string]string{envEndpoint: "http://c:4318", envDisabled: "yes"}, "http://c:4318", false},
		"no exporter":  {map[string]string{envEndpoint: "http://c:4318", envExporter: "none"}, "", false},
		"other":        {map[string]string{envEndpoint: "http://c:4318", envExporter: "zipkin"}, "", true},
		"grpc":         {map[string]string{envEndpoint: "http://c:4317", envProtocol: "grpc"}, "http://c:4317", true},
		"protobuf":     {map[string]string{envEndpoint: "http://c:4318", envProtocol: "grpc", envTracesProtocol: "http/protobuf"}, "http://c:4318", false},
	}
	for name, test := range tests {
		var out bytes.Buffer
		endpoint, on := wanted(func(k string) string { return test.env[k] }, slog.New(slog.NewTextHandler(&out, nil)))
		if endpoint != test.endpoint || on != (test.endpoint != "") || (out.Len() > 0) != test.warns {
			t.Errorf("%s: %q, %v, log %q", name, endpoint, on, out.String())
		}
	}
}

func TestPasswordIsNotShown(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://c:4318": "http://c:4318", "https://u:hunter2@c:4318/x": "https://u:xxxxx@c:4318/x", "http://u:hunter2@c:port": "an address that cannot be read",
	} {
		if got := shown(endpoint); got != want {
			t.Errorf("%s", got)
		}
	}
}

// Off is nil, and nil does nothing at no cost.
func TestOff(t *testing.T) {
	t.Setenv(envEndpoint, "")
	t.Setenv(envTracesEndpoint, "")
	tracer, err := New(t.Context(), "v", slog.New(slog.DiscardHandler))
	if tracer != nil || err != nil {
		t.Fatal(tracer, err)
	}
	r := moved()
	if n := testing.AllocsPerRun(100, func() { tracer.Record(r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := tracer.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// A collector that is away fills no log.
func TestComplaintsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c := &complaints{log: slog.New(slog.NewTextHandler(&out, nil))}
		for range 100 {
			c.Handle(errors.New("refused"))
			time.Sleep(time.Second)
		}
		if n := strings.Count(out.String(), "traces are lost"); n != 2 || !strings.Contains(out.String(), "failures_since_last_record=59") {
			t.Errorf("%d records:\n%s", n, out.String())
		}
	})
}

// BenchmarkRecord is what a moved request costs when it is over.
func BenchmarkRecord(b *testing.B) {
	for name, tracer := range map[string]*Tracer{"off": nil, "on": {tracer: sdk.NewTracerProvider(
		sdk.WithBatcher(tracetest.NewNoopExporter())).Tracer("baton")}} {
		b.Run(name, func(b *testing.B) {
			r := moved()
			b.ReportAllocs()
			for b.Loop() {
				tracer.Record(r)
			}
		})
	}
}
