package sim

import (
	"strings"
	"unicode/utf8"

	"baton/engine"
)

// A textStream detokenizes as the engines do: text comes out only up to the
// last whole character; what can never become one comes out as U+FFFD.
type textStream struct {
	words *vocabulary
	held  []byte // begins a character, or is empty
}

// add returns the text that id completes.
func (t *textStream) add(id engine.TokenID) string {
	t.held = t.words.text(t.held, id)
	ready := len(t.held) - len(tail(t.held))
	out := strings.ToValidUTF8(string(t.held[:ready]), "\uFFFD")
	t.held = append(t.held[:0], t.held[ready:]...)
	return out
}

// pending reports whether the text ends inside a character.
func (t *textStream) pending() bool { return len(t.held) > 0 }

// tail returns the bytes at the end of text that begin a character and do not
// end it.
func tail(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if end := text[len(text)-n:]; utf8.RuneStart(end[0]) {
			if utf8.FullRune(end) {
				break
			}
			return end
		}
	}
	return nil
}
