// Package backend is the backend operator: it turns a stream of token deltas
// into a stream of text deltas. It owns the incremental detokenizer, the stop
// strings and the text of logprobs, and it never learns that a worker changed:
// it sits above the migration, so a character or a stop string that a worker's
// death cuts in two is put together here without special code.
//
// # One step
//
//	ids    the end id is set apart: it is counted, not shown      choice.go
//	text   each id goes through one decoder per choice            prompt.go primes it
//	stop   each token's text goes through the matcher             stop.go
//	out    what no stop string can begin in is final              choice.go
//	       and with it go the logprobs of its tokens              logprobs.go
//
// # Text
//
// The text of a choice is what its tokens add to the prompt's: decode(prompt ++
// generated) without decode(prompt). Only so is prompt + text of a completion
// the text that the model wrote. In SentencePiece vocabularies, whose decoders
// take a blank off the start of a text, an answer may therefore begin with a
// blank, as it does with vLLM and SGLang.
//
// # Stop strings
//
// They are matched over the joined text of all tokens. Text is held back only
// while it may be the beginning of a stop string: the longest suffix that is a
// proper prefix of one. Matches are looked at token by token: the first token
// that completes any decides; among those it completes the one that begins
// first wins, and of two that begin together the shorter. While fewer than
// MinTokens tokens are generated no match counts, though one may begin there.
//
// If the stream fails, held text is not sent: what is certain has been sent.
package backend
