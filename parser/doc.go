// Package parser finds what a model means in what it writes: reasoning, tool
// calls, and text for people. Each family of models writes them in its own way,
// which its chat template teaches it; a [Format] is one such way.
//
// A [Parser] is fed the text of one answer, piece by piece, and gives out events
// at once: text, reasoning, a call with its name, and the call's arguments as JSON.
// Everything is append-only: what was given out is never taken back, and the
// events joined together are the same however the text was cut into pieces. The
// parser sits above migration and is fed each token's text once, so a worker's
// death in the middle of a call does not show.
//
// How that is done. Outside of calls a finder waits for the markers that open
// something, and holds no more text than could be the beginning of one. Behind a
// marker a small machine, one for each shape of call, reads byte by byte and
// the parser holds the text until the machine is sure that this is a call: its
// name and the beginning of its arguments have been read. From then on the
// arguments flow. If it turns out to be something else, the first byte of the
// marker is text, and reading goes on behind it, because another marker may stand
// in what was held. How much is read again is bounded by a credit that grows with
// the text, so that the time is linear in it. No output of a model is an error:
// what does not fit its format is text.
//
// The rules:
//
//   - What was given out cannot be taken back, so a call whose arguments go wrong
//     after their beginning stays a call: its arguments are what the model wrote.
//   - An answer may end anywhere (max_tokens). Text that was held is text then,
//     a call keeps the arguments as far as they were written. Of a marker that is cut
//     off inside or behind a call nothing is given out.
//   - Names that are not among the request's tools: behind a marker that only a call
//     has, the call is given anyway, as vLLM does, because a client can answer it with
//     an error that the model understands. In formats without such a marker (a bare
//     JSON object, a bare Python list), and inside reasoning, it is text.
//   - A call inside reasoning ends the reasoning, as in vLLM. The marker that would
//     have ended it is dropped if it comes later.
//   - Reasoning is never given out behind content: a marker that opens reasoning
//     counts only before the first content or call, and is text later. Harmony is the
//     exception, where each message says itself what it is.
//   - White space alone, at the beginning of an answer, around a call and beside
//     the markers of reasoning, is layout, and dropped; all other text is verbatim.
package parser
