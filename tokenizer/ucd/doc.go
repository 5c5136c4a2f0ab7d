// Package ucd holds what the reference tokenizer library knows about Unicode,
// as it was probed code point by code point.
//
// The tables of the Go release cannot be used: its Unicode version is another
// one than that of the reference's regular expressions (16), which in turn is
// another one than that of the reference's normalizers (9). \p{L} alone differs
// from Go 1.26 in 4,924 code points, and each of them would split a text at
// another place.
//
// The recording is unicode.txt, made by test/models/record-unicode.mjs; tables.go
// is made from it by "go generate".
package ucd

//go:generate go run generate.go
