package server

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// unknownModel is the label of requests that name no model we know. Names come
// from configuration and probing, never from a request: a client could make
// series without end.
const unknownModel = "unknown"

// Upper bounds of the histograms: seconds and tokens.
var (
	firstTokenBuckets   = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	interTokenBuckets   = [...]float64{.001, .0025, .005, .0075, .01, .015, .02, .03, .05, .075, .1, .15, .25, .5, 1, 2.5, 5, 10, 30}
	durationBuckets     = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800}
	inputTokensBuckets  = []float64{16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}
	outputTokensBuckets = []float64{1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}
)

// metrics are the server's series, with the names and labels of Dynamo's
// frontend (its metrics catalog, "Frontend metrics").
type metrics struct {
	requests      *prometheus.CounterVec
	cancellations *prometheus.CounterVec
	disconnected  prometheus.Gauge // a gauge there too, though it only rises
	inflight      *prometheus.GaugeVec
	queued        *prometheus.GaugeVec
	firstToken    *prometheus.HistogramVec
	interToken    *latencyHistogram
	duration      *prometheus.HistogramVec
	inputTokens   *prometheus.HistogramVec
	outputTokens  *prometheus.HistogramVec
	tokens        *prometheus.CounterVec

	mu     sync.Mutex // guards models
	models map[string]*modelMetrics
}

// modelMetrics are the series of one model.
type modelMetrics struct {
	name          string
	requests      *prometheus.CounterVec // endpoint, request_type, status, error_type
	cancellations *prometheus.CounterVec // endpoint, request_type
	inflight      prometheus.Gauge
	queued        prometheus.Gauge
	firstToken    prometheus.Observer
	interToken    *latencyHistogram
	duration      prometheus.Observer
	inputTokens   prometheus.Observer
	outputTokens  prometheus.Observer
	tokens        prometheus.Counter
}

func newMetrics(namespace string, reg prometheus.Registerer) *metrics {
	name := func(name string) string { return prometheus.BuildFQName(namespace, "", name) }
	counter := func(n, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name(n), Help: help}, labels)
	}
	gauge := func(n, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name(n), Help: help}, []string{"model"})
	}
	histogram := func(n, help string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name(n), Help: help, Buckets: buckets}, []string{"model"})
	}
	m := &metrics{
		requests: counter("requests_total", "Requests of the generation API that have ended.",
			"model", "endpoint", "request_type", "status", "error_type"),
		cancellations: counter("model_cancellation_total", "Requests whose client left before the end.",
			"model", "endpoint", "request_type"),
		disconnected: prometheus.NewGauge(prometheus.GaugeOpts{Name: name("disconnected_clients"), Help: "Clients that left before their request ended, since the start."}),
		inflight:     gauge("inflight_requests", "Requests that are being answered."),
		queued:       gauge("queued_requests", "Requests that wait for their first token."),
		firstToken:   histogram("time_to_first_token_seconds", "From the arrival of a request to its first token.", firstTokenBuckets),
		interToken:   newLatencyHistogram(name("inter_token_latency_seconds"), "Time between tokens of a choice; counted when the request ends."),
		duration:     histogram("request_duration_seconds", "From the arrival of a request to the end of its answer.", durationBuckets),
		inputTokens:  histogram("input_sequence_tokens", "Prompt tokens of a request.", inputTokensBuckets),
		outputTokens: histogram("output_sequence_tokens", "Generated tokens of a request.", outputTokensBuckets),
		tokens:       counter("output_tokens_total", "Generated tokens; counted when the request ends.", "model"),
		models:       make(map[string]*modelMetrics),
	}
	reg.MustRegister(m.requests, m.cancellations, m.disconnected, m.inflight, m.queued, m.firstToken,
		m.interToken, m.duration, m.inputTokens, m.outputTokens, m.tokens)
	return m
}

// model returns the series of a known model, which exist with value 0 from the
// first call on. Known are the models that the preprocessor accepts.
func (m *metrics) model(name string) *modelMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	if mm, ok := m.models[name]; ok {
		return mm
	}
	label := prometheus.Labels{"model": name}
	mm := &modelMetrics{
		name:          name,
		requests:      m.requests.MustCurryWith(label),
		cancellations: m.cancellations.MustCurryWith(label),
		inflight:      m.inflight.With(label),
		queued:        m.queued.With(label),
		firstToken:    m.firstToken.With(label),
		interToken:    m.interToken,
		duration:      m.duration.With(label),
		inputTokens:   m.inputTokens.With(label),
		outputTokens:  m.outputTokens.With(label),
		tokens:        m.tokens.With(label),
	}
	m.interToken.merge(name, &latencyCounts{})
	for _, ep := range []*endpoint{&chatCompletions, &completions, &responses} {
		for _, requestType := range []string{"stream", "unary"} {
			mm.requests.WithLabelValues(ep.label, requestType, "success", "")
			mm.cancellations.WithLabelValues(ep.label, requestType)
		}
	}
	m.models[name] = mm
	return mm
}

// known returns the series of a model if it has any, else nil.
func (m *metrics) known(name string) *modelMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.models[name]
}

// unknown returns what counts requests whose model is not known. They never run,
// so there are no other series.
func (m *metrics) unknown() *modelMetrics {
	return &modelMetrics{
		name:     unknownModel,
		requests: m.requests.MustCurryWith(prometheus.Labels{"model": unknownModel}),
	}
}

// count counts the end of a request; errorType is "" after a success.
func (m *modelMetrics) count(endpoint, requestType, errorType string) {
	status := "success"
	if errorType != "" {
		status = "error"
	}
	m.requests.WithLabelValues(endpoint, requestType, status, errorType).Inc()
}

func (m *modelMetrics) cancelled(endpoint, requestType string) {
	m.cancellations.WithLabelValues(endpoint, requestType).Inc()
}

// measure writes down the sizes and times of a request that has ended.
func (c *call) measure() {
	m := c.model
	m.duration.Observe(time.Since(c.start).Seconds())
	m.inputTokens.Observe(float64(c.prepared.PromptTokens))
	generated := float64(c.completionTokens())
	m.outputTokens.Observe(generated)
	m.tokens.Add(generated)
	for _, choice := range c.choices {
		m.interToken.merge(m.name, &choice.latencies)
	}
}

// errorType is the label of a request that ended with status.
func errorType(status int) string {
	switch {
	case status == statusClientClosedRequest:
		return "cancelled"
	case status == http.StatusNotFound:
		return "not_found"
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return "overload"
	case status == http.StatusGatewayTimeout:
		return "response_timeout"
	case status >= 400 && status < 500:
		return "validation"
	}
	return errorInternal
}

// errorInternal is the label of a request that failed on our side, or a worker's.
const errorInternal = "internal"
