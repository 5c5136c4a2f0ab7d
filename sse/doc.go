// Package sse speaks server-sent events in both directions: the Reader takes
// the streams of engines, the Writer makes the stream of a client.
//
// The two halves have opposite manners. Engines differ in spacing, line ends,
// comments and in how they break off, so the Reader accepts all of that; but it
// never hands out an event that was not terminated, because half an event can be
// valid text with wrong numbers in it. Clients, on the other hand, have sharp
// edges, so the Writer sends the one form that all of them read.
package sse
