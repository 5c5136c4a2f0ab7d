package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Half of the time of reading a file would go into its merges: each needs three
// ids, and every one of them is a walk to memory that no cache holds. So the list
// is cut into portions, which several goroutines read, and the ids of a portion are
// looked up side by side. The merges are entered in their order all the same.

// A mergePair is a merge as the file spells it.
type mergePair struct{ left, right []byte }

// parseMerges reads a list of merges and enters them in the order of their rank.
// It can be cut at cuts.
func (b *bpe) parseMerges(raw json.RawMessage, cuts []int) error {
	b.merges = newMergeTable(mergesIn(raw))
	if !isNull(raw) {
		list := mergeList{b: b, raw: raw, cuts: cuts}
		if err := list.enter(); err != nil {
			return fmt.Errorf("model.merges: %w", err)
		}
	}
	b.settleBlanks()
	return nil
}

// mergesIn is at least how many merges a list has, as far as there may be so many:
// each has two quotes around it, or two around both of its parts.
func mergesIn(raw []byte) int {
	quotes := bytes.Count(raw, []byte{'"'})
	s := scanner{data: raw}
	if s.next() == '[' {
		if s.pos++; s.next() == '[' {
			quotes /= 2
		}
	}
	return min(quotes/2, MaxMerges)
}

// addMerges enters merges in the order of their rank.
func (b *bpe) addMerges(pairs []mergePair) error {
	b.merges = newMergeTable(len(pairs))
	const portion = 4096 // merges
	var batch mergeBatch
	for rank := 0; rank < len(pairs); rank += portion {
		batch.reset()
		for _, p := range pairs[rank:min(rank+portion, len(pairs))] {
			batch.add(b, p)
		}
		batch.find(b)
		if err := b.enterMerges(&batch, rank); err != nil {
			return fmt.Errorf("model.merges: %w", err)
		}
	}
	b.settleBlanks()
	return nil
}

// enterMerges enters merges of which the first has this rank.
func (b *bpe) enterMerges(batch *mergeBatch, rank int) error {
	if batch.missing >= 0 {
		return outOfVocabulary(rank+batch.missing, batch.missingPair, batch.missingToken)
	}
	for i := range batch.merges {
		if m := &batch.merges[i]; !m.odd {
			b.merges.put(m.left, m.right, uint32(rank+i), m.whole)
		}
	}
	b.blanks.join(&batch.blanks)
	return nil
}

func outOfVocabulary(rank int, p mergePair, token string) error {
	return fmt.Errorf("merge %d of %q and %q needs the token %q, which is not in the vocabulary",
		rank, clip(p.left), clip(p.right), clip([]byte(token)))
}

// A mergeList is one list on its way into the table.
type mergeList struct {
	b    *bpe
	raw  json.RawMessage
	cuts []int

	taken atomic.Int64 // portions that a goroutine has begun
}

// enter reads all portions, as many at a time as there are processors, and enters
// what is ready as soon as all before it is in.
func (l *mergeList) enter() error {
	portions := len(l.cuts) + 1
	workers := min(runtime.GOMAXPROCS(0), portions)
	// A goroutine takes memory first and then a portion: so the portion that all
	// wait for always has some.
	free := make(chan *mergeBatch, workers+1)
	for range cap(free) {
		free <- new(mergeBatch)
	}
	ready := make([]chan *mergeBatch, portions)
	for i := range ready {
		ready[i] = make(chan *mergeBatch, 1)
	}
	var group sync.WaitGroup
	defer group.Wait()
	defer l.taken.Store(int64(portions)) // after an error nobody begins another one
	for range workers {
		group.Go(func() {
			for batch := range free {
				i := int(l.taken.Add(1)) - 1
				if i >= portions {
					return
				}
				l.read(batch, i)
				ready[i] <- batch
			}
		})
	}
	defer close(free)
	rank := 0
	for i := range ready {
		batch := <-ready[i]
		if err := l.b.enterMerges(batch, rank); err != nil {
			return err
		}
		if batch.broken {
			return l.failure(i, rank)
		}
		if rank += len(batch.merges); rank > MaxMerges {
			return fmt.Errorf("more than the limit of %d", MaxMerges)
		}
		free <- batch
	}
	return nil
}

// read reads portion i into batch.
func (l *mergeList) read(batch *mergeBatch, i int) {
	batch.reset()
	err := l.portion(i, 0, func(p mergePair) error {
		batch.add(l.b, p)
		return nil
	})
	batch.broken = err != nil
	batch.find(l.b)
}

// failure is what is wrong with portion i, of which the first merge has this rank.
func (l *mergeList) failure(i, rank int) error {
	return l.portion(i, rank, func(mergePair) error { return nil })
}

