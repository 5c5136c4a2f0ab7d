package vllm

import (
	"bytes"
	"strconv"

	"baton/engine"
	jsonframe "baton/engine/frame"
)

// A frame is what one event of either endpoint says. Its slices are reused.
type frame struct {
	ids      []engine.TokenID
	logprobs []engine.TokenLogprob // one per id, if asked for
	finish   []byte                // the finish reason; nil = none
	failed   bool                  // the event is an error object
	textOnly bool                  // there is text, but no list of ids

	usual   skeleton
	scanner jsonframe.Scanner
	choices int
	said    []jsonframe.Position //  the logprobs as they stand in the event
	tops    []engine.TopLogprob  // backing of all Top slices
	tokens  []engine.TokenID     // the parallel lists of /v1/completions
	values  []float64
	top     [][2]int // ranges of tops
}

// unknownID is the id of a position that was given as text.
const unknownID engine.TokenID = -1

// read is decode, which it spares events that are as usual.
func (f *frame) read(data []byte, output engine.OutputOptions) error {
	if output.Logprobs {
		return f.decode(data, output)
	}
	if ids, ok := f.usual.read(f.ids[:0], data); ok {
		f.reset()
		f.ids = ids
		return nil
	}
	err := f.decode(data, output)
	if err == nil && len(f.ids) > 0 && len(f.finish) == 0 && !f.failed && !f.textOnly {
		f.usual.learn(data, f.ids)
	}
	return err
}

// decode reads an event's data. A frame that is no complete, sensible object is
// an error as a whole.
func (f *frame) decode(data []byte, output engine.OutputOptions) error {
	f.reset()
	s := &f.scanner
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
			f.readChoices(output)
		case "error":
			f.failed = !s.Null()
			if f.failed {
				s.Skip()
			}
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		f.reset()
		return err
	}
	if output.Logprobs {
		f.alignLogprobs(output.TopLogprobs)
	}
	return nil
}

func (f *frame) reset() {
	f.ids, f.logprobs, f.finish, f.failed, f.textOnly, f.choices = f.ids[:0], f.logprobs[:0], nil, false, false, 0
	f.resetLogprobs()
}

func (f *frame) resetLogprobs() {
	f.said, f.tops, f.tokens, f.values, f.top = f.said[:0], f.tops[:0], f.tokens[:0], f.values[:0], f.top[:0]
}

func (f *frame) readChoices(output engine.OutputOptions) {
	s := &f.scanner
	if !s.Array() {
		return
	}
	for s.Element() {
		if f.choices++; f.choices > 1 {
			s.Fail("more than one choice")
		}
		if !s.Object() {
			continue
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
				f.ids, ids = s.IDs(f.ids[:0])
			case "finish_reason":
				f.finish = nil
				if !s.Null() {
					f.finish = jsonframe.Unquote(s.RawString())
				}
			case "logprobs":
				if output.Logprobs {
					f.readLogprobs()
				} else {
					s.Skip()
				}
			default:
				s.Skip()
			}
		}
		f.textOnly = text && !ids
	}
}

// readLogprobs reads both forms: the parallel lists of /v1/completions, whose
// tokens are "token_id:812", and the list of objects of the generate endpoint.
func (f *frame) readLogprobs() {
	s := &f.scanner
	f.resetLogprobs()
	if !s.Object() {
		return
	}
	for {
		key, ok := s.Key()
		if !ok {
			return
		}
		switch string(key) {
		case "content":
			for ok := s.Array(); ok && s.Element(); {
				f.said = append(f.said, f.readPosition())
			}
		case "tokens":
			for ok := s.Array(); ok && s.Element(); {
				f.tokens = append(f.tokens, tokenID(jsonframe.Unquote(s.RawString())))
			}
		case "token_logprobs":
			for ok := s.Array(); ok && s.Element(); {
				f.values = append(f.values, s.Logprob())
			}
		case "top_logprobs":
			for ok := s.Array(); ok && s.Element(); {
				f.top = append(f.top, f.readTopObject())
			}
		default:
			s.Skip()
		}
	}
}

// readPosition reads {"token_id" or "token", "logprob", "top_logprobs"}.
func (f *frame) readPosition() jsonframe.Position {
	s := &f.scanner
	p := jsonframe.Position{ID: unknownID, Logprob: engine.MissingLogprob}
	if !s.Object() {
		return p
	}
	for {
		key, ok := s.Key()
		if !ok {
			return p
		}
		switch string(key) {
		case "token_id":
			p.ID = s.Int32()
		case "token":
			if id := tokenID(jsonframe.Unquote(s.RawString())); p.ID == unknownID {
				p.ID = id
			}
		case "logprob":
			p.Logprob = s.Logprob()
		case "top_logprobs":
			p.Top[0] = len(f.tops)
			for ok := s.Array(); ok && s.Element(); {
				if alt := f.readPosition(); alt.ID != unknownID {
					f.tops = append(f.tops, engine.TopLogprob{ID: alt.ID, Logprob: alt.Logprob})
				}
			}
			p.Top[1] = len(f.tops)
		default:
			s.Skip()
		}
	}
}

// readTopObject reads {"token_id:282": -1.4, …}.
func (f *frame) readTopObject() [2]int {
	s := &f.scanner
	start := len(f.tops)
	if s.Object() {
		for {
			key, ok := s.Key()
			if !ok {
				break
			}
			id := tokenID(key)
			if lp := s.Logprob(); id != unknownID {
				f.tops = append(f.tops, engine.TopLogprob{ID: id, Logprob: lp})
			}
		}
	}
	return [2]int{start, len(f.tops)}
}

// alignLogprobs makes one entry per id of what the event said. A position that
// is missing, or that names another id, has no known probability; ids matter
// more than their probabilities, so it is no error.
func (f *frame) alignLogprobs(top int) {
	if len(f.said) == 0 && len(f.tokens) == len(f.ids) {
		for i := range f.tokens {
			p := jsonframe.Position{ID: f.tokens[i], Logprob: engine.MissingLogprob}
			if i < len(f.values) {
				p.Logprob = f.values[i]
			}
			if i < len(f.top) {
				p.Top = f.top[i]
			}
			f.said = append(f.said, p)
		}
	}
	for i, id := range f.ids {
		entry := engine.TokenLogprob{ID: id, Logprob: engine.MissingLogprob}
		if len(f.said) == len(f.ids) && (f.said[i].ID == id || f.said[i].ID == unknownID) {
			p := f.said[i]
			entry.Logprob = p.Logprob
			entry.Top = jsonframe.Best(f.tops[p.Top[0]:p.Top[1]:p.Top[1]], top)
		}
		f.logprobs = append(f.logprobs, entry)
	}
}

var tokenIDPrefix = []byte("token_id:")

// tokenID reads "token_id:812".
func tokenID(text []byte) engine.TokenID {
	digits, ok := bytes.CutPrefix(text, tokenIDPrefix)
	if !ok {
		return unknownID
	}
	id, err := strconv.ParseInt(string(digits), 10, 32)
	if err != nil || id < 0 {
		return unknownID
	}
	return engine.TokenID(id)
}
