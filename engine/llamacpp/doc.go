// Package llamacpp is the client of a llama.cpp server (llama-server): token ids
// in, token ids out, over POST /completion.
//
// The protocol has five traps, and each has its place here:
//
//   - A token after which the text ends inside a character gets no event; its id
//     is lost, and an event that follows counts it. The ids are reconstructed
//     from the text that the event completes (lost.go). Lost ids at the very end
//     have no text; they are asked for again (tail.go).
//   - There are no stop ids, so the client matches them and ends the stream.
//   - On SIGTERM a stream may stay open and silent. The server is asked for a
//     keep-alive every second, and three seconds without one are the end.
//   - The random generator starts anew with each request, so a continuation gets
//     another seed, or it would draw the numbers of the first attempt again.
//   - It cannot begin inside a character, so a continuation there takes a detour
//     (seam.go).
//
// It has no min_tokens either: such a request is asked for in two halves
// (mintokens.go). Penalties need nothing on a continuation: llama.cpp counts prompt and output in
// one window.
package llamacpp
