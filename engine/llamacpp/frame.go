package llamacpp

import (
	"math"

	"baton/engine"
	jsonframe "baton/engine/frame"
)

// A frame is what one event says. Its slices are reused.
type frame struct {
	ids       []engine.TokenID
	logprobs  []engine.TokenLogprob // one per id, if asked for
	content   []byte                // the text, as it stands in the event; nil = none
	predicted int                   // how many tokens the engine has generated
	counted   bool                  // predicted was there
	final     bool
	stopType  []byte
	failed    bool // the event is an error object

	scanner jsonframe.Scanner
	said    []jsonframe.Position
	tops    []engine.TopLogprob // backing of all Top slices
}

// text returns the content.
func (f *frame) text() []byte {
	if f.content == nil {
		return nil
	}
	return jsonframe.Unquote(f.content)
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
		case "tokens":
			f.ids, _ = s.IDs(f.ids[:0])
		case "content":
			f.content = nil
			if !s.Null() {
				f.content = s.RawString()
			}
		case "tokens_predicted":
			n := s.Int()
			if n < 0 || n > math.MaxInt32 {
				s.Fail("%d tokens predicted", n)
			}
			f.predicted, f.counted = int(n), true
		case "stop":
			f.final = s.Bool()
		case "stop_type":
			f.stopType = nil
			if !s.Null() {
				f.stopType = jsonframe.Unquote(s.RawString())
			}
		case "stopped_eos": // before stop_type there were three flags
			f.readOldStop("eos")
		case "stopped_limit":
			f.readOldStop("limit")
		case "stopped_word":
			f.readOldStop("word")
		case "completion_probabilities":
			if output.Logprobs {
				f.readLogprobs()
			} else {
				s.Skip()
			}
		case "error":
			if f.failed = !s.Null(); f.failed {
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
	f.ids, f.logprobs, f.said, f.tops = f.ids[:0], f.logprobs[:0], f.said[:0], f.tops[:0]
	f.content, f.predicted, f.counted, f.final, f.stopType, f.failed = nil, 0, false, false, nil, false
}

func (f *frame) readOldStop(kind string) {
	if f.scanner.Bool() {
		f.stopType = []byte(kind)
	}
}

// readLogprobs reads [{"id","logprob","top_logprobs":[…]}, …].
func (f *frame) readLogprobs() {
	f.said, f.tops = f.said[:0], f.tops[:0]
	for ok := f.scanner.Array(); ok && f.scanner.Element(); {
		f.said = append(f.said, f.readPosition())
	}
}

func (f *frame) readPosition() jsonframe.Position {
	s := &f.scanner
	p := jsonframe.Position{ID: -1, Logprob: engine.MissingLogprob}
	if !s.Object() {
		return p
	}
	for {
		key, ok := s.Key()
		if !ok {
			return p
		}
		switch string(key) {
		case "id":
			p.ID = s.Int32()
		case "logprob":
			p.Logprob = s.Logprob()
		case "top_logprobs":
			p.Top[0] = len(f.tops)
			for ok := s.Array(); ok && s.Element(); {
				alt := f.readPosition()
				f.tops = append(f.tops, engine.TopLogprob{ID: alt.ID, Logprob: alt.Logprob})
			}
			p.Top[1] = len(f.tops)
		default:
			s.Skip()
		}
	}
}

// alignLogprobs makes one entry per id of the event.
func (f *frame) alignLogprobs(top int) {
	for i, id := range f.ids {
		entry := engine.TokenLogprob{ID: id, Logprob: engine.MissingLogprob}
		if len(f.said) == len(f.ids) && f.said[i].ID == id {
			p := f.said[i]
			entry.Logprob, entry.Top = p.Logprob, jsonframe.Best(f.tops[p.Top[0]:p.Top[1]:p.Top[1]], top)
		}
		f.logprobs = append(f.logprobs, entry)
	}
}
