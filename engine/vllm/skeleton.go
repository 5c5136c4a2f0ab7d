package vllm

import (
	"bytes"
	"math"
	"slices"

	"baton/engine"
)

// A skeleton is what the usual events of one answer have in common: every byte but
// the text and the ids of the tokens. An event that agrees with it says nothing
// else than the one from which it was learned, which was read as JSON, so its ids
// can be taken where they stand. It is learned anew when the events change.
type skeleton struct {
	head, middle, tail []byte // before the text, between that and the ids, behind them; middle is empty if there is no text
	learned            int
}

const (
	// maxSkeletonBytes bounds what is kept for an answer.
	maxSkeletonBytes = 640
	// maxLearned bounds how often it is learned: events that always differ are read
	// as JSON.
	maxLearned = 4
)

var textField, idsField = []byte(`"text":"`), []byte(`"token_ids":[`)

// learn makes the skeleton of an event that holds ids and nothing else of
// interest. It does nothing if the event is not of the usual form.
func (k *skeleton) learn(data []byte, ids []engine.TokenID) {
	if k.learned >= maxLearned || len(data) > maxSkeletonBytes {
		return
	}
	at := bytes.Index(data, idsField)
	if at < 0 || at != bytes.LastIndex(data, idsField) {
		return
	}
	at += len(idsField)
	found, n, ok := scanIDs(nil, data[at:])
	if !ok || !slices.Equal(found, ids) {
		return
	}
	own := bytes.Clone(data)
	head, middle := own[:at:at], own[at:at]
	if text := bytes.Index(head, textField); text >= 0 {
		text += len(textField)
		size, ok := scanText(head[text:])
		if !ok {
			return
		}
		head, middle = own[:text:text], own[text+size:at:at]
	}
	k.head, k.middle, k.tail = head, middle, own[at+n:]
	k.learned++
}

// read appends the ids of an event that agrees with the skeleton to dst.
func (k *skeleton) read(dst []engine.TokenID, data []byte) (ids []engine.TokenID, ok bool) {
	if k.learned == 0 || !bytes.HasPrefix(data, k.head) {
		return dst, false
	}
	rest := data[len(k.head):]
	if len(k.middle) > 0 {
		n, ok := scanText(rest)
		if !ok || !bytes.HasPrefix(rest[n:], k.middle) {
			return dst, false
		}
		rest = rest[n+len(k.middle):]
	}
	ids, n, ok := scanIDs(dst, rest)
	if !ok || !bytes.Equal(rest[n:], k.tail) {
		return dst, false
	}
	return ids, true
}

// scanText returns the length of the text before the quote that ends it, not ok if
// there is none, or a control character or a rare escape before it.
func scanText(b []byte) (n int, ok bool) {
	for ; n < len(b); n++ {
		switch c := b[n]; {
		case c == '"':
			return n, true
		case c < ' ':
			return 0, false
		case c == '\\':
			if n++; n == len(b) || bytes.IndexByte([]byte(`"\/bfnrt`), b[n]) < 0 {
				return 0, false
			}
		}
	}
	return 0, false
}

// scanIDs appends the numbers of a list that ends with a bracket, and returns
// where that is. The list has no blanks and is not empty.
func scanIDs(dst []engine.TokenID, b []byte) (ids []engine.TokenID, n int, ok bool) {
	id, digits := 0, 0
	for n, c := range b {
		switch {
		case '0' <= c && c <= '9':
			if digits > 0 && id == 0 { // JSON has no numbers with leading zeros
				return dst, 0, false
			}
			id, digits = id*10+int(c-'0'), digits+1
			if id > math.MaxInt32 {
				return dst, 0, false
			}
		case (c == ',' || c == ']') && digits > 0:
			dst = append(dst, engine.TokenID(id))
			if c == ']' {
				return dst, n, true
			}
			id, digits = 0, 0
		default:
			return dst, 0, false
		}
	}
	return dst, 0, false
}
