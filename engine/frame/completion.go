package frame

import "baton/engine"

// A Completion is what one event of an OpenAI-like /v1/completions says that returns
// ids, in the words that vLLM and TensorRT-LLM share. Its slices are reused.
type Completion struct {
	IDs      []engine.TokenID
	Finish   []byte // the finish reason; nil = none
	Failed   bool   // the event is an error object
	TextOnly bool   // there is text, but no list of ids

	Scanner Scanner // of the event
	choices int
}

// Decode reads an event's data; after an error the frame is of no use as a whole.
// field reads the value of a choice's field that is not known here, or skips it.
func (c *Completion) Decode(data []byte, field func(key []byte)) error {
	c.Reset()
	s := &c.Scanner
	s.Reset(data)
	if !s.Object() {
		s.Fail("want an object")
	}
	for {
		key, ok := s.Key()
		if !ok {
			break
		}
		switch string(key) {
		case "choices":
			for ok := s.Array(); ok && s.Element(); {
				if c.choices++; c.choices > 1 {
					s.Fail("more than one choice")
				}
				c.readChoice(field)
			}
		case "error":
			c.Failed = !s.Null()
			if c.Failed {
				s.Skip()
			}
		default:
			s.Skip()
		}
	}
	return s.End()
}

// Reset forgets the event before.
func (c *Completion) Reset() {
	c.IDs, c.Finish, c.Failed, c.TextOnly, c.choices = c.IDs[:0], nil, false, false, 0
}

func (c *Completion) readChoice(field func(key []byte)) {
	s := &c.Scanner
	if !s.Object() {
		return
	}
	text, ids := false, false
	for {
		key, ok := s.Key()
		if !ok {
			break
		}
		switch string(key) {
		case "text":
			raw := s.Raw()
			text = len(raw) > len(`""`) && raw[0] == '"'
		case "index":
			if i := s.Int(); i != 0 {
				s.Fail("choice %d of a request for one", i)
			}
		case "token_ids":
			c.IDs, ids = s.IDs(c.IDs[:0])
		case "finish_reason":
			c.Finish = nil
			if !s.Null() {
				c.Finish = Unquote(s.RawString())
			}
		default:
			field(key)
		}
	}
	c.TextOnly = text && !ids
}
