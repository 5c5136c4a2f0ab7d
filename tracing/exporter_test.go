package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A post is one request that a collector got, with its body as it was sent.
type post struct {
	*http.Request
	body []byte
}

// spans of a request, read as a collector does.
func (p post) spans(t *testing.T) []*otlp.ResourceSpans {
	t.Helper()
	var batch collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(p.body, &batch); err != nil {
		t.Fatal(err)
	}
	return batch.ResourceSpans
}

// listen starts a collector that answers with reply, and returns what it got.
func listen(t *testing.T, reply http.HandlerFunc) (url string, got func() []post) {
	var mu sync.Mutex
	var posts []post
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		posts = append(posts, post{r, body})
		mu.Unlock()
		reply(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []post {
		mu.Lock()
		defer mu.Unlock()
		return posts
	}
}

func taken(http.ResponseWriter, *http.Request) {}

// exporterFor is an exporter of an environment.
func exporterFor(t *testing.T, env map[string]string) *exporter {
	t.Helper()
	to, err := readDestination(func(k string) string { return env[k] }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	e := newExporter(to, "1.2")
	t.Cleanup(func() { e.Shutdown(context.Background()) })
	return e
}

// some are the three spans of a moved request.
func some(t *testing.T) []sdk.ReadOnlySpan { return spansOf(t, moved()).Snapshots() }

// What a collector reads is what was recorded.
func TestExport(t *testing.T) {
	url, got := listen(t, taken)
	e := exporterFor(t, map[string]string{envEndpoint: url + "/below/"})
	stubs := spansOf(t, moved())
	stubs[2].Attributes = append(stubs[2].Attributes, attribute.String("stray", "a\xffb"), attribute.Bool("yes", true))
	if err := e.ExportSpans(t.Context(), stubs.Snapshots()); err != nil {
		t.Fatal(err)
	}
	posts := got()
	if len(posts) != 1 || posts[0].Method != http.MethodPost || posts[0].URL.Path != "/below/v1/traces" ||
		posts[0].Header.Get("Content-Type") != contentType || posts[0].Header.Get("Content-Encoding") != "" || posts[0].UserAgent() != "baton/1.2" {
		t.Fatalf("posts %v", posts)
	}
	resources := posts[0].spans(t)
	if len(resources) != 1 || len(resources[0].ScopeSpans) != 1 || len(resources[0].ScopeSpans[0].Spans) != 3 {
		t.Fatalf("batch %v", resources)
	}
	if scope := resources[0].ScopeSpans[0].Scope; scope.Name != "baton" || len(resources[0].Resource.Attributes) == 0 {
		t.Errorf("scope %v, resource %v", scope, resources[0].Resource)
	}
	spans := resources[0].ScopeSpans[0].Spans
	first, request := spans[0], spans[2]
	if fmt.Sprintf("%x", request.TraceId) != "0af7651916cd43dd8448eb211c80319c" || fmt.Sprintf("%x", request.ParentSpanId) != "b7ad6b7169203331" ||
		request.Name != "POST /v1/chat/completions" || request.Kind != otlp.Span_SPAN_KIND_SERVER || request.Flags != 0x301 ||
		request.StartTimeUnixNano != uint64(start.UnixNano()) || request.EndTimeUnixNano != uint64(start.Add(time.Second).UnixNano()) ||
		request.Status.GetCode() != otlp.Status_STATUS_CODE_UNSET {
		t.Errorf("request %v", request)
	}
	if first.Kind != otlp.Span_SPAN_KIND_CLIENT || first.Flags != 0x101 || !bytes.Equal(first.ParentSpanId, request.SpanId) ||
		bytes.Equal(first.SpanId, spans[1].SpanId) || first.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR || first.Status.Message != "disconnected" {
		t.Errorf("first attempt %v", first)
	}
	values := make(map[string]*common.AnyValue)
	for _, kv := range request.Attributes {
		values[kv.Key] = kv.Value
	}
	if values["baton.request_id"].GetStringValue() != "chatcmpl-1" || values["stray"].GetStringValue() != "a\uFFFDb" || !values["yes"].GetBoolValue() ||
		values["gen_ai.usage.input_tokens"].GetIntValue() != 9 || values["baton.time_to_first_token_ms"].GetDoubleValue() != 20 {
		t.Errorf("attributes %v", values)
	}
}

// The endpoint for traces is taken as it is; headers and gzip are as the
// environment says, and no header of it changes what the body is.
func TestHeadersAndGzip(t *testing.T) {
	url, got := listen(t, taken)
	e := exporterFor(t, map[string]string{
		envTracesEndpoint:                   url + "/take?tenant=7",
		"OTEL_EXPORTER_OTLP_HEADERS":        "general=1",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "authorization=Bearer%20a%2Cb%3D, X-Tenant = seven ,content-type=text/plain",
		"OTEL_EXPORTER_OTLP_COMPRESSION":    "gzip",
	})
	if err := e.ExportSpans(t.Context(), some(t)); err != nil {
		t.Fatal(err)
	}
	p := got()[0]
	if p.RequestURI != "/take?tenant=7" || p.Header.Get("Authorization") != "Bearer a,b=" || p.Header.Get("X-Tenant") != "seven" ||
		p.Header.Get("General") != "" || p.Header.Get("Content-Type") != contentType || p.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%s with %v", p.RequestURI, p.Header)
	}
	r, err := gzip.NewReader(bytes.NewReader(p.body))
	if err != nil {
		t.Fatal(err)
	}
	if p.body, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	if n := len(p.spans(t)[0].ScopeSpans[0].Spans); n != 3 {
		t.Errorf("%d spans", n)
	}
}

// A transport stands for the network inside a bubble: it answers the nth request
// (from 0).
type transport func(n int, r *http.Request) (*http.Response, error)

func (e *exporter) over(f transport) (requests *int) {
	requests = new(int)
	e.client.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		*requests++
		return f(*requests-1, r)
	})
	return requests
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string, header ...string) (*http.Response, error) {
	resp := &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: make(http.Header),
		Body: io.NopCloser(strings.NewReader(body))}
	for i := 0; i+1 < len(header); i += 2 {
		resp.Header.Set(header[i], header[i+1])
	}
	return resp, nil
}

