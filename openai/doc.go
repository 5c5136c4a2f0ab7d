// Package openai holds the error object of the public API and its vocabulary.
//
// It has no behaviour of the product in it: the preprocessor says what is wrong
// with a request, the server says what happened to one, and both say it with an
// [Error]. Types and codes are those of OpenAI's API, because SDKs and agents
// compare these strings.
//
// Requests have no types here: their fields are read one by one, so that each
// error can name its field and nothing is lost on the way (package preprocess).
// Replies, chunks and errors are appended by hand (package server).
package openai
