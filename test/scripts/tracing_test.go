package scripts

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"baton/engine/sim"
	"baton/test/harness"
)

// A fakeCollector takes spans as OTLP over HTTP.
type fakeCollector struct {
	*httptest.Server

	mu       sync.Mutex // guards what follows
	spans    []*otlp.Span
	resource map[string]string
	problems []string
}

func newCollector(t *testing.T) *fakeCollector {
	c := &fakeCollector{resource: make(map[string]string)}
	c.Server = httptest.NewServer(http.HandlerFunc(c.export))
	t.Cleanup(c.Close)
	return c
}

func (c *fakeCollector) export(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var batch collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &batch)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" {
		c.problems = append(c.problems, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Content-Type"), ": ", err))
		http.Error(w, "what is this?", http.StatusBadRequest)
		return
	}
	for _, rs := range batch.ResourceSpans {
		for _, kv := range rs.Resource.Attributes {
			c.resource[kv.Key] = kv.Value.GetStringValue()
		}
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// attributes are the span's, as text.
func attributes(s *otlp.Span) map[string]string {
	m := make(map[string]string)
	for _, kv := range s.Attributes {
		switch v := kv.Value; {
		case v.GetStringValue() != "":
			m[kv.Key] = v.GetStringValue()
		case v.GetDoubleValue() != 0:
			m[kv.Key] = fmt.Sprint(v.GetDoubleValue())
		default:
			m[kv.Key] = fmt.Sprint(v.GetIntValue())
		}
	}
	return m
}

// startSim starts a simulated worker whose answers are as long as the request asks
// for. Its id is its host and port.
func startSim(t *testing.T) (id string, p *harness.Process) {
	t.Helper()
	port := fmt.Sprint(harness.FreePort(t))
	p = harness.Start(t, harness.Binary(t), "sim", "--host", "127.0.0.1", "--port", port, "--style", "words", "--mean-length", "-1", "--gap", "10ms")
	id = "127.0.0.1:" + port
	harness.WaitOK(t, "http://"+id+"/health", patience)
	return id, p
}

// A request that lost its worker is one span with two below it, in the client's
// trace; they arrive before the process ends. The access log has its line.
func TestTraceOfAMovedRequest(t *testing.T) {
	spans := newCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", spans.URL)
	t.Setenv("OTEL_SERVICE_NAME", "front-7")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "600000") // nothing is sent before the end
	model := t.TempDir()
	if err := sim.WriteModel(model); err != nil {
		t.Fatal(err)
	}
	workers := make(map[string]*harness.Process) // by id
	args := []string{"--migration-limit", "3", "--lame-duck", "0", "--model-path", model, "--access-log"}
	for range 2 {
		id, p := startSim(t)
		workers[id] = p
		args = append(args, "--worker", "http://"+id)
	}
	url, front := harness.Serve(t, args...)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions",
		strings.NewReader(`{"model":"sim","messages":[{"role":"user","content":"a secret"}],"max_tokens":40,"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	req.Header.Set("X-Request-Id", "mine")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	dead, living := "", ""
	err = harness.ReadStream(&harness.Answer{}, resp.Body, true, func(n int) {
		if n != 8 {
			return
		}
		for id, w := range workers {
			if _, body := fetch("http://" + id + "/metrics"); dead == "" && generating.MatchString(body) {
				w.Kill()
				dead = id
			} else {
				living = id
			}
		}
	})
	if err != nil || dead == "" || living == "" {
		t.Fatalf("dead %q, living %q, %v", dead, living, err)
	}
	if err := front.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	<-front.Exited()

	spans.mu.Lock()
	defer spans.mu.Unlock()
	if len(spans.problems) > 0 {
		t.Fatal(spans.problems)
	}
	if len(spans.spans) != 3 || spans.resource["service.name"] != "front-7" || spans.resource["service.version"] == "" {
		t.Fatalf("%d spans of %v", len(spans.spans), spans.resource)
	}
	var request *otlp.Span
	attempts := make(map[string]*otlp.Span) // by worker
	for _, s := range spans.spans {
		if fmt.Sprintf("%x", s.TraceId) != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is of trace %x", s.Name, s.TraceId)
		}
		if s.Name == "attempt" {
			attempts[attributes(s)["baton.worker"]] = s
		} else {
			request = s
		}
	}
	first, second := attempts[dead], attempts[living]
	if request == nil || first == nil || second == nil {
		t.Fatalf("spans %v", spans.spans)
	}
	if fmt.Sprintf("%x", request.ParentSpanId) != "b7ad6b7169203331" || request.Name != "POST /v1/chat/completions" {
		t.Errorf("request %v", request)
	}
	a, b, r := attributes(first), attributes(second), attributes(request)
	if r["baton.attempts"] != "2" || r["baton.migrations"] != "1" || r["gen_ai.request.model"] != "sim" || r["baton.client_request_id"] != "mine" ||
		r["gen_ai.usage.output_tokens"] != "40" || r["http.response.status_code"] != "200" || r["baton.outcome"] != "ok" {
		t.Errorf("request %v", r)
	}
	if a["baton.outcome"] != "disconnected" || a["baton.migration_type"] != "" || first.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("first attempt %v", a)
	}
	if b["baton.outcome"] != "ok" || b["baton.migration_type"] != "ongoing_request" || b["baton.tokens_carried"] != a["baton.tokens"] || b["baton.gap_ms"] == "0" {
		t.Errorf("second attempt %v, after %v", b, a)
	}
	for _, s := range []*otlp.Span{first, second} {
		if string(s.ParentSpanId) != string(request.SpanId) || s.StartTimeUnixNano < request.StartTimeUnixNano ||
			s.EndTimeUnixNano > request.EndTimeUnixNano || s.EndTimeUnixNano <= s.StartTimeUnixNano {
			t.Errorf("%v is not within %v", s, request)
		}
	}
	if second.StartTimeUnixNano < first.EndTimeUnixNano {
		t.Error("the second attempt began before the first had ended")
	}
	log := front.Output()
	if n := strings.Count(log, "msg=request "); n != 1 || !strings.Contains(log, "client_request_id=mine model=sim endpoint=chat_completions status=200 outcome=ok stream=true") {
		t.Errorf("%d lines of the access log", n)
	}
	if strings.Contains(log+fmt.Sprint(spans.spans), "a secret") {
		t.Error("the prompt is in the log or in a span")
	}
}
