// Package frame reads the JSON objects that engines send, one per event, without
// building a tree: a client walks over the keys, takes what it knows and skips
// the rest. It does not allocate at steady state, which matters because a
// frontend reads one such object per generated token.
//
// A frame is all or nothing. The Scanner checks the whole grammar, skipped values
// included, and a client uses nothing of a frame before End has said that it was
// complete: of a cut `"token_ids":[12` nobody knows whether 123 was meant. The
// one liberty taken is that NaN and Infinity are numbers, because Python's
// encoder writes them.
//
// What two engines say in the same words is read here as a whole ([Completion]). Of
// what engines are sent it writes the list of ids ([WithIDs]).
package frame
