// Package router chooses a worker for each request and keeps what is known of
// the workers: what they serve, how loaded they are, whether they may be asked.
// It implements engine.Engine.
package router

import (
	"context"
	"time"

	"baton/engine"
)

// A Spec names a worker before anything is known of it.
type Spec struct {
	ID  string // host:port, with -N where that is not unique
	URL string // http://host:port
}

// A Worker is what Attach found behind a Spec.
type Worker struct {
	Client engine.Client
	Models []Model
}

// A Model is one model of one worker.
type Model struct {
	Name          string // public name
	Own           string // what the worker calls it
	ContextLength int    // in tokens; 0 = unknown
}

// Attach asks a worker what it is and builds its client. The router calls it in
// the background until it succeeds, and again when a worker came back after its
// connection was lost. Its error is one sentence for the log.
type Attach func(ctx context.Context, spec Spec) (*Worker, error)

// Config holds the router's bounds. A duration of 0 is off, except where said.
type Config struct {
	Policy            Policy
	ConnectTimeout    time.Duration // of a look at a quiet worker
	FirstTokenTimeout time.Duration
	StallTimeout      time.Duration
	WorkerWaitTimeout time.Duration // how long a request waits for a worker
	InhibitDuration   time.Duration
	HealthInterval    time.Duration
}

// A Candidate is what a policy may look at.
type Candidate struct {
	WorkerID string
	InFlight int // requests running there now
}

// A Policy chooses one of the candidates, of which there is at least one.
type Policy func(req *engine.Request, candidates []Candidate) int

// ModelStatus is a snapshot of one model.
type ModelStatus struct {
	Name          string
	Ready, Total  int       // workers that can be asked now; workers that serve it
	ContextLength int       // the largest among its workers
	Since         time.Time // when it was first seen
}
