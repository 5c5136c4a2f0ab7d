// Package openai holds the wire types of the public API and its error envelope.
//
// It has no behaviour of the product in it: the preprocessor says what is wrong
// with a request, the server says what happened to one, and both say it with an
// [Error], which knows how it looks on the wire. The reply types are the JSON
// replies; the chunks of a stream are written by the server, token by token,
// and have the same field names.
//
// The vocabulary of types and codes is that of OpenAI's API, because SDKs and
// agents compare these strings.
package openai
