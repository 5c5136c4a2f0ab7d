package router

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/alarm"
	"baton/engine"
)

// A Spec names a worker before anything is known of it.
type Spec struct {
	ID   string // host:port, with -N where that is not unique
	URL  string // http://host:port
	Kind string // the engine, as stated; "" = the worker is asked
}

// A Worker is what Attach found behind a Spec.
type Worker struct {
	Client engine.Client
	Info   engine.Info // what Client's Probe said; when that changes, the worker is attached to again
	Models []Model
}

// A Model is one model of one worker.
type Model struct {
	Name          string // public name
	Own           string // what the worker calls it
	ContextLength int    // in tokens; 0 = unknown
	Base          string // the public name of the model that it is a LoRA adapter of; "" = it is none
}

// Attach asks a worker what it is and builds its client. The router calls it in
// the background until it succeeds, and again when a worker came back after its
// connection was lost or after another failure, and when it says that it is
// something else now. Its error is one sentence for the log; one without an engine.Error in it
// says that the worker answered and is none that can be used.
type Attach func(ctx context.Context, spec Spec) (*Worker, error)

// Config holds the router's bounds. A duration of 0 is off, except where said.
type Config struct {
	Policy            Policy        // nil = LeastLoaded
	ConnectTimeout    time.Duration // of a look at a quiet worker; 0 = defaultLookTimeout
	FirstTokenTimeout time.Duration
	StallTimeout      time.Duration
	WorkerWaitTimeout time.Duration // how long a request waits for a worker; 0 = it does not wait
	InhibitDuration   time.Duration // 0 = failed workers stay in rotation
	HealthInterval    time.Duration // 0 = no probes, time alone brings workers back
	DrainTimeout      time.Duration // how long the streams of a drained worker may still run there
	MoveSpacing       time.Duration // between two starts of moved requests on one worker; 0 = none

	// Forget is called when a worker that SetWorkers names no longer is gone for good,
	// after the last Attach of it has returned; nil = nobody wants to know.
	Forget func(workerID string)

	// Dial opens the connection of a look; nil = a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Router is the engine.Engine of a set of workers. Make it with New; it asks
// no worker before Run runs.
type Router struct {
	attach Attach
	cfg    Config
	log    *slog.Logger
	rnd    func(n int) int
	clock  *alarm.Clock // of the watchdogs

	mu      sync.Mutex // guards what follows, and the fields of worker that say so
	workers []*worker  // in the order of their specs; then those that are being removed
	table   *table     // which worker serves what; immutable, replaced as a whole
	changed chan struct{}
	added   chan struct{} // tells Run of workers that nobody tends; holds one signal
	turns   uint64        // numbers the choices of the policy
	probes  uint64        // numbers the ids of probes

	nextMove map[string]time.Time // by model: when its next moved request may start
}

// New returns a router of the workers that specs name. Nothing is started: Run
// does that. rnd returns a number in [0, n) and is called by many goroutines.
// The metrics have the prefix namespace and are registered with reg.
func New(specs []Spec, attach Attach, cfg Config, log *slog.Logger, reg prometheus.Registerer, namespace string, rnd func(n int) int) *Router {
	if cfg.Policy == nil {
		cfg.Policy = LeastLoaded
	}
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	if cfg.ConnectTimeout <= 0 {
		cfg.ConnectTimeout = defaultLookTimeout
	}
	r := &Router{attach: attach, cfg: cfg, log: log, rnd: rnd, clock: alarm.NewClock(), changed: make(chan struct{}), added: make(chan struct{}, 1), nextMove: make(map[string]time.Time)}
	r.name(specs)
	r.table = buildTable(nil, r.workers, time.Now())
	reg.MustRegister(newCollector(r, namespace))
	return r
}

// Generate implements engine.Engine: it asks workers until one does not refuse.
//
// Besides the errors of the worker's client, which carry its id, the sequence
// ends with InvalidRequest if no worker of the model can do what the request
// asks for, and with NoWorker if none could be asked within WorkerWaitTimeout.
// An Overloaded or WorkerMisconfigured error means that all workers refused.
func (r *Router) Generate(ctx context.Context, req *engine.Request) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		c := newCall(r, req)
		for {
			a, failure := c.next(ctx)
			if failure != nil {
				yield(engine.Delta{}, failure)
				return
			}
			refusal := a.run(ctx, yield)
			if refusal == nil {
				return
			}
			c.refused(a.w, refusal)
		}
	}
}

// signal wakes every request that waits for a worker. It is called, with r.mu
// held, whenever a worker may have become available.
func (r *Router) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}
