package server

import (
	"bytes"

	"baton/backend"
)

// outputLogprobs finds out which tokens are those of the text that is shown: others
// open and close things, or are a thought or a call. It belongs to one choice.
type outputLogprobs struct {
	plain bool // all tokens are of the text

	text   []byte // of the tokens that are not shown yet
	list   []byte // JSON objects of them, each with a comma behind it
	ends   []tokenEnd
	shown  []byte // JSON objects of those that the open item shows, with commas between them
	scores chatLogprobs
}

// A tokenEnd is where a token ends in the text and in the list.
type tokenEnd struct{ text, list int }

func (l *outputLogprobs) add(tokens []backend.Logprob) {
	for i := range tokens {
		l.scores.reset()
		l.scores.add(tokens[i : i+1])
		l.text = append(l.text, tokens[i].Token...)
		l.list = append(append(l.list, l.scores.content...), ',')
		l.ends = append(l.ends, tokenEnd{len(l.text), len(l.list)})
	}
}

// waiting reports whether there are tokens that nothing was shown of; l may be nil.
func (l *outputLogprobs) waiting() bool { return l != nil && len(l.ends) > 0 }

// take returns the tokens of a text that an item shows next, as JSON with commas
// between them, valid until the next call; none if the item is no message. What is
// before them was syntax, and is dropped.
func (l *outputLogprobs) take(text []byte, kind *itemKind) []byte {
	first, last := 0, len(l.ends)
	if at := l.find(text); at >= 0 && !l.plain && len(text) > 0 {
		for first < last && l.ends[first].text <= at {
			first++
		}
		last = first
		for last < len(l.ends) && (last == first || l.ends[last-1].text < at+len(text)) {
			last++
		}
	}
	var taken []byte
	if first < last && kind == messageItem {
		from := 0
		if first > 0 {
			from = l.ends[first-1].list
		}
		taken = l.list[from : l.ends[last-1].list-1] // without its last comma
		l.shown = append(appendComma(l.shown), taken...)
		taken = l.shown[len(l.shown)-len(taken):]
	}
	l.drop(last)
	return taken
}

// find returns where a text that is shown begins in that of the tokens; -1 if nowhere.
// What is before it may hold the same by chance, as </think> does, but rarely from the
// beginning of a token on.
func (l *outputLogprobs) find(text []byte) int {
	start := 0
	for _, end := range l.ends {
		if bytes.HasPrefix(l.text[start:], text) {
			return start
		}
		start = end.text
	}
	return bytes.Index(l.text, text)
}

// drop forgets the first n tokens that wait.
func (l *outputLogprobs) drop(n int) {
	if n == 0 {
		return
	}
	end := l.ends[n-1]
	l.text = append(l.text[:0], l.text[end.text:]...)
	l.list = append(l.list[:0], l.list[end.list:]...)
	l.ends = append(l.ends[:0], l.ends[n:]...)
	for i := range l.ends {
		l.ends[i].text -= end.text
		l.ends[i].list -= end.list
	}
}

// reset is called when an item ends.
func (l *outputLogprobs) reset() { l.shown = l.shown[:0] }
