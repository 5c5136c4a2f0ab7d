package server

import (
	"math"
	"strconv"
	"unicode/utf8"

	"baton/engine"
	"baton/jsonbytes"
)

// JSON is appended by hand: a chunk costs a hundred nanoseconds and no
// allocation this way, and several thousand with reflection.

const hexDigits = "0123456789abcdef"

// appendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD. Besides what JSON demands it escapes the line separators U+0085,
// U+2028 and U+2029, at which some clients cut the lines of a stream.
func appendString[S ~string | ~[]byte](dst []byte, s S) []byte {
	return append(appendEscaped(append(dst, '"'), s), '"')
}

// appendEscaped is appendString without the quotes.
func appendEscaped[S ~string | ~[]byte](dst []byte, s S) []byte {
	done := 0 // what of s has been appended
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[done:i]...)
			dst = jsonbytes.AppendEscaped(dst, c)
			i++
			done = i
			continue
		}
		// A character has at most four bytes; the conversion does not escape.
		r, size := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, s[done:i]...)
			dst = append(dst, "\ufffd"...)
			done = i + size
		case r == '\u0085' || r == '\u2028' || r == '\u2029':
			dst = append(dst, s[done:i]...)
			dst = append(dst, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&0xf], hexDigits[r>>4&0xf], hexDigits[r&0xf])
			done = i + size
		}
		i += size
	}
	return append(dst, s[done:]...)
}

// appendLogprob appends a number that is finite whatever the engine said.
func appendLogprob(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = engine.MissingLogprob
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }

// appendIDs appends an array of token ids.
func appendIDs(dst []byte, ids []engine.TokenID) []byte {
	return append(appendIDList(append(dst, '['), ids), ']')
}

func appendIDList(dst []byte, ids []engine.TokenID) []byte {
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(id), 10)
	}
	return dst
}

// A tokenUsage is what the answer to a request cost.
type tokenUsage struct {
	promptTokens, completionTokens int

	reasons         bool // reasoning is looked for
	reasoningTokens int
}

// add adds the reasoning of a choice; r may be nil.
func (u *tokenUsage) add(r *reading) {
	if r != nil && r.how.Options.Reasoning != nil {
		u.reasons = true
		u.reasoningTokens += r.reasoningTokens
	}
}

func (u *tokenUsage) appendTo(dst []byte) []byte {
	dst = appendInt(append(dst, `{"prompt_tokens":`...), u.promptTokens)
	dst = appendInt(append(dst, `,"completion_tokens":`...), u.completionTokens)
	dst = appendInt(append(dst, `,"total_tokens":`...), u.promptTokens+u.completionTokens)
	if u.reasons {
		dst = appendInt(append(dst, `,"completion_tokens_details":{"reasoning_tokens":`...), u.reasoningTokens)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendResponse appends it as responses have it. How much of a prompt a worker had in
// its cache is not known.
func (u *tokenUsage) appendResponse(dst []byte) []byte {
	dst = appendInt(append(dst, `{"input_tokens":`...), u.promptTokens)
	dst = append(dst, `,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0}`...)
	dst = appendInt(append(dst, `,"output_tokens":`...), u.completionTokens)
	dst = appendInt(append(dst, `,"output_tokens_details":{"reasoning_tokens":`...), u.reasoningTokens)
	dst = appendInt(append(dst, `},"total_tokens":`...), u.promptTokens+u.completionTokens)
	return append(dst, '}')
}
