// Package gguf reads the header of a .gguf model file: the key/value metadata
// that stands in its first megabytes, never the weights behind it.
//
// A worker that runs llama.cpp has one file and nothing else: no tokenizer.json
// and no chat template beside it. Both are in the header, so a frontend that
// can read it needs nothing more from its user.
//
// The format is described in the GGUF specification of the ggml project
// (versions 2 and 3, little or big endian). A file is not trusted: every count
// and length is checked against a named limit and against what was really read
// before memory is taken for it.
package gguf
