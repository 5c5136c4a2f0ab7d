package backend

import (
	"unicode/utf8"

	"baton/engine"
	"baton/tokenizer"
)

// primeIDs is how many ids at the end of the prompt the decoder sees, if they
// have text; else it sees more.
const primeIDs = 16

// prime brings a decoder into the state at the end of the prompt: the text has
// begun, so no blank is taken off its start, and a character that the prompt
// leaves unfinished is finished by the first generated tokens. Only the tail of
// the prompt matters for that. The prompt's own text goes to scratch.
func prime(d *tokenizer.Decoder, t *tokenizer.Tokenizer, prompt []engine.TokenID, scratch []byte) []byte {
	head, rest := splitRun(t, prompt)
	for n := primeIDs; ; n *= 4 {
		for _, id := range head[max(0, len(head)-n):] {
			scratch = d.Append(scratch, id)
		}
		if len(scratch) > 0 || n >= len(head) {
			break
		}
		scratch = d.Flush(scratch)[:0] // skipped ids only: begin again further back
	}
	for _, id := range rest {
		scratch = d.Append(scratch, id)
	}
	return scratch
}

// splitRun cuts a run of byte tokens (<0x0A>) off the end of a prompt and
// returns what is before it and those of its tokens that begin a character
// which is not finished. The finished ones must not get into the decoder: it
// holds a run back until its end, and would give them out as generated text.
func splitRun(t *tokenizer.Tokenizer, prompt []engine.TokenID) (head, rest []engine.TokenID) {
	start := len(prompt)
	for start > 0 && isByteToken(t, prompt[start-1]) {
		start--
	}
	run := prompt[start:]
	for size := min(utf8.UTFMax-1, len(run)); size > 0; size-- {
		var tail []byte
		for _, id := range run[len(run)-size:] {
			tail = append(tail, t.Bytes(id)...)
		}
		if utf8.RuneStart(tail[0]) && !utf8.FullRune(tail) {
			return prompt[:start], run[len(run)-size:]
		}
	}
	return prompt[:start], nil
}

// isByteToken tells whether id is one of the tokens that stand for a single
// byte where the vocabulary has no token for a character.
func isByteToken(t *tokenizer.Tokenizer, id engine.TokenID) bool {
	spelling, _ := t.Token(id)
	return len(spelling) == len("<0x00>") && spelling[:3] == "<0x" && len(t.Bytes(id)) == 1
}
