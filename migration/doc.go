// Package migration is the migration operator, the reason why this project
// exists: when a worker fails, the request goes on elsewhere, from the exact
// token.
//
// What it must know of a request is a [continuation]: a pure state that sees
// every delta, judges every failure and builds the request for the next worker.
// It has no clock, no goroutine and no network, so it is tested exhaustively.
// [Operator] is the short loop around it: it ranges over one attempt after the
// other and hands their deltas on as one stream.
//
// Nothing is lost and nothing is doubled because of one rule: what was yielded
// has been delivered, what was not never existed. A frame cut in half is dropped
// with its connection by the engine client, and the next worker generates those
// tokens again.
package migration
