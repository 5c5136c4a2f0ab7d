package tokenizer

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// A long text is cut into parts that are encoded at the same time, with exactly
// the ids that one goroutine would give:
//
//   - What stands between two added tokens is encoded by itself anyway (longText).
//   - A stretch that is long by itself, such as a document in one message, is cut
//     at any place. A goroutine that begins there cannot know where the words
//     before it end, so its first ones may be wrong. But what a split expression
//     finds behind a match depends only on where that match ends. So as soon as one
//     of its matches ends where one of the goroutine before it does, the two
//     agree from there on; that is nearly always so within a word or two, and the
//     words before that place are done again, by whoever puts the parts together
//     (longPiece).
//   - Where no expression makes words, the blanks do, and the places where a text
//     may be cut are known (longWords).
//
// usualPartBytes is about how long a part is. In ten times a part's time a
// goroutine could be started a hundred times.
const usualPartBytes = 16 << 10

func (t *Tokenizer) partBytes() int {
	if t.testPartBytes > 0 {
		return t.testPartBytes
	}
	return usualPartBytes
}

// isLong reports whether a text, or a piece of one, of n bytes is cut.
func (t *Tokenizer) isLong(n int) bool { return n >= 2*t.partBytes() }

// helping is how many goroutines encode for others, in the whole process: as many
// as there are processors beside the one that asks. Who finds no helper free works
// alone and is no slower than without all of this.
var helping atomic.Int32

// eachPart calls do with 0 to n-1, in this order but several at a time, each with
// an encoder of its own. It stops early when nobody wants the ids any more.
func (e *encoder) eachPart(n int, do func(e *encoder, i int)) {
	var taken atomic.Int32
	work := func() {
		own := e.t.encoder(e.done)
		for !e.unwanted() {
			i := int(taken.Add(1)) - 1
			if i >= n {
				break
			}
			do(own, i)
		}
		own.release()
	}
	var group sync.WaitGroup
	var failure atomic.Pointer[any]
	most := int32(runtime.GOMAXPROCS(0)) - 1
	for range min(int(most), n-1) {
		if helping.Add(1) > most {
			helping.Add(-1)
			break
		}
		group.Go(func() {
			defer helping.Add(-1)
			defer func() {
				if r := recover(); r != nil {
					failure.Store(&r)
				}
			}()
			work()
		})
	}
	defer func() {
		group.Wait()
		if r := failure.Load(); r != nil {
			panic(*r) // on the goroutine that asked, where a panic is expected and caught
		}
	}()
	work()
}

func (e *encoder) unwanted() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// A stretch is text without raw added tokens, and the one behind it.
type stretch struct {
	from, to int
	end      int   // of the token
	token    int32 // -1 if the text ends there
	fixed    bool  // what stands behind the token cannot change what became of the text up to it
}

// longText is text for a long one.
func (e *encoder) longText(text string) {
	all := e.t.stretches(text)
	if e.known == nil {
		e.encodeStretches(text, all, nil)
		return
	}
	start := len(e.ids)
	marks := e.known.marksOf(text, all, e.salt, e.buffer)
	ids, known := e.known.find(marks)
	e.ids = append(e.ids, ids...)
	next := 0
	if known > 0 {
		next = marks[known-1].stretch + 1
	}
	counts := make([]int, len(all)-next)
	e.encodeStretches(text, all[next:], counts)
	if e.unwanted() || len(marks) == 0 {
		return
	}
	for i := known; i < len(marks); i++ {
		marks[i].ids = counts[marks[i].stretch-next] - start
	}
	e.known.keep(e.ids[start:], marks, known)
}

