package vllm

import (
	"bytes"
	"strconv"

	"baton/engine"
	jsonframe "baton/engine/frame"
)

// A frame is what one event of either endpoint says. Its slices are reused.
type frame struct {
	jsonframe.Completion
	logprobs []engine.TokenLogprob // one per id, if asked for

	usual  skeleton
	said   []jsonframe.Position // the logprobs as they stand in the event
	tops   []engine.TopLogprob  // backing of all Top slices
	tokens []engine.TokenID     // the parallel lists of /v1/completions
	values []float64
	top    [][2]int // ranges of tops
}

// unknownID is the id of a position that was given as text.
const unknownID engine.TokenID = -1

// read is decode, which it spares events that are as usual.
func (f *frame) read(data []byte, output engine.OutputOptions) error {
	if output.Logprobs {
		return f.decode(data, output)
	}
	if ids, ok := f.usual.read(f.IDs[:0], data); ok {
		f.reset()
		f.IDs = ids
		return nil
	}
	err := f.decode(data, output)
	if err == nil && len(f.IDs) > 0 && len(f.Finish) == 0 && !f.Failed && !f.TextOnly {
		f.usual.learn(data, f.IDs)
	}
	return err
}

// decode reads an event's data. A frame that is no complete, sensible object is
// an error as a whole.
func (f *frame) decode(data []byte, output engine.OutputOptions) error {
	f.reset()
	err := f.Decode(data, func(key []byte) {
		if output.Logprobs && string(key) == "logprobs" {
			f.readLogprobs()
		} else {
			f.Scanner.Skip()
		}
	})
	if err != nil {
		f.reset()
		return err
	}
	if output.Logprobs {
		f.alignLogprobs(output.TopLogprobs)
	}
	return nil
}

func (f *frame) reset() {
	f.Reset()
	f.logprobs = f.logprobs[:0]
	f.resetLogprobs()
}

func (f *frame) resetLogprobs() {
	f.said, f.tops, f.tokens, f.values, f.top = f.said[:0], f.tops[:0], f.tokens[:0], f.values[:0], f.top[:0]
}

// readLogprobs reads both forms: the parallel lists of /v1/completions, whose
// tokens are "token_id:812", and the list of objects of the generate endpoint.
func (f *frame) readLogprobs() {
	s := &f.Scanner
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
	s := &f.Scanner
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
	s := &f.Scanner
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
	if len(f.said) == 0 && len(f.tokens) == len(f.IDs) {
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
	for i, id := range f.IDs {
		entry := engine.TokenLogprob{ID: id, Logprob: engine.MissingLogprob}
		if len(f.said) == len(f.IDs) && (f.said[i].ID == id || f.said[i].ID == unknownID) {
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
