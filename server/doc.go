// Package server is the HTTP frontend: the OpenAI-compatible API, its streams
// and JSON replies, health, models and metrics.
//
// A request of the generation API goes through generate.go: its body is read
// within limits, the preprocessor makes choices of it, and each choice is a
// stream of text deltas that is ranged over until it ends (choice.go). One choice
// runs on the answer's own goroutine; several run on one goroutine each and share
// the answer. An answer is either a stream of server-sent events
// (stream.go, with the bytes of a chunk in chunk.go) or one JSON object
// (reply.go), made from the same deltas. The Responses API has a grammar of its own
// for both (responses.go, responsesstream.go), and everything else in common.
//
// What a failure looks like is one table in errors.go: before the first byte it
// is an HTTP status with OpenAI's error object, after it an event with that
// object, without a finish reason and without [DONE], because clients cannot
// tell a cut stream from a finished one otherwise. A client that left is
// answered with nothing, and its connection is aborted rather than ended.
//
// Most requests are plain: they are read in conn.go and head.go and answered through
// direct.go. All others are net/http's, and the handlers see no difference.
//
// The server holds no state but counters, the set of running requests, which
// the end of the process needs (shutdown.go) and operators look at (live.go), and
// the store of responses, for clients that refer to them (stored.go).
package server
