package sglang

import (
	"baton/engine"
	jsonframe "baton/engine/frame"
)

// A frame is what one event says. Its slices are reused. Of lists that the
// server repeats from their beginning only the new end is read where that can be
// told from the text.
type frame struct {
	ids     []engine.TokenID
	listed  int  // how many ids its list has
	skipped int  // how many of these are not among ids, being those of the frame before
	counted bool // the event says how many tokens there are
	total   int  // tokens of the answer, by the server's count
	prompt  int  // tokens of the prompt; 0 = it does not say

	finish  finish
	failed  bool // the event is an error object
	text    bool // there is text
	withIDs bool // there is a list of ids

	logprobs []engine.TokenLogprob // of the newest ids, one each; made by align

	scanner jsonframe.Scanner
	known   jsonframe.Growing   // output_ids
	said    positions           // output_token_logprobs
	best    positions           // output_top_logprobs
	tops    []engine.TopLogprob // backing of all alternatives
}

// positions is a list with an entry for each token, of which the end was read.
type positions struct {
	known   jsonframe.Growing
	entries []jsonframe.Position
}

// A finish is why the engine ended the answer.
type finish struct {
	kind    []byte // "stop", "length", "abort"; nil = it goes on
	matched []byte // the stop string, if there is one, as it stands in the text
	message []byte // of an abort, likewise
	status  int    // of an abort; 0 = none
}

// decode reads an event's data. A frame that is no complete, sensible object is
// an error as a whole. afresh makes it read its lists from their beginning.
func (f *frame) decode(data []byte, output engine.OutputOptions, afresh bool) error {
	f.reset(afresh)
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
		case "text":
			raw := s.Raw()
			f.text = len(raw) > len(`""`) && raw[0] == '"'
		case "output_ids":
			f.readIDs()
		case "meta_info":
			f.readMeta(output)
		case "index":
			if i := s.Int(); i != 0 {
				s.Fail("answer %d of a request for one", i)
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
		f.reset(true)
		return err
	}
	return nil
}

func (f *frame) reset(afresh bool) {
	if afresh {
		f.listed, f.known, f.said.known, f.best.known = 0, jsonframe.Growing{}, jsonframe.Growing{}, jsonframe.Growing{}
	}
	f.ids, f.skipped, f.counted, f.total, f.prompt = f.ids[:0], 0, false, 0, 0
	f.finish, f.failed, f.text, f.withIDs = finish{}, false, false, false
	f.said.entries, f.best.entries, f.tops = f.said.entries[:0], f.best.entries[:0], f.tops[:0]
}

func (f *frame) readIDs() {
	s := &f.scanner
	f.ids, f.withIDs = f.ids[:0], s.Array()
	if !f.withIDs {
		return
	}
	if s.Resume(&f.known) {
		f.skipped = f.listed
	}
	for s.Element() {
		id := s.Int32()
		if id < 0 {
			s.Fail("token id %d", id)
		}
		f.ids = append(f.ids, id)
	}
	s.Remember(&f.known)
	f.listed = f.skipped + len(f.ids)
}

func (f *frame) readMeta(output engine.OutputOptions) {
	s := &f.scanner
	if !s.Object() {
		return
	}
	for {
		key, ok := s.Key()
		if !ok {
			return
		}
		switch string(key) {
		case "finish_reason":
			f.readFinish()
		case "completion_tokens":
			f.total, f.counted = int(s.Int()), true
		case "prompt_tokens":
			f.prompt = int(s.Int())
		case "output_token_logprobs":
			f.readPositions(&f.said, output.Logprobs, f.readLogprob)
		case "output_top_logprobs":
			f.readPositions(&f.best, output.Logprobs, f.readTops)
		default:
			s.Skip()
		}
	}
}

func (f *frame) readFinish() {
	s := &f.scanner
	f.finish = finish{}
	if !s.Object() {
		return
	}
	f.finish.kind = []byte{} // of no kind is no success
	for {
		key, ok := s.Key()
		if !ok {
			return
		}
		switch string(key) {
		case "type":
			f.finish.kind = jsonframe.Unquote(s.RawString())
		case "matched":
			if raw := s.Raw(); len(raw) > 0 && raw[0] == '"' {
				f.finish.matched = raw
			}
		case "message":
			if raw := s.Raw(); len(raw) > 0 && raw[0] == '"' {
				f.finish.message = raw
			}
		case "status_code":
			if !s.Null() {
				f.finish.status = int(s.Int())
			}
		default:
			s.Skip()
		}
	}
}

// readPositions reads the part of a list of logprobs that is new.
func (f *frame) readPositions(p *positions, wanted bool, entry func() jsonframe.Position) {
	s := &f.scanner
	if !wanted {
		s.Skip()
		return
	}
	p.entries = p.entries[:0]
	if !s.Array() {
		return
	}
	s.Resume(&p.known)
	for s.Element() {
		p.entries = append(p.entries, entry())
	}
	s.Remember(&p.known)
}

// readLogprob reads [logprob, id, text or null].
func (f *frame) readLogprob() jsonframe.Position {
	s := &f.scanner
	p := jsonframe.Position{ID: -1, Logprob: engine.MissingLogprob}
	if !s.Array() {
		return p
	}
	for i := 0; s.Element(); i++ {
		switch i {
		case 0:
			p.Logprob = s.Logprob()
		case 1:
			p.ID = s.Int32()
		default:
			s.Skip()
		}
	}
	return p
}

// readTops reads a list of such, or the null of a position without alternatives.
func (f *frame) readTops() jsonframe.Position {
	s := &f.scanner
	p := jsonframe.Position{Top: [2]int{len(f.tops), len(f.tops)}}
	if s.Array() {
		for s.Element() {
			if alt := f.readLogprob(); alt.ID >= 0 {
				f.tops = append(f.tops, engine.TopLogprob{ID: alt.ID, Logprob: alt.Logprob})
			}
		}
		p.Top[1] = len(f.tops)
	}
	return p
}

// align makes one entry for each of ids, the newest of the answer, of what the
// event said: they are the last of its lists. A position that is missing, or that
// names another id, has no known probability; ids matter more than their
// probabilities, so it is no error.
func (f *frame) align(ids []engine.TokenID, top int) []engine.TokenLogprob {
	f.logprobs = f.logprobs[:0]
	said, best := lastOf(f.said.entries, len(ids)), lastOf(f.best.entries, len(ids))
	for i, id := range ids {
		entry := engine.TokenLogprob{ID: id, Logprob: engine.MissingLogprob}
		if said != nil && said[i].ID == id {
			entry.Logprob = said[i].Logprob
			if best != nil {
				span := best[i].Top
				entry.Top = jsonframe.Best(f.tops[span[0]:span[1]:span[1]], top)
			}
		}
		f.logprobs = append(f.logprobs, entry)
	}
	return f.logprobs
}

// lastOf returns the last n of entries, nil if there are fewer.
func lastOf(entries []jsonframe.Position, n int) []jsonframe.Position {
	if len(entries) < n {
		return nil
	}
	return entries[len(entries)-n:]
}
