package trtllm

import (
	"baton/engine"
	jsonframe "baton/engine/frame"
)

// A frame is what one event says. Its slices are reused.
type frame struct {
	jsonframe.Completion
	logprobs []engine.TokenLogprob // one per id, if asked for
	stopID   engine.TokenID        // the stop reason, where it is an id; else noID

	values []float64 // log-probabilities as they stand in the event
}

// decode reads an event's data. A frame that is no complete, sensible object is
// an error as a whole.
func (f *frame) decode(data []byte, logprobs bool) error {
	f.reset()
	err := f.Decode(data, func(key []byte) {
		switch {
		case string(key) == "stop_reason":
			f.readStopReason()
		case logprobs && string(key) == "logprobs":
			f.readLogprobs()
		default:
			f.Scanner.Skip()
		}
	})
	if err != nil {
		f.reset()
		return err
	}
	if logprobs {
		f.alignLogprobs()
	}
	return nil
}

func (f *frame) reset() {
	f.Reset()
	f.logprobs, f.values, f.stopID = f.logprobs[:0], f.values[:0], noID
}

// readStopReason reads an id, a text, or null.
func (f *frame) readStopReason() {
	s := &f.Scanner
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
	s := &f.Scanner
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
	for i, id := range f.IDs {
		entry := engine.TokenLogprob{ID: id, Logprob: engine.MissingLogprob}
		if len(f.values) == len(f.IDs) {
			entry.Logprob = f.values[i]
		}
		f.logprobs = append(f.logprobs, entry)
	}
}
