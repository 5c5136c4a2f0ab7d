package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"baton/backend"
	"baton/engine"
)

// series are all samples of the registry, as text: name{labels} → value.
func (r *rig) series(t testing.TB) map[string]float64 {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{Timestamp: model.Now()}, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range samples {
			out[s.Metric.String()] = float64(s.Value)
		}
	}
	return out
}

// sum adds up the series of a metric that have all of the labels.
func (r *rig) sum(t testing.TB, name string, labels ...string) float64 {
	t.Helper()
	total, found := 0.0, false
next:
	for series, v := range r.series(t) {
		if series != "baton_test_"+name && !strings.HasPrefix(series, "baton_test_"+name+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(series, l) {
				continue next
			}
		}
		total += v
		found = true
	}
	if !found && len(labels) == 0 {
		t.Errorf("no series %s", name)
	}
	return total
}

// wantEnd checks how many requests ended with errorType, and that the gauges of
// running ones are back at zero.
func (r *rig) wantEnd(t testing.TB, errorType string, n float64) {
	t.Helper()
	if got := r.sum(t, "requests_total", `error_type="`+errorType+`"`, `status="error"`); got != n {
		t.Errorf("%v requests ended with %q, want %v", got, errorType, n)
	}
	for _, gauge := range []string{"inflight_requests", "queued_requests"} {
		if got := r.sum(t, gauge); got != 0 {
			t.Errorf("%s is %v", gauge, got)
		}
	}
	if errorType == "cancelled" {
		if got := r.sum(t, "model_cancellation_total"); got != n {
			t.Errorf("model_cancellation_total is %v", got)
		}
		if got := r.sum(t, "disconnected_clients"); got != n {
			t.Errorf("disconnected_clients is %v", got)
		}
	}
}

func TestSeriesExistFromTheStart(t *testing.T) {
	rig := newRig(says("x"))
	rig.AddModel("org/m")
	rig.AddModel("org/m")
	got := rig.series(t)
	for _, want := range []string{
		`baton_test_requests_total{endpoint="chat_completions", error_type="", model="org/m", request_type="stream", status="success"}`,
		`baton_test_requests_total{endpoint="responses", error_type="", model="org/m", request_type="stream", status="success"}`,
		`baton_test_requests_total{endpoint="completions", error_type="", model="org/m", request_type="unary", status="success"}`,
		`baton_test_model_cancellation_total{endpoint="chat_completions", model="org/m", request_type="stream"}`,
		`baton_test_inflight_requests{model="org/m"}`,
		`baton_test_queued_requests{model="org/m"}`,
		`baton_test_disconnected_clients`,
		`baton_test_time_to_first_token_seconds_count{model="org/m"}`,
		`baton_test_inter_token_latency_seconds_count{model="org/m"}`,
		`baton_test_inter_token_latency_seconds_bucket{le="+Inf", model="org/m"}`,
		`baton_test_request_duration_seconds_count{model="org/m"}`,
		`baton_test_input_sequence_tokens_count{model="org/m"}`,
		`baton_test_output_sequence_tokens_count{model="org/m"}`,
		`baton_test_output_tokens_total{model="org/m"}`,
	} {
		if v, ok := got[want]; !ok || v != 0 {
			t.Errorf("%s: %v, %v", want, v, ok)
		}
	}
}

func TestMetricsOfOneRequest(t *testing.T) {
	text := fakeText(func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
		two := token(3, "b")
		two.TokenIDs = []engine.TokenID{1, 2}
		_ = yield(token(1, "a"), nil) && yield(two, nil) && yield(finish(4), nil)
	})
	rig := newRig(text)
	ts := rig.serve(t)
	post(t, ts, chatPath, `{"model":"m","stream":true,"n":2}`)
	post(t, ts, textPath, `{"model":"m"}`)
	for name, want := range map[string]float64{
		"requests_total":                    2,
		"time_to_first_token_seconds_count": 2,
		"inter_token_latency_seconds_count": 9, // three gaps' tokens in each of three choices
		"request_duration_seconds_count":    2,
		"input_sequence_tokens_sum":         6,
		"output_sequence_tokens_sum":        12,
		"output_sequence_tokens_count":      2,
		"output_tokens_total":               12,
		"model_cancellation_total":          0,
		"disconnected_clients":              0,
		"inflight_requests":                 0,
		"queued_requests":                   0,
	} {
		if got := rig.sum(t, name, ""); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := rig.sum(t, "requests_total", `endpoint="completions"`, `request_type="unary"`, `status="success"`, `model="m"`); got != 1 {
		t.Errorf("%v unary completions", got)
	}
	_, raw := get(t, ts, "/metrics")
	if !bytes.Contains(raw, []byte(`baton_test_output_tokens_total{model="m"} 12`)) {
		t.Errorf("/metrics %s", raw)
	}
}

