// Package responsestore keeps responses for a while, so that clients of the Responses
// API can refer to what was said before instead of sending it again.
//
// What is kept is in memory, bounded in bytes and in time: the response that was not
// used for longest goes first, and one that was not used for an hour goes in any case.
// Nothing is written to disk, and nothing of it is logged.
//
// A conversation is a chain of immutable lists (items.go): what was sent to a response,
// then what it answered, then what was sent to the next one. A response that goes on
// from another one holds the chain and none of its bytes anew, so that a long
// conversation costs what was said in it once. A list is kept as long as a response
// needs it, also when the response that it came with was deleted or had to go.
//
// Each response belongs to the client that asked for it (Owner). To all others it does
// not exist.
package responsestore
