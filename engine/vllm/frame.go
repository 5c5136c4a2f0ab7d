package vllm

import (
	"bytes"
	"cmp"
	"math"
	"slices"
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

	scanner jsonframe.Scanner
	choices int
	said    []saidLogprob       // the logprobs as they stand in the event
	tops    []engine.TopLogprob // backing of all Top slices
	tokens  []engine.TokenID    // the parallel lists of /v1/completions
	values  []float64
	top     [][2]int // ranges of tops
}

// A saidLogprob is one position as the engine gives it.
type saidLogprob struct {
	id      engine.TokenID // unknownID if it was given as text
	logprob float64
	top     [2]int // range of tops
}

const unknownID engine.TokenID = -1

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
				ids = f.readIDs()
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

// readIDs reports false for null.
func (f *frame) readIDs() bool {
	s := &f.scanner
	f.ids = f.ids[:0]
	if !s.Array() {
		return false
	}
	for s.Element() {
		id := s.Int32()
		if id < 0 {
			s.Fail("token id %d", id)
		}
		f.ids = append(f.ids, id)
	}
	return true
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
				f.values = append(f.values, f.readLogprob())
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
func (f *frame) readPosition() saidLogprob {
	s := &f.scanner
	p := saidLogprob{id: unknownID, logprob: engine.MissingLogprob}
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
			p.id = s.Int32()
		case "token":
			if id := tokenID(jsonframe.Unquote(s.RawString())); p.id == unknownID {
				p.id = id
			}
		case "logprob":
			p.logprob = f.readLogprob()
		case "top_logprobs":
			p.top[0] = len(f.tops)
			for ok := s.Array(); ok && s.Element(); {
				if alt := f.readPosition(); alt.id != unknownID {
					f.tops = append(f.tops, engine.TopLogprob{ID: alt.id, Logprob: alt.logprob})
				}
			}
			p.top[1] = len(f.tops)
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
			if lp := f.readLogprob(); id != unknownID {
				f.tops = append(f.tops, engine.TopLogprob{ID: id, Logprob: lp})
			}
		}
	}
	return [2]int{start, len(f.tops)}
}

// readLogprob reads a number, or the null that stands for one JSON lacks.
func (f *frame) readLogprob() float64 {
	if f.scanner.Null() {
		return engine.MissingLogprob
	}
	lp := f.scanner.Float()
	if math.IsNaN(lp) || math.IsInf(lp, 0) || lp < engine.MissingLogprob {
		return engine.MissingLogprob
	}
	return lp
}

// alignLogprobs makes one entry per id of what the event said. A position that
// is missing, or that names another id, has no known probability; ids matter
// more than their probabilities, so it is no error.
func (f *frame) alignLogprobs(top int) {
	if len(f.said) == 0 && len(f.tokens) == len(f.ids) {
		for i := range f.tokens {
			p := saidLogprob{id: f.tokens[i], logprob: engine.MissingLogprob}
			if i < len(f.values) {
				p.logprob = f.values[i]
			}
			if i < len(f.top) {
				p.top = f.top[i]
			}
			f.said = append(f.said, p)
		}
	}
	for i, id := range f.ids {
		entry := engine.TokenLogprob{ID: id, Logprob: engine.MissingLogprob}
		if len(f.said) == len(f.ids) && (f.said[i].id == id || f.said[i].id == unknownID) {
			p := f.said[i]
			entry.Logprob = p.logprob
			entry.Top = best(f.tops[p.top[0]:p.top[1]:p.top[1]], top)
		}
		f.logprobs = append(f.logprobs, entry)
	}
}

// best sorts the alternatives and cuts them to n: the engine adds the sampled
// token to them where it is not among the most likely.
func best(tops []engine.TopLogprob, n int) []engine.TopLogprob {
	slices.SortStableFunc(tops, func(a, b engine.TopLogprob) int { return cmp.Compare(b.Logprob, a.Logprob) })
	return tops[:min(n, len(tops))]
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
