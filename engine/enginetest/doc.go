// Package enginetest is the conformance suite of engine clients. A client passes
// if it reads everything its engine may send, however it is cut and padded, and
// if it says of every failure what it was.
//
// Run plays a fake server, whose dialect the client's test describes with a few
// functions. Replay plays bytes that a real server once sent. Both run client
// and server over an in-memory Network inside a testing/synctest bubble: time is
// virtual, nothing depends on the machine's speed, and a goroutine that is left
// behind fails the test.
package enginetest