// portion calls enter for each merge of portion i, in their order. What it is given
// belongs to portion again when it returns.
func (l *mergeList) portion(i, rank int, enter func(mergePair) error) error {
	m := mergeReader{scanner: scanner{data: l.raw}, enter: enter, rank: rank}
	last := i == len(l.cuts)
	if !last {
		m.data = l.raw[:l.cuts[i]]
	}
	if i == 0 {
		if err := m.expect('['); err != nil {
			return err
		}
		if last && m.next() == ']' {
			return nil
		}
	} else {
		m.pos = l.cuts[i-1] + 1
	}
	for {
		if err := m.merge(); err != nil {
			return err
		}
		switch c := m.next(); {
		case c == ',':
			m.pos++
		case c == 0 && !last, c == ']' && last:
			return nil
		default:
			return m.fail()
		}
	}
}

// A mergeReader reads merges in both notations: "a b" and ["a", "b"].
type mergeReader struct {
	scanner
	enter func(mergePair) error
	rank  int // of the next
	left  []byte
}

// merge reads one merge.
func (m *mergeReader) merge() error {
	if m.next() == '[' {
		return m.parts()
	}
	line, err := m.string()
	if err != nil || bytes.HasPrefix(line, []byte("#version")) {
		return err
	}
	at := bytes.IndexByte(line, ' ')
	if at < 0 || bytes.IndexByte(line[at+1:], ' ') >= 0 {
		return fmt.Errorf("merge %d, %q, does not have two parts", m.rank, clip(line))
	}
	m.rank++
	return m.enter(mergePair{line[:at], line[at+1:]})
}

// parts reads a merge that is a list of its two parts.
func (m *mergeReader) parts() error {
	var right []byte
	n := 0
	err := m.list('[', ']', func() error {
		part, err := m.string()
		switch n++; n {
		case 1:
			m.left = append(m.left[:0], part...) // what string returns may be overwritten by the next
		case 2:
			right = part
		default:
			return fmt.Errorf("merge %d has more than two parts", m.rank)
		}
		return err
	})
	if err == nil && n != 2 {
		err = fmt.Errorf("merge %d has %d parts, not two", m.rank, n)
	}
	if err != nil {
		return err
	}
	m.rank++
	return m.enter(mergePair{m.left, right})
}

// A mergeBatch is some merges in a row, whose ids are looked up together.
type mergeBatch struct {
	text   []byte // the parts of all, one behind the other, as text has them
	merges []foundMerge
	blanks blankCuts

	broken       bool // it could not be read to its end
	missing      int  // the first merge that needs a token that is not there, -1 if there is none
	missingPair  mergePair
	missingToken string
}

// A foundMerge is a merge with its parts in the batch's text, and their ids.
type foundMerge struct {
	from, middle, end  uint32
	left, right, whole uint32
	odd                bool // no text has its parts
}

func (m *mergeBatch) reset() {
	m.text, m.merges, m.blanks, m.broken, m.missing = m.text[:0], m.merges[:0], blankCuts{}, false, -1
}

// add takes the next merge. The slices are the caller's again when it returns.
func (m *mergeBatch) add(b *bpe, p mergePair) {
	f := foundMerge{from: uint32(len(m.text))}
	if b.vocabulary.byteLevel {
		var leftOK, rightOK bool
		m.text, leftOK = appendSpelled(m.text, p.left)
		f.middle = uint32(len(m.text))
		m.text, rightOK = appendSpelled(m.text, p.right)
		f.odd = !leftOK || !rightOK
	} else {
		m.text = append(m.text, p.left...)
		f.middle = uint32(len(m.text))
		m.text = append(m.text, p.right...)
		m.blanks.note(b, p)
	}
	f.end = uint32(len(m.text))
	m.merges = append(m.merges, f)
	if f.odd { // the file must be sound all the same
		for _, s := range []string{string(p.left), string(p.right), string(p.left) + string(p.right)} {
			if b.vocabulary.spelledID(s) == none {
				m.miss(len(m.merges)-1, mergePair{bytes.Clone(p.left), bytes.Clone(p.right)}, s)
				return
			}
		}
	}
}

func (m *mergeBatch) miss(i int, p mergePair, token string) {
	if m.missing < 0 || i < m.missing {
		m.missing, m.missingPair, m.missingToken = i, p, token
	}
}

// find looks up the ids. The first walk only guesses, from the hash alone, so that
// one look-up need not wait for the other.
func (m *mergeBatch) find(b *bpe) {
	v := &b.vocabulary
	for i := range m.merges {
		f := &m.merges[i]
		f.left, f.right = v.guess(m.text[f.from:f.middle]), v.guess(m.text[f.middle:f.end])
	}
	whole := none
	for i := range m.merges {
		f := &m.merges[i]
		if f.odd {
			continue
		}
		left, right, both := m.text[f.from:f.middle], m.text[f.middle:f.end], m.text[f.from:f.end]
		f.left, f.right = v.confirm(left, f.left), v.confirm(right, f.right)
		// Files have the merges in the order of what they make, mostly.
		if whole = v.idNear(both, whole); whole == none {
			whole = v.id(both)
		}
		f.whole = whole
		for _, t := range []struct {
			id   uint32
			text []byte
		}{{f.left, left}, {f.right, right}, {f.whole, both}} {
			if t.id == none {
				m.miss(i, mergePair{[]byte(v.spelled(left)), []byte(v.spelled(right))}, v.spelled(t.text))
				return
			}
		}
	}
}
