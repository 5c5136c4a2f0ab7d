// Package transport is the HTTP side that all engine clients share: one Link
// per worker, which posts a request, hands out the streamed answer, and says in
// the words of package engine what went wrong.
//
// It knows HTTP and nothing of any engine's dialect. What it takes care of:
//
//   - the connection is really closed when an attempt is left, before the call
//     returns, because that is what stops the work on the worker;
//   - a kept connection that the worker closed in the meantime costs a second
//     try on a fresh one, not the worker's good name;
//   - nothing of a client's request goes to a worker but what the engine's
//     protocol needs, and nothing unbounded is read from one;
//   - "never arrived" (CannotConnect, ConnectionTimeout) and "was lost on the
//     way" (Disconnected) are told apart by whether there was a connection, not
//     by the text of an error.
package transport
