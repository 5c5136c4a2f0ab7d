package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Kind says what happened to a request, not what to do next: the migration
// operator, the router and the server each have their own table for that.
type Kind uint8

const (
	Internal            Kind = iota // our own bug
	CannotConnect                   // refused, no route, name not found: the request never arrived
	ConnectionTimeout               // no connection within the connect bound
	Disconnected                    // the connection or the stream ended before a finish reason
	Stalled                         // silence beyond the first-token or the stall bound
	EngineShutdown                  // the engine says that it is going away, or is dead behind living HTTP
	Overloaded                      // 429 or 503, before the first token
	WorkerMisconfigured             // 401, 403, 404: the worker is not set up for us
	InvalidRequest                  // the request itself is at fault
	EngineError                     // 5xx, an error frame, finish "abort"
	ProtocolError                   // a frame or an id that cannot be
	NoWorker                        // the router had no worker to ask, and waiting did not help
	Cancelled                       // the caller left
	TimedOut                        // the deadline of the whole request has passed
	Drained                         // the worker is being emptied, and the request can go on elsewhere
	Poison                          // the request has taken down workers and is not given another one
)

var kindNames = [...]string{
	Internal:            "internal",
	CannotConnect:       "cannot_connect",
	ConnectionTimeout:   "connection_timeout",
	Disconnected:        "disconnected",
	Stalled:             "stalled",
	EngineShutdown:      "engine_shutdown",
	Overloaded:          "overloaded",
	WorkerMisconfigured: "worker_misconfigured",
	InvalidRequest:      "invalid_request",
	EngineError:         "engine_error",
	ProtocolError:       "protocol_error",
	NoWorker:            "no_worker",
	Cancelled:           "cancelled",
	TimedOut:            "timed_out",
	Drained:             "drained",
	Poison:              "poison",
}

// String is the kind's name in logs and metric labels.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Error is the only error type that leaves a Stream.
type Error struct {
	Kind     Kind
	WorkerID string // the worker concerned; "" if none was reached

	// Status is the HTTP status (or the code of an error frame) that the
	// worker answered with; 0 = none.
	Status int
	// RetryAfter is the worker's own hint; 0 = none.
	RetryAfter time.Duration
	// Message and Param are for the client, with InvalidRequest only: what the
	// engine said is wrong, and with which parameter ("" = unknown).
	Message string
	Param   string
	// Code is the API's machine-readable word for it; "" = none. Engines' own
	// words are not handed on, so only what is found out here has one.
	Code string

	// Elsewhere reports, with InvalidRequest only, that another worker may well take
	// the request: what this one says speaks of a limit that it was started with, or
	// not of the request for sure.
	Elsewhere bool

	// Shared reports that other requests were running on the worker when it was
	// lost, any of which may be why.
	Shared bool
	// Culprit reports that the worker is dead, that so is every one of the
	// request's Suspects, and that no other request which had lost a worker
	// before died with it. It is found out only where there are Suspects.
	Culprit bool

	Err error // the cause, for logs; may be nil
}

func (e *Error) Error() string {
	s := e.Kind.String()
	if e.WorkerID != "" {
		s = e.WorkerID + ": " + s
	}
	if e.Status != 0 {
		s = fmt.Sprintf("%s (status %d)", s, e.Status)
	}
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// IsLoss reports whether the failure may be the death of a worker at the hands of
// the request that ran there. A connection that was refused from the start is none,
// and neither is the 503 of an engine that was dead before the request came.
func (e *Error) IsLoss() bool {
	return e != nil && (e.Kind == Disconnected || e.Kind == EngineShutdown && e.Status != 503)
}

// ErrExhausted is in the chain of the error of a request that could not be sent
// because this process or machine is at a limit of its own: descriptors, ports,
// memory. The request has not reached the worker, and the worker is not to blame.
// The kind is Overloaded: the request is tried again a moment later, without using
// up a migration, and the client is told to come back if that does not help in time.
var ErrExhausted = errors.New("this machine is at its limits")

// AsError returns err as an *Error. What is none becomes one of kind Internal,
// so that tables above never meet a foreign error.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Err: err}
}

// CauseOf returns the Error of a request whose ctx has ended, or nil while ctx
// lives. Stages ask it before they judge any other error, because a leaving
// client makes transport errors that look like a dying worker.
func CauseOf(ctx context.Context) *Error {
	if ctx.Err() == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return &Error{Kind: TimedOut, Err: cause}
	}
	return &Error{Kind: Cancelled, Err: cause}
}
