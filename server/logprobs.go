package server

import (
	"bytes"
	"unicode/utf8"

	"baton/backend"
)

// A logprobList collects the logprobs of some tokens in one of the API's two
// shapes. A stream resets it for each chunk, a JSON reply keeps it to the end.
type logprobList interface {
	add(tokens []backend.Logprob)
	appendTo(dst []byte) []byte // null if there is no token
	reset()
}

// chatLogprobs is the shape of chat: an array of objects.
type chatLogprobs struct{ content []byte }

func (l *chatLogprobs) reset() { l.content = l.content[:0] }

func (l *chatLogprobs) add(tokens []backend.Logprob) {
	for i := range tokens {
		t := &tokens[i]
		b := appendComma(l.content)
		b = append(appendTokenFields(append(b, '{'), t.Token, t.Logprob), `,"top_logprobs":[`...)
		for j := range t.Top {
			if j > 0 {
				b = append(b, ',')
			}
			b = append(appendTokenFields(append(b, '{'), t.Top[j].Token, t.Top[j].Logprob), '}')
		}
		l.content = append(b, "]}"...)
	}
}

func (l *chatLogprobs) appendTo(dst []byte) []byte {
	if len(l.content) == 0 {
		return append(dst, "null"...)
	}
	dst = append(append(dst, `{"content":[`...), l.content...)
	return append(dst, `],"refusal":null}`...)
}

// appendTokenFields appends the text of a token, which may be no whole
// character, its exact bytes, and its logprob.
func appendTokenFields(dst, token []byte, logprob float64) []byte {
	dst = appendString(append(dst, `"token":`...), token)
	dst = appendLogprob(append(dst, `,"logprob":`...), logprob)
	dst = append(dst, `,"bytes":[`...)
	for i, c := range token {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendInt(dst, int(c))
	}
	return append(dst, ']')
}

// textLogprobs is the shape of completions: four arrays side by side.
type textLogprobs struct {
	tokens, logprobs, tops, offsets []byte

	topCount int // how many alternatives were asked for; 0 = top_logprobs is null
	offset   int // of the next token in the text, in characters; it never goes back
}

func (l *textLogprobs) reset() {
	l.tokens, l.logprobs, l.tops, l.offsets = l.tokens[:0], l.logprobs[:0], l.tops[:0], l.offsets[:0]
}

func (l *textLogprobs) add(tokens []backend.Logprob) {
	for i := range tokens {
		t := &tokens[i]
		l.tokens = appendTokenName(appendComma(l.tokens), t.Token)
		l.logprobs = appendLogprob(appendComma(l.logprobs), t.Logprob)
		if l.topCount > 0 {
			l.tops = appendTopObject(appendComma(l.tops), t)
		}
		l.offsets = appendInt(appendComma(l.offsets), l.offset)
		l.offset += charactersBegun(t.Token)
	}
}

func (l *textLogprobs) appendTo(dst []byte) []byte {
	if len(l.tokens) == 0 {
		return append(dst, "null"...)
	}
	dst = append(append(dst, `{"tokens":[`...), l.tokens...)
	dst = append(append(dst, `],"token_logprobs":[`...), l.logprobs...)
	if l.topCount > 0 {
		dst = append(append(dst, `],"top_logprobs":[`...), l.tops...)
		dst = append(dst, `],"text_offset":[`...)
	} else {
		dst = append(dst, `],"top_logprobs":null,"text_offset":[`...)
	}
	return append(append(dst, l.offsets...), "]}"...)
}

// appendTopObject appends the alternatives of a token, itself among them, as an
// object with their texts as keys. The first of equal texts, which is the more
// likely one, stands.
func appendTopObject(dst []byte, t *backend.Logprob) []byte {
	dst = append(dst, '{')
	hasChosen := false
	for i := range t.Top {
		token := t.Top[i].Token
		if hasToken(t.Top[:i], token) {
			continue
		}
		hasChosen = hasChosen || bytes.Equal(token, t.Token)
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendLogprob(append(appendTokenName(dst, token), ':'), t.Top[i].Logprob)
	}
	if !hasChosen {
		if len(t.Top) > 0 {
			dst = append(dst, ',')
		}
		dst = appendLogprob(append(appendTokenName(dst, t.Token), ':'), t.Logprob)
	}
	return append(dst, '}')
}

func hasToken(top []backend.TopLogprob, token []byte) bool {
	for i := range top {
		if bytes.Equal(top[i].Token, token) {
			return true
		}
	}
	return false
}

// appendTokenName appends the text of a token. This shape has no field for
// bytes, so a token that is no whole character is written as OpenAI does,
// "bytes:\xe2\x80": otherwise all of them would have the same name.
func appendTokenName(dst, token []byte) []byte {
	if utf8.Valid(token) {
		return appendString(dst, token)
	}
	dst = append(dst, `"bytes:`...)
	for _, c := range token {
		dst = append(dst, '\\', '\\', 'x', hexDigits[c>>4], hexDigits[c&0xf])
	}
	return append(dst, '"')
}

func charactersBegun(token []byte) int {
	n := 0
	for _, c := range token {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}

func appendComma(list []byte) []byte {
	if len(list) > 0 {
		return append(list, ',')
	}
	return list
}
