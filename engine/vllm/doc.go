// Package vllm is the client of a vLLM server: token ids in, token ids out, over
// one of two endpoints.
//
// POST /v1/completions with a prompt of ids and return_token_ids exists on every
// server since 0.10.2. POST /inference/v1/generate does the same without a
// tokenizer in between, but is off by default, and before 0.29 it could end a
// stream without saying why. So the first is the baseline, and the second is used
// when Probe finds it on a server that is new enough; should the server then
// refuse it, the request goes to the first, and so do all later ones of this
// Client until Probe finds another version.
//
// vLLM ends aborted, drained and dying requests with HTTP 200 and [DONE]. The
// only proof of a complete answer is a finish reason of success; everything else
// is an error, and what was received before it stays valid.
//
// Events that have arrived together become one delta, as vLLM's own server joins
// steps for a client that is slow to read. Nothing is ever waited for, so at an
// engine's pace each event is a delta; a frontend that fell behind catches up.
package vllm
