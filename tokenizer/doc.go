// Package tokenizer turns text into the token ids of a model and back, as the
// Rust library "tokenizers" of Hugging Face does, byte for byte, because a
// prompt that is split differently is another prompt.
//
// A [Tokenizer] comes from a model's tokenizer.json ([Load], [Parse]) or, for a
// worker that has nothing but a .gguf file, from that file's header
// ([FromGGUF]). It serves the byte-pair-encoding models: byte-level ones
// (GPT-2's descendants) and SentencePiece-style ones with byte fallback; from a
// .gguf header also unigram, WordPiece and RWKV models.
//
// # The way of a text
//
// [Tokenizer.Encode] sends a text through five steps, each in a file of its own:
//
//	added tokens   <|im_start|> and its like are cut out          added.go
//	normalizer     NFC, prefix, replacements                      normalizer.go, unicodeform.go
//	pre-tokenizer  cuts the rest into words                       pretokenizer.go, segments.go, package pattern
//	model          merges each word's symbols by rank             bpe.go, vocabulary.go, merges.go, blanks.go
//	post-processor puts ids such as BOS around it                 processor.go
//
// A long text is cut into parts that several processors encode, with the same ids:
// long.go. Conversations that go on are encoded from where they do: prefixes.go.
//
// A file is read in load.go, model.go, mergelist.go and jsonscan.go, and put together
// in assemble.go; a .gguf header in gguf.go, with the splits that it only names
// in ggufsplits.go, merges by score in ggufscores.go, and in ggufspecial.go what
// llama.cpp knows of special tokens by their names. Its other models are in
// unigram.go, with charsmap.go, and wordpiece.go; ggufothers.go reads them. A
// .gguf header's added tokens are cut out in another order: partition.go.
//
// The way back (decoding.go, decoder.go) is a [Decoder], which is fed id by id
// and gives out text as soon as it is decided: never half a character, never a
// replacement character that the next token would have made a real one.
// Decoding a whole list is the same decoder in a loop, so both agree by
// construction.
//
// # Where exactness comes from
//
// Behaviour was recorded from the reference library with the scripts in
// test/models and is replayed by the tests here: over a thousand hard strings
// for each model family. For .gguf files it is llama.cpp's behaviour, but for
// its approximations of a model's split (docs/tokenizers.md). What a file asks for and this package does not
// do is an error that names it; nothing is approximated in silence. Unicode is
// the reference's own, not Go's: package ucd.
//
// A file is not trusted. Every part has a named limit (limits.go), so that a
// hostile one costs bounded memory and ends in one clear error.
package tokenizer