// A refused request is counted with its model, if it names one that we know.
func TestRefusedRequestsAreCounted(t *testing.T) {
	rig := newRig(says("x"))
	rig.AddModel("m")
	ts := rig.serve(t)
	for _, body := range []string{`{"model":"m","n":129,"stream":true}`, `{"model":"m","n":"x"}`, `{"model":"none"}`, `{"model":7}`, `{`} {
		post(t, ts, chatPath, body)
	}
	for labels, want := range map[[3]string]float64{
		{`model="m"`, `request_type="stream"`, `error_type="validation"`}:       1,
		{`model="m"`, `request_type="unary"`, `error_type="validation"`}:        1,
		{`model="unknown"`, `request_type="unary"`, `error_type="not_found"`}:   1,
		{`model="unknown"`, `request_type="unary"`, `error_type="validation"`}:  2,
		{`model="unknown"`, `request_type="stream"`, `error_type="validation"`}: 0,
	} {
		if got := rig.sum(t, "requests_total", labels[:]...); got != want {
			t.Errorf("%v: %v, want %v", labels, got, want)
		}
	}
}

// queued_requests counts what waits for its first token, inflight_requests all.
func TestGaugesWhileRunning(t *testing.T) {
	first, last := make(chan struct{}), make(chan struct{})
	text := fakeText(func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
		<-first
		if yield(token(1, "a"), nil) {
			<-last
			yield(finish(2), nil)
		}
	})
	rig := newRig(text)
	ts := rig.serve(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		post(t, ts, chatPath, `{"model":"m","stream":true}`)
	}()
	rig.eventually(t, "queued_requests", 1)
	if got := rig.sum(t, "inflight_requests"); got != 1 {
		t.Errorf("inflight %v", got)
	}
	close(first)
	rig.eventually(t, "queued_requests", 0)
	if got := rig.sum(t, "inflight_requests"); got != 1 {
		t.Errorf("inflight %v", got)
	}
	close(last)
	<-done
	rig.eventually(t, "inflight_requests", 0)
}

func (r *rig) eventually(t testing.TB, name string, want float64) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		families, _ := r.registry.Gather()
		for _, f := range families {
			if f.GetName() == "baton_test_"+name && len(f.Metric) > 0 && f.Metric[0].Gauge.GetValue() == want {
				return
			}
		}
	}
	t.Fatalf("%s does not become %v", name, want)
}

// 300 streams, a third each finished, cancelled and failed.
func TestGaugesReturnToZero(t *testing.T) {
	text := fakeText(func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		switch req.Tokens.Model {
		case "m":
			says("a", "b")(ctx, req, yield)
		case "org/m":
			untilCancelled("a")(ctx, req, yield)
		}
	})
	failing := newRig(fails(&engine.Error{Kind: engine.Disconnected}, "a"))
	rig := newRig(text)
	ts, tsFailing := rig.serve(t), failing.serve(t)
	slots := make(chan struct{}, 30)
	var wg sync.WaitGroup
	for i := range 300 {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			switch i % 3 {
			case 0:
				post(t, ts, chatPath, `{"model":"m","stream":true}`)
			case 1:
				post(t, tsFailing, chatPath, `{"model":"m","stream":true}`)
			case 2:
				resp, err := request(ts, chatPath, `{"model":"org/m","stream":true}`)
				if err != nil {
					t.Error(err)
					return
				}
				io.ReadFull(resp.Body, make([]byte, 10))
				resp.Body.Close() // the client leaves
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if !rig.running.wait(ctx) {
		t.Fatal("cancelled requests run on")
	}
	rig.wantEnd(t, "cancelled", 100)
	failing.wantEnd(t, "internal", 100)
	if got := rig.sum(t, "requests_total", `status="success"`); got != 100 {
		t.Errorf("%v requests succeeded", got)
	}
}

// Random model names must not make series.
func TestLabelsAreBounded(t *testing.T) {
	rig := newRig(says("x"))
	h := rig.Handler()
	ask := func(i int) {
		req, _ := http.NewRequest("POST", chatPath, strings.NewReader(fmt.Sprintf(`{"model":"random-%d"}`, i)))
		h.ServeHTTP(&statusWriter{header: http.Header{}}, req)
	}
	ask(0)
	before := len(rig.series(t))
	for i := range 5000 {
		ask(i)
	}
	if after := len(rig.series(t)); after != before {
		t.Errorf("%d series became %d", before, after)
	}
	if got := rig.sum(t, "requests_total", `model="unknown"`, `error_type="not_found"`); got != 5001 {
		t.Errorf("%v requests counted", got)
	}
}

func TestLatencyCounts(t *testing.T) {
	var c latencyCounts
	c.observe(20*time.Millisecond, 1) // exactly a bound: le
	c.observe(40*time.Millisecond, 2) // twice 20 ms
	c.observe(time.Hour, 1)
	h := newLatencyHistogram("x", "y")
	h.merge("m", &c)
	h.merge("m", &c)
	total := h.models["m"]
	if total.count != 8 || total.buckets[6] != 6 || total.buckets[len(total.buckets)-1] != 2 || total.sum != 2*(3600+.06) {
		t.Errorf("%+v", total)
	}
}
