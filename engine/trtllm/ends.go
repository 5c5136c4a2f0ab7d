package trtllm

import "baton/engine"

// noID stands for the last id of an answer without any, and for a stop reason
// that is none.
const noID engine.TokenID = -1

// restoreEnd makes the id that ended the answer the last one of the frame, as it
// is with all other engines. The server is asked to leave it there
// (include_stop_str_in_output), but what it takes for the end of a text it may
// have cut off all the same. The stop reason names the id, or is null for an end
// id of the model's own.
//
// That the last delivered id is the end already cannot be mistaken: an end id that
// came earlier would have ended the answer then.
func (a *answer) restoreEnd() {
	f := &a.frame
	var end engine.TokenID
	switch {
	case f.stopID != noID && !a.stop.Ends(f.stopID):
		return // an end that only the server knows, which nobody above would take for one
	case f.stopID != noID:
		end = f.stopID
	case a.last != noID && a.stop.Ends(a.last):
		return
	case !a.stop.IgnoreEOS && len(a.stop.EOS) > 0:
		end = a.stop.EOS[0] // of several, nobody can tell which; they mean the same
	default:
		return // the server ended it by a rule of its own
	}
	if a.last == end {
		return
	}
	f.IDs = append(f.IDs, end)
	if a.output.Logprobs {
		f.logprobs = append(f.logprobs, engine.TokenLogprob{ID: end, Logprob: engine.MissingLogprob})
	}
	a.last = end
}