// encodeStretches encodes stretches of text, several at a time. It puts into counts, unless
// that is nil, how many ids there are behind each.
func (e *encoder) encodeStretches(text string, all []stretch, counts []int) {
	groups := e.t.groups(all)
	ids := make([][]int32, len(groups))
	isLong := func(group []stretch) bool { return e.t.isLong(group[0].to - group[0].from) }
	e.eachPart(len(groups), func(e *encoder, i int) {
		if group := groups[i]; !isLong(group.stretches) {
			e.ids = make([]int32, 0, group.bytes/3+len(group.stretches)+8)
			e.inOrder(text, group.stretches, group.of(counts))
			ids[i], e.ids = e.ids, nil
		}
	})
	e.helped = true
	for i, group := range groups {
		switch {
		case e.unwanted():
			return
		case isLong(group.stretches):
			e.inOrder(text, group.stretches, group.of(counts))
		default:
			for k := range group.of(counts) {
				group.of(counts)[k] += len(e.ids)
			}
			e.ids = append(e.ids, ids[i]...)
		}
	}
}

// inOrder encodes stretches one after the other.
func (e *encoder) inOrder(text string, all []stretch, counts []int) {
	for i, s := range all {
		if s.from < s.to {
			e.plain(text[s.from:s.to], s.from == 0)
		}
		if s.token >= 0 {
			e.ids = append(e.ids, s.token)
		}
		if counts != nil {
			counts[i] = len(e.ids)
		}
	}
}

// stretches cuts text at its raw added tokens.
func (t *Tokenizer) stretches(text string) []stretch {
	var all []stretch
	found := addedFinder{set: &t.raw, text: text}
	from := 0
	for {
		m := found.next()
		if !m.ok {
			return append(all, stretch{from: from, to: len(text), end: len(text), token: -1})
		}
		all = append(all, stretch{from, m.start, m.end, m.id, m.end == found.at && !t.raw.longestFirst})
		from = m.end
	}
}

// A group is stretches in a row that one goroutine encodes.
type group struct {
	stretches []stretch
	first     int // the number of the first
	bytes     int
}

// of is the part of counts that is the group's.
func (g *group) of(counts []int) []int {
	if counts == nil {
		return nil
	}
	return counts[g.first : g.first+len(g.stretches)]
}

// groups makes groups of about the length of a part. A long stretch is one by itself.
func (t *Tokenizer) groups(all []stretch) []group {
	var groups []group
	part := t.partBytes()
	full := true
	for i, s := range all {
		n := s.to - s.from
		if full || t.isLong(n) {
			groups = append(groups, group{first: i})
		}
		last := &groups[len(groups)-1]
		last.bytes += n
		last.stretches = all[last.first : i+1]
		full = last.bytes >= part
	}
	return groups
}

// A longPart is what one goroutine made of its part of a piece.
type longPart struct {
	meetings []meeting
	ids      []int32 // of what is behind the first match, up to the end of the last
	end      int     // of the last match; -1 if there was none
	spent    int     // steps back
	gaveUp   bool    // because there were too many
}

// A meeting is the end of a match, where a part may turn out to agree with the one
// before, and how many of the part's ids come before it.
type meeting struct{ end, ids int }

// maxMeetings bounds how far into a part agreement is looked for. Text in which the
// first words of a part are wrong up to there was not written by people.
const maxMeetings = 64

// longPiece is step k of walk for a long piece, if that is split by an expression
// whose matches are words. It reports whether it did anything.
func (e *encoder) longPiece(piece []byte, first bool, k int) bool {
	part := e.t.partBytes()
	bounds := make([]int, len(piece)/part+1)
	for i := range bounds {
		bounds[i] = i * part
		for bounds[i] < len(piece) && !utf8.RuneStart(piece[bounds[i]]) {
			bounds[i]++
		}
	}
	parts := make([]longPart, len(bounds)-1)
	bounds[len(parts)] = len(piece) + 1 // an empty match may stand at the end
	e.eachPart(len(parts), func(e *encoder, i int) { parts[i] = e.part(piece, first, k, bounds[i], bounds[i+1]) })
	if e.unwanted() {
		return true
	}
	// Going back too often is an attack, and one goroutine would have given up
	// somewhere. Only it can tell where.
	spent := 0
	for i := range parts {
		if spent += parts[i].spent; parts[i].gaveUp {
			return false
		}
	}
	before := len(e.ids)
	spent += e.join(piece, first, k, bounds, parts)
	if _, allowed := e.matchers[k].Spent(); spent > allowed {
		e.ids = e.ids[:before]
		return false
	}
	return true
}

