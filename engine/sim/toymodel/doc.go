// Package toymodel makes the model folder of the simulated worker: a real
// Hugging Face layout with a byte-level BPE tokenizer of a few thousand ids.
//
// The vocabulary is what a frontend finds hard, in small: the 256 byte tokens,
// a few hundred English words that are one token each with and without their
// leading space, multi-byte characters, pieces of characters, emoji that only
// several tokens together spell, and three special tokens and two that mark a thought. Its merges are
// trained, not written: training goes on until each word is one symbol, and
// because encoding applies merges in the order in which training found them,
// each word then encodes to exactly one id.
//
// Files returns the folder; the generate command writes it, and a test fails
// when the committed folder is not what Files returns.
package toymodel
