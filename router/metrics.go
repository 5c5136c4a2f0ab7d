package router

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A collector reads the workers' states when it is scraped: the end of an
// inhibition is a moment that no code runs at, and a worker's series go with it.
type collector struct {
	r                             *Router
	workersByState, state, probes *prometheus.Desc
}

func newCollector(r *Router, namespace string) *collector {
	name := func(s string) string { return prometheus.BuildFQName(namespace, "", s) }
	return &collector{
		r:              r,
		workersByState: prometheus.NewDesc(name("router_workers"), "Workers by state.", []string{"state"}, nil),
		state:          prometheus.NewDesc(name("worker_state"), "1 for the state that the worker is in, else 0.", []string{"worker", "state"}, nil),
		probes:         prometheus.NewDesc(name("worker_probe_total"), "Active probes of the worker by result.", []string{"worker", "result"}, nil),
	}
}

func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.workersByState
	ch <- c.state
	ch <- c.probes
}

func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for _, m := range c.metrics() {
		ch <- m
	}
}

func (c *collector) metrics() (all []prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...))
	}
	counter := func(v uint64, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(c.probes, prometheus.CounterValue, float64(v), labels...))
	}
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	now := time.Now()
	inState := make(map[string]int)
	for _, w := range c.r.workers {
		current := w.state(now)
		inState[current]++
		for _, s := range allStates {
			is := 0
			if s == current {
				is = 1
			}
			gauge(c.state, is, w.spec.ID, s)
		}
		counter(w.probesGood, w.spec.ID, "good")
		counter(w.probesBad, w.spec.ID, "bad")
	}
	for _, s := range allStates {
		gauge(c.workersByState, inState[s], s)
	}
	return all
}