// A collector that is busy or away gets the same batch again.
func TestRetry(t *testing.T) {
	for _, status := range []int{0, 429, 502, 503, 504} {
		synctest.Test(t, func(t *testing.T) {
			e := exporterFor(t, map[string]string{envEndpoint: "http://c:4318"})
			var bodies [][]byte
			n := e.over(func(n int, r *http.Request) (*http.Response, error) {
				body, _ := io.ReadAll(r.Body)
				bodies = append(bodies, body)
				switch {
				case n == 2:
					return answer(200, "")
				case status == 0:
					return nil, errors.New("connection refused")
				default:
					return answer(status, "busy")
				}
			})
			begin := time.Now()
			if err := e.ExportSpans(t.Context(), some(t)); err != nil {
				t.Errorf("%d: %v", status, err)
			}
			// Pauses of a half to a whole of 0.5 s and of 1 s.
			if took := time.Since(begin); *n != 3 || took < 750*time.Millisecond || took > 1500*time.Millisecond {
				t.Fatalf("%d: %d attempts in %v", status, *n, took)
			}
			if len(bodies[0]) == 0 || !bytes.Equal(bodies[0], bodies[2]) {
				t.Errorf("%d: the last body is another one", status)
			}
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := exporterFor(t, map[string]string{envEndpoint: "http://c:4318"})
		n := e.over(func(n int, _ *http.Request) (*http.Response, error) {
			if n == 0 {
				return answer(503, "", "Retry-After", "20")
			}
			return answer(200, "")
		})
		begin := time.Now()
		if err := e.ExportSpans(t.Context(), some(t)); err != nil || *n != 2 || time.Since(begin) != 20*time.Second {
			t.Errorf("%d attempts in %v: %v", *n, time.Since(begin), err)
		}
		// One that lies behind the end of the context is not waited for.
		*n = 0
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		begin = time.Now()
		err := e.ExportSpans(ctx, some(t))
		if err == nil || !strings.Contains(err.Error(), "3 spans given up after 1 attempts") || *n != 1 || time.Since(begin) != 0 {
			t.Errorf("%d attempts in %v: %v", *n, time.Since(begin), err)
		}
	})
}

// A collector that stays away costs maxExport at most, in few attempts; one that
// does not answer costs each of them the time-out; and a context ends all.
func TestExportIsBounded(t *testing.T) {
	away := func(int, *http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }
	silent := func(_ int, r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	tests := map[string]struct {
		transport   transport
		cancelAfter time.Duration
		attempts    [2]int
		took        [2]time.Duration
	}{
		"away":      {away, time.Hour, [2]int{13, 24}, [2]time.Duration{maxExport - maxPause, maxExport}},
		"silent":    {silent, time.Hour, [2]int{4, 6}, [2]time.Duration{maxExport - maxPause, maxExport}},
		"cancelled": {away, 2 * time.Second, [2]int{3, 4}, [2]time.Duration{2 * time.Second, 2 * time.Second}},
	}
	for name, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			e := exporterFor(t, map[string]string{envEndpoint: "http://c:4318"})
			n := e.over(test.transport)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			time.AfterFunc(test.cancelAfter, cancel)
			begin := time.Now()
			err := e.ExportSpans(ctx, some(t))
			if took := time.Since(begin); err == nil || *n < test.attempts[0] || *n > test.attempts[1] || took < test.took[0] || took > test.took[1] {
				t.Errorf("%s: %d attempts in %v: %v", name, *n, took, err)
			}
		})
	}
}

