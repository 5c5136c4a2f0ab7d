package server

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// latencyCounts are the inter-token latencies of one choice. They are counted
// without a lock and merged when the request ends: a token costs a few
// nanoseconds here, and a fixed number of bytes per stream.
type latencyCounts struct {
	buckets [len(interTokenBuckets) + 1]uint64 // not cumulative; the last one is above all bounds
	count   uint64
	sum     float64 // seconds
}

// observe counts n tokens that came together, d after the ones before them.
// The silence is shared among them, as Dynamo counts it.
func (c *latencyCounts) observe(d time.Duration, n int) {
	seconds := d.Seconds() / float64(n)
	i, _ := slices.BinarySearch(interTokenBuckets[:], seconds)
	c.buckets[i] += uint64(n)
	c.count += uint64(n)
	c.sum += d.Seconds()
}

// A latencyHistogram is a histogram per model that takes whole latencyCounts,
// which prometheus.Histogram cannot.
type latencyHistogram struct {
	desc *prometheus.Desc

	mu     sync.Mutex // guards models
	models map[string]*latencyCounts
}

func newLatencyHistogram(name, help string) *latencyHistogram {
	return &latencyHistogram{
		desc:   prometheus.NewDesc(name, help, []string{"model"}, nil),
		models: make(map[string]*latencyCounts),
	}
}

func (h *latencyHistogram) merge(model string, c *latencyCounts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	total := h.models[model]
	if total == nil {
		total = &latencyCounts{}
		h.models[model] = total
	}
	for i, n := range c.buckets {
		total.buckets[i] += n
	}
	total.count += c.count
	total.sum += c.sum
}

// Describe implements prometheus.Collector.
func (h *latencyHistogram) Describe(ch chan<- *prometheus.Desc) { ch <- h.desc }

// Collect implements prometheus.Collector.
func (h *latencyHistogram) Collect(ch chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for model, c := range h.models {
		cumulative := make(map[float64]uint64, len(interTokenBuckets))
		var n uint64
		for i, bound := range interTokenBuckets {
			n += c.buckets[i]
			cumulative[bound] = n
		}
		ch <- prometheus.MustNewConstHistogram(h.desc, c.count, c.sum, cumulative, model)
	}
}
