package transport

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxSentKeys bounds the keys that are remembered. A key file may change while
// answers to the last key are still to come.
const maxSentKeys = 4

// noteKey remembers a key that is sent.
func (l *Link) noteKey(key string) {
	l.keysMu.Lock()
	defer l.keysMu.Unlock()
	if !slices.Contains(l.sentKeys, key) {
		l.sentKeys = append(l.sentKeys[max(0, len(l.sentKeys)+1-maxSentKeys):], key)
	}
}

// blot keeps the keys that were sent out of a text, also as they stand in
// quotation marks. Workers, and proxies before them, repeat in their complaints
// what they were sent, and a complaint goes on into the log and to the client.
func (l *Link) blot(text string) string {
	l.keysMu.Lock()
	defer l.keysMu.Unlock()
	for _, key := range l.sentKeys {
		quoted := strconv.Quote(key)
		text = strings.ReplaceAll(text, key, "[key]")
		text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], "[key]")
	}
	return text
}

// maxSaidBytes bounds what an error repeats of a worker's words.
const maxSaidBytes = 1000

// plain makes a worker's words fit to be shown: one line of bounded length, with
// nothing in it that a terminal would obey.
func plain(text string) string {
	if len(text) > maxSaidBytes {
		text = strings.ToValidUTF8(text[:maxSaidBytes], "") + "…"
	}
	return strings.Map(func(c rune) rune {
		switch {
		case c == '\n' || c == '\t' || c == '\r':
			return ' '
		case !unicode.IsPrint(c):
			return unicode.ReplacementChar
		}
		return c
	}, text)
}

// blotError is err with blot's text, made plain. It is still what it was.
func (l *Link) blotError(err error) error {
	text := err.Error()
	if clean := plain(l.blot(text)); clean != text {
		return &blottedError{clean, err}
	}
	return err
}

type blottedError struct {
	text string
	err  error // not fit to be shown
}

func (e *blottedError) Error() string { return e.text }
func (e *blottedError) Unwrap() error { return e.err }
