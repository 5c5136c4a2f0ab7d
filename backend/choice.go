package backend

import (
	"slices"

	"baton/engine"
	"baton/tokenizer"
)

// A choice is the state of one Generate: the decoder, the matcher, and the text
// that is decided but not final.
type choice struct {
	finished bool // out has a finish reason
	matched  bool // because of a stop string
	left     bool // nothing more is yielded: the consumer left, or has got an error

	yield   func(Delta, error) bool
	decoder tokenizer.Decoder
	matcher *matcher // nil without stop strings

	// text is decided text: the first sent bytes of it are final and go out with
	// this step; the rest may begin a stop string.
	text []byte
	sent int
	base int // bytes of the whole text before text[0]

	generated int              // ids so far
	ends      []engine.TokenID // the ids that end the generation
	endID     engine.TokenID   // counted, but not decoded yet, as it may be the end; -1 = none
	scored    bool             // logprobs are asked for

	out Delta

	logprobs logprobs // of tokens whose text is not out
	req      *Request
	memory   [64]byte          // of text, while that is enough
	endIDs   [4]engine.TokenID // of ends, likewise
}

func newChoice(req *Request) *choice {
	c := &choice{
		decoder: *req.Tokenizer.NewDecoder(req.SkipSpecial && len(req.KeepSpecial) == 0),
		endID:   -1,
		scored:  req.Tokens.Output.Logprobs,
		req:     req,
	}
	c.ends = append(c.endIDs[:0], req.Tokens.Stop.EndIDs()...)
	c.text = prime(&c.decoder, req.Tokenizer, req.Tokens.TokenIDs, c.memory[:0])[:0]
	if len(req.Stop) > 0 {
		c.matcher = newMatcher(req.Stop)
	}
	return c
}

// step takes one delta of tokens and returns what it added to the text.
func (c *choice) step(d engine.Delta) Delta {
	c.forget()
	c.out = Delta{StopID: -1}
	taken := 0
	for i, id := range d.TokenIDs {
		if c.decodeEndID(); c.matched {
			break
		}
		c.generated++
		taken++
		if c.scored && i < len(d.Logprobs) {
			c.logprobs.add(c.req, &d.Logprobs[i])
		}
		if i == len(d.TokenIDs)-1 && slices.Contains(c.ends, id) {
			c.endID = id // decoded when it turns out not to be the end
			break
		}
		if c.decode(id); c.matched {
			break
		}
	}
	if d.FinishReason != "" && !c.matched {
		c.finish(d.FinishReason)
	}
	c.out.Text = c.text[:c.sent]
	c.out.TokenIDs = d.TokenIDs[:taken]
	if c.matched {
		c.out.TokenIDs = slices.Clone(c.out.TokenIDs) // it is yielded when the token stream has ended
	}
	if c.scored {
		c.out.Logprobs = c.logprobs.release(c.base+c.sent, c.matched)
	}
	c.out.CompletionTokens = c.generated
	return c.out
}

// forget drops what the last step sent.
func (c *choice) forget() {
	c.base += c.sent
	c.text = c.text[:copy(c.text, c.text[c.sent:])]
	c.sent = 0
	if c.scored {
		c.logprobs.forget()
	}
}

// decode appends the text of id, as far as it is decided, and looks for stop
// strings in it.
func (c *choice) decode(id engine.TokenID) {
	from := len(c.text)
	if !c.req.hides(id) {
		c.text = c.decoder.Append(c.text, id)
	}
	if c.scored {
		c.logprobs.decoded(c.base+from, c.base+len(c.text), false)
	}
	c.match(from)
}

// hides reports whether id is a special token whose text is not shown. Where no
// special token is kept the decoder knows it by itself.
func (r *Request) hides(id engine.TokenID) bool {
	return len(r.KeepSpecial) > 0 && r.SkipSpecial && r.Tokenizer.IsSpecial(id) && !slices.Contains(r.KeepSpecial, id)
}

// decodeEndID decodes an id that could have been the last one: more ids came, as
// with min_tokens, or the generation ended for another reason.
func (c *choice) decodeEndID() {
	if c.endID >= 0 {
		id := c.endID
		c.endID = -1
		c.decode(id)
	}
}

// match runs the matcher over the text of one token, which begins at from, and
// settles how much of the text is final.
func (c *choice) match(from int) {
	if c.matcher == nil {
		c.sent = len(c.text)
		return
	}
	m, ok := c.matcher.feed(c.text[from:])
	if !ok || c.generated < c.req.Tokens.Stop.MinTokens {
		c.sent = len(c.text) - c.matcher.held()
		return
	}
	stop := c.req.Stop[m.stop]
	end := from + m.end
	c.sent = end - len(stop)
	if c.req.IncludeStop {
		c.sent = end
	}
	c.matched, c.finished = true, true
	c.out.FinishReason, c.out.Stop = engine.FinishStop, stop
}

// finish ends the choice: the end id is set apart, the decoder and the held
// text are flushed. What the decoder held back may still complete a stop string.
func (c *choice) finish(reason engine.FinishReason) {
	stop := &c.req.Tokens.Stop
	isEnd := reason == engine.FinishStop && c.endID >= 0
	endID := c.endID
	if isEnd && !c.req.IncludeStop {
		c.logprobs.drop()
	} else if c.decodeEndID(); c.matched {
		return
	}
	from := len(c.text)
	c.text = c.decoder.Flush(c.text)
	c.logprobs.decoded(c.base+from, c.base+len(c.text), true)
	if c.match(from); c.matched {
		return
	}
	c.sent = len(c.text)
	c.finished = true
	c.out.FinishReason = reason
	if isEnd && (stop.IgnoreEOS || !slices.Contains(stop.EOS, endID)) {
		c.out.StopID = endID
	}
}
