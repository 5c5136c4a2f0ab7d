// Package thinking lets a model think before an answer that is constrained.
//
// An engine enforces a constraint from the first token that it generates, so a model
// that reasons first could not, and what it wrote in place of a thought would be the
// answer. Some engines can be told at their start how a model marks its reasoning; an
// unmodified one was not. Here the answer of a request with a Thought is made in two
// parts on any engine: the reasoning, generated freely up to the tokens that end it,
// and the constrained rest, generated from the prompt and the reasoning. Where the
// model opens a thought by itself, its first token is looked at first; if it is none,
// it is dropped, and the constrained answer begins at once.
//
// The stage stands above migration, which carries the free part from worker to worker
// like every other one, and the constrained part until something of it was delivered.
package thinking
