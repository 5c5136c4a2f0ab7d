// Baton is a frontend with an OpenAI-compatible API for self-hosted workers of
// language models. It carries a running answer from a dying worker to a living
// one.
//
// This package is the only one that knows all others, and holds what is left to
// a main:
//
//	main.go       the subcommands, and how a failure becomes one sentence
//	serve.go      the wiring: serve reads as the pipeline
//	attach.go     what is behind a worker's address: engine, models, tokenizer
//	lifecycle.go  from the open port to the last answer after a signal
//	demo.go       the story of `baton demo`, told with real processes
//
// The demo starts this same binary as its workers and its frontend, kills
// workers with SIGKILL, and talks to the frontend as any client does; it takes no
// short cut through the packages below, so what it shows is what is served.
package main
