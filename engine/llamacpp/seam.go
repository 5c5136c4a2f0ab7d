package llamacpp

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"baton/engine"
)

// The server refuses to generate from inside a character: it parses what it has
// generated, from the first byte on, and answers an output that begins with the
// middle of a character with status 500. An answer of another engine can be cut
// there. So the character is asked for from its beginning, under a grammar that
// allows those characters only that begin with the bytes already delivered; the
// ids of the rest of it are delivered, and the request goes on behind them.

const (
	maxSeamIDs    = 8  // looked at for the beginning of the last character
	seamBudget    = 12 // tokens for one character, the end id and the ids before it
	maxSeamPieces = 4  // ids for the rest of a character
)

// A seam is a place inside a character at which a prompt ends.
type seam struct {
	ids  int    // how many ids at the end reach into the character
	text []byte // what they say before it: whole characters
	open []byte // the character's bytes so far
}

// find returns the seam at the end of ids; false if they end between characters.
func (l *lostIDs) find(ids []engine.TokenID) (seam, bool) {
	if l.piece == nil {
		return seam{}, false
	}
	var tail []byte
	open := 0
	for n := 1; n <= min(maxSeamIDs, len(ids)); n++ {
		tail = append(slices.Clone(l.piece(ids[len(ids)-n])), tail...)
		if open == 0 {
			open = openBytes(tail)
		}
		switch text := tail[:len(tail)-open]; {
		case open > 0 && utf8.Valid(text):
			return seam{ids: n, text: text, open: tail[len(tail)-open:]}, true
		case open == 0 && len(tail) >= utf8.UTFMax-1:
			return seam{}, false
		}
	}
	return seam{}, false
}

// openBytes returns how many bytes at the end of tail begin a character without
// ending it.
func openBytes(tail []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(tail); n++ {
		if last := tail[len(tail)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// grammar allows the text of the seam and one character that fits its bytes.
func (s seam) grammar() string {
	var b strings.Builder
	b.WriteString("root ::= ")
	if len(s.text) > 0 {
		b.WriteByte('"')
		for _, r := range string(s.text) {
			fmt.Fprintf(&b, `\U%08X`, r)
		}
		b.WriteString(`" `)
	}
	lowest, highest := s.characters()
	fmt.Fprintf(&b, `[\U%08X-\U%08X]`, lowest, highest)
	return b.String()
}

// characters returns the range of characters whose encoding begins with open.
func (s seam) characters() (lowest, highest rune) {
	lead := s.open[0]
	size, least := 2, rune(0x80)
	bits := rune(lead & 0x1f)
	switch {
	case lead >= 0xf0:
		size, least, bits = 4, 0x10000, rune(lead&0x07)
	case lead >= 0xe0:
		size, least, bits = 3, 0x800, rune(lead&0x0f)
	}
	for _, b := range s.open[1:] {
		bits = bits<<6 | rune(b&0x3f)
	}
	missing := 6 * (size - len(s.open))
	lowest, highest = bits<<missing, (bits+1)<<missing-1
	if lead == 0xed {
		highest = min(highest, 0xd7ff) // surrogates are no characters
	}
	return max(lowest, least), min(highest, utf8.MaxRune)
}

// generateAcross gives a request whose ids end at a seam.
func (c *Client) generateAcross(ctx context.Context, req *engine.Request, s seam) engine.Stream {
	return func(yield func(engine.Delta, error) bool) {
		if req.Constraint != nil { // which says nothing of half a character
			yield(engine.Delta{}, &engine.Error{Kind: engine.InvalidRequest, WorkerID: c.link.WorkerID(), Status: 400, Param: "prompt",
				Message: "The prompt ends inside a character, where this engine cannot begin a constrained answer."})
			return
		}
		ids, err := c.finishCharacter(ctx, req, s)
		if e := engine.AsError(err); err != nil && e.Kind == engine.ProtocolError && req.Carried < s.ids {
			// The bytes are the client's own, and need not be of any character.
			err = &engine.Error{Kind: engine.InvalidRequest, WorkerID: e.WorkerID, Status: 400, Param: "prompt", Err: e,
				Message: "The prompt ends inside a character, which this engine cannot go on from."}
		}
		if err != nil {
			yield(engine.Delta{}, err)
			return
		}
		rest := *req
		rest.TokenIDs = slices.Concat(req.TokenIDs, ids)
		rest.Carried += len(ids)
		rest.Stop.MaxTokens -= len(ids)
		delta := engine.Delta{TokenIDs: ids}
		if rest.Stop.MaxTokens <= 0 {
			delta.TokenIDs, delta.FinishReason = ids[:req.Stop.MaxTokens], engine.FinishLength
		}
		if i := slices.IndexFunc(delta.TokenIDs, req.Stop.Ends); i >= 0 {
			delta.TokenIDs, delta.FinishReason = delta.TokenIDs[:i+1], engine.FinishStop
		}
		if req.Output.Logprobs { // those of another question: under a grammar, and perhaps for other ids
			for _, id := range delta.TokenIDs {
				delta.Logprobs = append(delta.Logprobs, engine.TokenLogprob{ID: id, Logprob: engine.MissingLogprob})
			}
		}
		if !yield(delta, nil) || delta.FinishReason != "" {
			return
		}
		c.generateWhole(ctx, &rest, "")(yield)
	}
}

// finishCharacter asks for the character at the seam and returns ids for the
// part of it that has not been delivered yet.
func (c *Client) finishCharacter(ctx context.Context, req *engine.Request, s seam) ([]engine.TokenID, error) {
	first := *req
	first.TokenIDs = req.TokenIDs[:len(req.TokenIDs)-s.ids]
	first.Carried = max(0, req.Carried-s.ids)
	first.Stop = engine.StopConditions{MaxTokens: s.ids + seamBudget}
	first.Output = engine.OutputOptions{}
	first.Sampling.LogitBias = nil // it may forbid the end id, which ends the grammar
	var ids []engine.TokenID
	for delta, err := range c.generateWhole(ctx, &first, s.grammar()) {
		if e := engine.AsError(err); err != nil && e.Kind == engine.InvalidRequest && strings.Contains(e.Message, "grammar") {
			return nil, c.link.Error(engine.ProtocolError, "the grammar for the character at which the request continues: %s", e.Message) // it is ours
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, delta.TokenIDs...)
	}
	var text []byte
	for i, id := range ids {
		text = append(text, c.lost.piece(id)...)
		char, ok := bytes.CutPrefix(text, s.text)
		if !ok || !utf8.FullRune(char) {
			continue
		}
		r, size := utf8.DecodeRune(char)
		rest, ok := bytes.CutPrefix(char, s.open)
		if !ok || r == utf8.RuneError || size != len(char) {
			break
		}
		// Mostly the engine comes by the delivered ids again.
		if delivered := req.TokenIDs[len(first.TokenIDs):]; i >= len(delivered) && slices.Equal(ids[:len(delivered)], delivered) {
			return ids[len(delivered) : i+1], nil
		}
		for n := 1; n <= maxSeamPieces; n++ {
			if ids, ok := c.lost.pieces(rest, n); ok {
				return ids, nil
			}
		}
		break
	}
	return nil, c.link.Error(engine.ProtocolError, "the character at which the request continues could not be finished: %d ids", len(ids))
}
