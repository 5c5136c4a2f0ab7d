// Package router chooses a worker for each request and keeps what is known of
// the workers: what they serve, how loaded they are, whether they may be asked.
// It implements engine.Engine.
//
// # One request
//
// [Router.Generate] makes one attempt after another until one is not refused:
//
//	filter   which workers can do it at all: model, parameters, context   table.go
//	choose   which of them may be asked now; the policy takes one         call.go, policy.go
//	attempt  count it in flight, range over the client, watch the clock   attempt.go, watchdog.go
//	judge    what the end of the attempt says about the worker            worker.go
//
// A refusal (429, 503, 401, 403, 404 before the first token) leads to the next
// worker, each worker once per round. Any other failure is returned: whether
// the request is carried to another worker is decided above.
//
// # The state of a worker
//
// A worker is "starting" until Attach has found out what it is. From then on it
// is "ready" or, after a failure, "inhibited". What ends an inhibition depends
// on the failure:
//
//   - a lost or refused connection: the end of its time. The worker is then
//     "suspect": one request goes first and all others wait for its first token.
//     It has to be attached again before, because another process, with another
//     model, may listen there now.
//   - a stall, an engine error, a protocol error, an engine shutdown, or a
//     worker that is set up wrongly for us: only a one-token generation that
//     succeeded, because such a worker answers /health with 200.
//
// A good one-token generation also ends an inhibition of the first sort early.
// The time doubles for each failure up to [maxInhibition] and starts anew after
// a generation that finished. With HealthInterval 0 there are no probes: then
// time alone brings every worker back, with one request first.
//
// "Overloaded" is no failure: the worker stays ready, and is left alone for the
// moment it asked for.
//
// # Silence
//
// The watchdog measures the silence of the worker only; while the consumer holds
// a delta the clock stands still. A stream that has been silent for a second, or
// ten times its usual pace, makes the router look whether the worker's port is
// open: live servers that are told to stop close their port at once and leave
// their streams open and silent for up to a minute. A stream that has all its
// tokens waits only a moment for its finish reason.
//
// # Who owns what
//
// All state lies in Router and its workers under one mutex; others get copies.
// [Router.Run] owns all goroutines, one per worker, except that a watchdog looks at a
// port on a goroutine of its own; its attempt waits for that. The watchdogs of all
// attempts are alarms of one clock.
//
// # Who comes and goes
//
// [Router.SetWorkers] changes the set of workers while requests run (workers.go). One
// that is taken out is drained, and forgotten when nothing runs there.
//
// An operator's drain (drain.go) takes a worker out and lets its streams move
// away one by one. Requests that lost their worker start spread in time
// (pace.go). One that may have killed its worker starts after the others and apart
// from them (caution.go), and if it loses another one, the router looks whether
// both are really gone (gone.go).
package router
