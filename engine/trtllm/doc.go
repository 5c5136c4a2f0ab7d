// Package trtllm is the client of TensorRT-LLM's server (trtllm-serve): token ids
// in, token ids out, over POST /v1/completions with a prompt of ids and
// detokenize switched off, without which the server sends no ids.
//
// What is peculiar to it, and where it is dealt with:
//
//   - A field that the server does not know makes the whole request a 400. So
//     nothing is sent that not every version has, but what Probe has seen in the
//     server's own description of its requests (fields.go).
//   - The id that ended an answer is left out of it, unless it is asked for, and
//     in some cases even then. It is put back (ends.go).
//   - Nearly every exception is a 400, also those that say nothing of the request.
//     Such a request is offered to another worker (errors.go).
//   - 503 means that the engine is dead behind living HTTP, not that it is busy;
//     /v1/models goes on answering then (probe.go).
//   - /metrics gives each figure once, to whoever asks first. It is never asked.
//   - min_tokens spares only one of the end ids, and has counted the prompt in some
//     versions. Such a request is asked for in two halves (mintokens.go).
//
// What it cannot do: alternatives of log-probabilities, which the server names by
// their text and not by their ids; cache_salt; priority before the version that has
// the field. The server does not list LoRA adapters, so there are none here. It
// does not tell its context length either; that of the model's files is used.
//
// The facts are those of the project's sources (tensorrt_llm/serve/openai_server.py,
// openai_protocol.py, postprocess_handlers.py, executor/result.py, and
// docs/source/features/sampling.md), versions 1.0 to 1.4. It was not run against a
// live server.
package trtllm
