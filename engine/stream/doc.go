// Package stream is what the clients of several engines do alike with an answer
// that comes as a stream of events: they make deltas of events and hand them on
// ([Answer], [Deliver]), give a request with min_tokens as two where the engine
// does not have it ([WithMinimum]), and tell the engine of requests that were left
// ([Aborts]).
//
// What an event says, and what a failure means, is the client's own.
package stream