// part encodes what begins between from and limit.
func (e *encoder) part(piece []byte, first bool, k, from, limit int) longPart {
	p := longPart{end: -1}
	e.ids = make([]int32, 0, (min(limit, len(piece))-from)/3+8)
	m := &e.matchers[k]
	if expression := e.t.pre.steps[k].find.pattern; from == 0 {
		m.Reset(expression, piece)
		p.end = 0
	} else {
		m.Resume(expression, piece, from)
	}
	m.Limit(limit)
	for {
		start, end, ok := m.Next()
		if !ok {
			break
		}
		if p.end >= 0 {
			e.walk(piece[p.end:start], first && p.end == 0, k+1)
			e.walk(piece[start:end], first && start == 0, k+1)
		}
		p.end = end
		if len(p.meetings) < maxMeetings {
			p.meetings = append(p.meetings, meeting{end, len(e.ids)})
		}
	}
	var allowed int
	p.spent, allowed = m.Spent()
	p.gaveUp = p.spent > allowed
	p.ids, e.ids = e.ids, nil
	return p
}

// join appends the ids of all parts, and of what must be done again between them.
// It returns how many steps back that took.
func (e *encoder) join(piece []byte, first bool, k int, bounds []int, parts []longPart) (spent int) {
	m := &e.matchers[k]
	expression := e.t.pre.steps[k].find.pattern
	m.Reset(expression, piece)
	at := 0 // the end of the last match
	take := func(p *longPart, ids int) {
		e.ids = append(e.ids, p.ids[ids:]...)
		used, _ := m.Spent()
		spent += used
		at = p.end
		m.Resume(expression, piece, at)
	}
	if len(parts[0].meetings) > 0 {
		take(&parts[0], 0)
	}
	for i := 1; i < len(parts); {
		p := &parts[i]
		if ids, ok := p.agreesAt(at); ok {
			take(p, ids)
			i++
			continue
		}
		if at >= bounds[i+1] {
			i++ // all of it was done again
			continue
		}
		start, end, ok := m.Next()
		if !ok {
			break
		}
		e.walk(piece[at:start], first && at == 0, k+1)
		e.walk(piece[start:end], first && start == 0, k+1)
		at = end
	}
	e.walk(piece[at:], first && at == 0, k+1)
	used, _ := m.Spent()
	return spent + used
}

// agreesAt reports whether a match of the part ends at this place, and how many of
// the part's ids come before it.
func (p *longPart) agreesAt(at int) (ids int, ok bool) {
	i, ok := slices.BinarySearchFunc(p.meetings, at, func(m meeting, at int) int { return cmp.Compare(m.end, at) })
	if !ok {
		return 0, false
	}
	return p.meetings[i].ids, true
}

// longWords is words for a long text that its blanks cut into words. It reports
// whether it did anything.
func (e *encoder) longWords(text []byte) bool {
	b := &e.t.model
	if e.t.instead != nil || b.blanks.never {
		return false
	}
	cuts := []int{0}
	for {
		next := cuts[len(cuts)-1] + e.t.partBytes()
		if next >= len(text) {
			break
		}
		at := b.blanks.cutFrom(text, next)
		if at < 0 {
			break
		}
		cuts = append(cuts, at)
	}
	cuts = append(cuts, len(text))
	ids := make([][]int32, len(cuts)-1)
	e.eachPart(len(ids), func(e *encoder, i int) {
		part := text[cuts[i]:cuts[i+1]]
		ids[i] = b.appendText(make([]int32, 0, len(part)/3+8), part, &e.merge)
	})
	for _, part := range ids {
		e.ids = append(e.ids, part...)
	}
	return true
}
