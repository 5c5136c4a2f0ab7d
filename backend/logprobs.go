package backend

import (
	"slices"

	"baton/engine"
)

// logprobs is the queue of logprobs whose tokens' text is not out yet. An entry
// leaves it with the last byte of its token's text, so that what the client has
// of both agrees at every moment. Tokens without text (special ones that are
// skipped) leave with the text before them. The end id, which is not shown, and
// tokens whose text lies behind a stop string have no logprobs, as with OpenAI.
type logprobs struct {
	entries []logprobEntry // in order
	placed  int            // how many of them have their place in the text
	out     []Logprob      // released by the last step
	spare   [][]TopLogprob // memory for new entries
}

type logprobEntry struct {
	Logprob
	start, end int  // of the token's text, as offsets into the whole text
	textless   bool // the token has no text
}

// add appends the entry of a token that will be decoded next.
func (q *logprobs) add(req *Request, l *engine.TokenLogprob) {
	t := req.Tokenizer
	e := logprobEntry{Logprob: Logprob{Token: t.Bytes(l.ID), Logprob: l.Logprob}}
	e.textless = len(e.Token) == 0 || req.SkipSpecial && t.IsSpecial(l.ID) && !slices.Contains(req.KeepSpecial, l.ID)
	if n := len(q.spare); n > 0 {
		e.Top, q.spare = q.spare[n-1][:0], q.spare[:n-1]
	}
	for _, top := range l.Top {
		e.Top = append(e.Top, TopLogprob{Token: t.Bytes(top.ID), Logprob: top.Logprob})
	}
	q.entries = append(q.entries, e)
}

// decoded places entries: the newest token gave the text from start to end. If
// that is none although the token has text, the decoder holds it back, and the
// token's place is the next text that comes, or atEnd, when nothing does.
func (q *logprobs) decoded(start, end int, atEnd bool) {
	for ; q.placed < len(q.entries); q.placed++ {
		e := &q.entries[q.placed]
		if start == end && !e.textless && !atEnd {
			return
		}
		e.start, e.end = start, end
	}
}

// drop removes the entry of the end id, which was not decoded.
func (q *logprobs) drop() {
	if q.placed < len(q.entries) {
		q.entries = q.entries[:len(q.entries)-1]
	}
}

// release returns the entries whose tokens' text lies before the offset sent,
// valid until forget. After a cut the token that was cut in two is among them.
func (q *logprobs) release(sent int, cut bool) []Logprob {
	for i := range q.placed {
		e := &q.entries[i]
		if e.end > sent && !(cut && e.start < sent) {
			break
		}
		q.out = append(q.out, e.Logprob)
	}
	return q.out
}

// forget drops what was released.
func (q *logprobs) forget() {
	for i := range q.out {
		if cap(q.out[i].Top) > 0 {
			q.spare = append(q.spare, q.out[i].Top)
		}
	}
	n := len(q.out)
	q.out = q.out[:0]
	q.entries = q.entries[:copy(q.entries, q.entries[n:])]
	q.placed -= n
}
