// Package sglang is the client of an SGLang server: token ids in, token ids out,
// over POST /generate with input_ids, which every server has and which gives
// every option.
//
// By default the server repeats the whole answer in each event, and only with
// --incremental-streaming-output what is new. Which of the two it does is taken
// from each stream, by the server's own count of tokens, and its settings count
// only where an event fits both: an id lost or doubled here would spoil all that
// follows. Of a repeated
// answer only the new end is read (package frame, Growing), so that an answer
// does not cost the square of its length. Of its text only the grammar is checked.
//
// The server says what went wrong in three dialects: a status, an error object
// within a stream of status 200, and an event whose finish reason is "abort", with
// a status inside or none. An event of that kind may come with ids and counters
// from another place than the others, so nothing is taken from it.
//
// What a server can do follows from how it was started: a seed has an effect with
// --enable-deterministic-inference, a priority needs --enable-priority-scheduling, a
// minimum of tokens a tokenizer. Probe finds that out, and Parameters says so.
//
// An id outside the vocabulary ends the whole server, so none is ever sent.
package sglang
