package migration

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/engine"
)

// metrics of the operator. The first two, the duration and the limit have the
// names and labels of Dynamo's frontend; the others are our own.
type metrics struct {
	total      *prometheus.CounterVec   // model, migration_type
	exceeded   *prometheus.CounterVec   // model
	took       *prometheus.HistogramVec // model, migration_type, outcome
	limit      *prometheus.GaugeVec     // model
	refusals   *prometheus.CounterVec   // model, reason
	gapSeconds *prometheus.HistogramVec // model
	carried    *prometheus.HistogramVec // model
}

func newMetrics(reg prometheus.Registerer, namespace string) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	seconds := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: name, Help: help,
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		}, labels)
	}
	m := &metrics{
		total:      counter("model_migration_total", "Requests moved to another worker.", "model", "migration_type"),
		exceeded:   counter("model_migration_max_seq_len_exceeded_total", "Requests for which the sequence bound switched migration off.", "model"),
		took:       seconds("model_migration_duration_seconds", "Time from a failure to the first new token, or to giving up.", "model", "migration_type", "outcome"),
		limit:      prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "model_migration_limit", Help: "How often one request may be moved."}, []string{"model"}),
		refusals:   counter("model_migration_refused_total", "Failures that called for a move and got none.", "model", "reason"),
		gapSeconds: seconds("model_migration_gap_seconds", "Time from the last token before a move to the first after it.", "model"),
		carried: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: namespace, Name: "model_migration_tokens_carried", Help: "Tokens given along with a move.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 10),
		}, []string{"model"}),
	}
	reg.MustRegister(m.total, m.exceeded, m.took, m.limit, m.refusals, m.gapSeconds, m.carried)
	return m
}

func (m *metrics) addModel(model string, limit int) {
	for _, kind := range []engine.MigrationType{engine.NewRequest, engine.OngoingRequest} {
		m.total.WithLabelValues(model, string(kind))
		m.took.WithLabelValues(model, string(kind), outcome(true))
		m.took.WithLabelValues(model, string(kind), outcome(false))
	}
	for _, reason := range refusals {
		m.refusals.WithLabelValues(model, string(reason))
	}
	m.exceeded.WithLabelValues(model)
	m.gapSeconds.WithLabelValues(model)
	m.carried.WithLabelValues(model)
	m.limit.WithLabelValues(model).Set(float64(limit))
}

func (m *metrics) moved(model string, kind engine.MigrationType, carried int) {
	m.total.WithLabelValues(model, string(kind)).Inc()
	m.carried.WithLabelValues(model).Observe(float64(carried))
}

func (m *metrics) tooLong(model string) { m.exceeded.WithLabelValues(model).Inc() }

func (m *metrics) refused(model string, reason refusal) {
	m.refusals.WithLabelValues(model, string(reason)).Inc()
}

func (m *metrics) gap(model string, gap time.Duration) {
	m.gapSeconds.WithLabelValues(model).Observe(gap.Seconds())
}

func (m *metrics) duration(model string, kind engine.MigrationType, ok bool, d time.Duration) {
	m.took.WithLabelValues(model, string(kind), outcome(ok)).Observe(d.Seconds())
}

func outcome(ok bool) string {
	if ok {
		return "success"
	}
	return "failure"
}
