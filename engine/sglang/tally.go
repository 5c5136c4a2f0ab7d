package sglang

import (
	"errors"
	"fmt"

	"baton/engine"
)

// A form is how the events of a stream hold the ids of the answer.
type form uint8

const (
	unknown     form = iota // the first event with ids fits both
	cumulative              // all so far
	incremental             // those that are new
)

// A tally is how many tokens of an answer are read, and how its events hold them.
type tally struct {
	read     int
	form     form
	expected form // by the server's settings, which count where an event fits both
}

// errAgain asks for the frame to be decoded afresh: its list began like the one
// before, but the ids are new ones.
var errAgain = errors.New("decode afresh")

// take decides what of a frame's ids is new: the end of a list that repeats all
// ids before it, or all of a list that does not, as the server's count of tokens
// says. A list that fits neither would lose or double ids, and so would one whose
// beginning is not what it was.
func (t *tally) take(f *frame) ([]engine.TokenID, error) {
	repeats := f.skipped == t.read // of the first list: nothing
	switch {
	case !f.counted:
		return nil, errors.New("an event does not say how many tokens there are")
	case t.form != incremental && repeats && f.total == f.listed:
		if t.read > 0 && f.listed > 0 {
			t.form = cumulative
		}
		t.read = f.listed
		return f.ids, nil
	case t.form != incremental && repeats && t.read > 0 && t.read <= f.total && f.total < f.listed:
		// The list may have grown since the event was made.
		t.form, t.read = cumulative, f.listed
		return f.ids, nil
	case t.form != cumulative && f.total == t.read+f.listed:
		if f.skipped > 0 && t.expected == cumulative {
			break // more likely the count is wrong
		}
		if f.skipped > 0 {
			return nil, errAgain
		}
		if f.listed > 0 {
			t.form = incremental
		}
		t.read = f.total
		return f.ids, nil
	}
	return nil, fmt.Errorf("an event with %d ids says that there are %d, after %d of which it repeats %d", f.listed, f.total, t.read, f.skipped)
}
