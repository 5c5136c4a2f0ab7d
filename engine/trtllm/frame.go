package trtllm

import (
	"baton/engine"
	jsonframe "baton/engine/frame"
)

// A frame is what one event says. Its slices are reused.
type frame struct {
	ids      []engine.TokenID
	logprobs []engine.TokenLogprob // one per id, if asked for
	finish   []byte                // the finish reason; nil = none
	stopID   engine.TokenID        // the stop reason, where it is an id; else noID
	failed   bool                  // the event is an error object
	textOnly bool                  // there is text, but no list of ids

	scanner jsonframe.Scanner
	choices int
	values  []float64 // log-probabilities as they stand in the event
}

// decode reads an event's data. A frame that is no complete, sensible object is
// an error as a whole.
func (f *frame) decode(data []byte, logprobs bool) error {
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
			for ok := s.Array(); ok && s.Element(); {
				if f.choices++; f.choices > 1 {
					s.Fail("more than one choice")
				}
				f.readChoice(logprobs)
			}
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
	if logprobs {
		f.alignLogprobs()
	}
	return nil
}

func (f *frame) reset() {
	f.ids, f.logprobs, f.values, f.finish, f.stopID = f.ids[:0], f.logprobs[:0], f.values[:0], nil, noID
	f.failed, f.textOnly, f.choices = false, false, 0
}

func (f *frame) readChoice(logprobs bool) {
	s := &f.scanner
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
			f.ids, ids = s.IDs(f.ids[:0])
		case "finish_reason":
			f.finish = nil
			if !s.Null() {
				f.finish = jsonframe.Unquote(s.RawString())
			}
		case "stop_reason":
			f.readStopReason()
		case "logprobs":
			if logprobs {
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

// readStopReason reads an id, a text, or null.
func (f *frame) readStopReason() {
	s := &f.scanner
	f.stopID = noID
	raw := s.Raw()
	if len(raw) == 0 || raw[0] < '0' || raw[0] > '9' {
		return
	}
	var id int64
	for _, c := range raw {
		if c < '0' || c > '9' || id > 1<<31 {
			s.Fail("stop reason %s is no id", raw)
			return
		}
		id = id*10 + int64(c-'0')
	}
	if id >= 1<<31 {
		s.Fail("stop reason %d is no id", id)
		return
	}
	f.stopID = engine.TokenID(id)
}

// readLogprobs reads the sampled tokens' own log-probabilities, which stand beside
// their ids. The tokens, and the alternatives, are given as text, which does not
// tell which id is meant.
func (f *frame) readLogprobs() {
	s := &f.scanner
	f.values = f.values[:0]
	if !s.Object() {
		return
	}
	for {
		key, ok := s.Key()
		if !ok {
			return
		}
		if string(key) != "token_logprobs" {
			s.Skip()
			continue
		}
		for ok := s.Array(); ok && s.Element(); {
			f.values = append(f.values, s.Logprob())
		}
	}
}

// alignLogprobs makes one entry per id. Where the numbers differ nobody knows
// which belongs to which; ids matter more, so it is no error.
func (f *frame) alignLogprobs() {
	for i, id := range f.ids {
		entry := engine.TokenLogprob{ID: id, Logprob: engine.MissingLogprob}
		if len(f.values) == len(f.ids) {
			entry.Logprob = f.values[i]
		}
		f.logprobs = append(f.logprobs, entry)
	}
}
