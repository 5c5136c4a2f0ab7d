// Package transport is the HTTP side that all engine clients share: one Link
// per worker, which posts a request, hands out the streamed answer, and says in
// the words of package engine what went wrong.
//
// It speaks HTTP/1.1 itself: the answer is read on the goroutine of whoever asked,
// out of a connection that has no buffer of its own, so an open stream costs a
// socket and a record. connection.go makes, keeps and closes connections, turns.go
// says when one may be made, request.go writes, head.go and framing.go read, link.go
// and response.go are what engine clients see.
//
// It knows nothing of any engine's dialect. What it takes care of:
//
//   - the connection is really closed when an attempt is left, before the call
//     returns, because that is what stops the work on the worker;
//   - connections that many requests want at once are made in turns, so that neither
//     the worker nor the streams that run here stand still for it;
//   - a kept connection that the worker closed in the meantime costs a second
//     try on a fresh one, not the worker's good name;
//   - nothing of a client's request goes to a worker but what the engine's
//     protocol needs, and nothing unbounded is read from one;
//   - "never arrived" (CannotConnect, ConnectionTimeout) and "was lost on the
//     way" (Disconnected) are told apart by whether there was a connection, not
//     by the text of an error.
package transport