// What another attempt will not cure is told at once, without what may be secret.
func TestFinalFailures(t *testing.T) {
	followed := false
	other, _ := listen(t, func(http.ResponseWriter, *http.Request) { followed = true })
	tests := map[string]struct {
		reply http.HandlerFunc
		want  string
	}{
		"bad request": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("no", 1<<20), http.StatusBadRequest)
		}, "400 Bad Request"},
		"unauthorized": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who?", http.StatusUnauthorized) }, `401 Unauthorized, "who?"`},
		"redirect":     {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other, http.StatusTemporaryRedirect) }, "307 Temporary Redirect"},
	}
	for name, test := range tests {
		url, got := listen(t, test.reply)
		url = strings.Replace(url, "http://", "http://u:hunter2@", 1)
		e := exporterFor(t, map[string]string{envTracesEndpoint: url + "?key=hunter2", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=hunter2"})
		err := e.ExportSpans(t.Context(), some(t))
		if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 2*maxQuotedBytes || strings.Contains(err.Error(), "hunter2") || len(got()) != 1 {
			t.Errorf("%s: %d requests: %v", name, len(got()), err)
		}
	}
	if followed {
		t.Error("a redirect was followed")
	}
	e := exporterFor(t, map[string]string{envEndpoint: "http://u:hunter2@c:4318/?key=hunter2"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.ExportSpans(ctx, some(t)); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

// A collector that is not trusted is asked once; with its certificate it is trusted.
func TestCertificate(t *testing.T) {
	asked := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	s.StartTLS()
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := exporterFor(t, map[string]string{envEndpoint: s.URL}).ExportSpans(ctx, some(t))
	if err == nil || !strings.Contains(err.Error(), "certificate") || strings.Contains(err.Error(), "given up") {
		t.Error(err)
	}
	e := exporterFor(t, map[string]string{envEndpoint: s.URL, "OTEL_EXPORTER_OTLP_CERTIFICATE": certificateFile(t, s.Certificate().Raw)})
	if err := e.ExportSpans(t.Context(), some(t)); err != nil || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

func TestPartialSuccess(t *testing.T) {
	tests := map[string]struct {
		rejected int64
		message  string
		want     string
		logs     string
	}{
		"some rejected": {2, "too old", `rejected 2 of its spans: "too old"`, "traces are lost"},
		"a remark":      {0, "use gzip", `rejected 0 of its spans: "use gzip"`, "traces were taken with a remark"},
		"long":          {1, strings.Repeat("x", 9999), "xxx", "traces are lost"},
		"none":          {0, "", "", ""},
	}
	for name, test := range tests {
		url, got := listen(t, func(w http.ResponseWriter, _ *http.Request) {
			body, err := proto.Marshal(&collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{
				RejectedSpans: test.rejected, ErrorMessage: test.message}})
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", contentType)
			w.Write(body)
		})
		err := exporterFor(t, map[string]string{envEndpoint: url}).ExportSpans(t.Context(), some(t))
		if (err != nil) != (test.want != "") || len(got()) != 1 {
			t.Errorf("%s: %d requests: %v", name, len(got()), err)
		}
		if err == nil {
			continue
		}
		var out bytes.Buffer
		(&complaints{log: slog.New(slog.NewTextHandler(&out, nil))}).Handle(err)
		if !strings.Contains(err.Error(), test.want) || len(err.Error()) > 2*maxQuotedBytes || !strings.Contains(out.String(), test.logs) {
			t.Errorf("%s: %v, log %s", name, err, out.String())
		}
	}
	// A reply that is no message is no failure: the spans have arrived.
	for _, body := range []string{"{}", "\x0a\x7f", "\x0a", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "\x0d1234\x0a\x00"} {
		if err := rejection([]byte(body)); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestExportAfterShutdown(t *testing.T) {
	url, got := listen(t, taken)
	e := exporterFor(t, map[string]string{envEndpoint: url})
	if err := e.ExportSpans(t.Context(), nil); err != nil || len(got()) != 0 {
		t.Errorf("an empty batch: %d requests, %v", len(got()), err)
	}
	e.Shutdown(t.Context())
	if err := e.ExportSpans(t.Context(), tracetest.SpanStubs{{}}.Snapshots()); !errors.Is(err, errEnded) || len(got()) != 0 {
		t.Errorf("%d requests, %v", len(got()), err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-3": 0, "7": 7 * time.Second, "18446744073709551615": maxExport,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0, "Fri, 02 Jan 2099 03:04:00 GMT": maxExport,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}
