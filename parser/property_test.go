package parser

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// However a text is cut, the joined events are the same: at every single place, in
// bytes, and in random pieces. Most of these cuts are inside of markers, and many
// inside of characters.
func TestCutsDoNotShow(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, r := range readRecorded(t) {
		check := func(cuts ...int) {
			t.Helper()
			if got := joined(r.opt, r.output, cuts...).String(); got != r.events {
				t.Fatalf("%s: cut at %v\ngot\n%s\nwant\n%s", r.name, cuts, got, r.events)
			}
		}
		all := make([]int, len(r.output))
		for i := range r.output {
			check(i)
			all[i] = i
		}
		for i := range all {
			all[i] = i
		}
		check(all...)
		for range 20 {
			var cuts []int
			for range random.IntN(12) {
				cuts = append(cuts, random.IntN(len(r.output)+1))
			}
			slices.Sort(cuts)
			check(cuts...)
		}
	}
}

// An answer can end anywhere. What was given out by then stays as it is in the
// longer answer, and nothing is swallowed.
func TestEveryPrefix(t *testing.T) {
	for _, r := range readRecorded(t) {
		whole := joined(r.opt, r.output)
		for cut := range r.output {
			// What Feed alone gives, before it is known that the answer ends, is a
			// beginning of what the whole answer gives.
			before := &answer{harmony: whole.harmony}
			p := New(r.opt)
			before.keep(func(emit func(Event)) { p.Feed([]byte(r.output[:cut]), emit) })
			if !whole.begins(before) {
				t.Fatalf("%s: %q\ngave\n%s\nand the whole answer\n%s", r.name, r.output[:cut], before, whole)
			}
			checkAccount(t, r.opt, r.output[:cut])
		}
		checkAccount(t, r.opt, r.output)
	}
}

// begins reports whether what the other answer gave out is where this one begins.
func (a *answer) begins(other *answer) bool {
	for i, e := range other.events {
		if i >= len(a.events) {
			return false
		}
		w := a.events[i]
		if w.Kind != e.Kind || w.Index != e.Index || w.Name != e.Name || w.ID != e.ID || !strings.HasPrefix(string(w.Text), string(e.Text)) {
			return false
		}
		if i < len(other.events)-1 && len(e.Text) != len(w.Text) {
			return false
		}
	}
	return true
}

// checkAccount accounts for every byte of a text: what is content, reasoning or
// a call's is given out, and what is not given out is markers and layout. It feeds
// byte by byte, so that what is given out belongs to what was just read.
func checkAccount(t *testing.T, opt Options, text string) {
	t.Helper()
	if !opt.Parallel {
		return // calls beyond the first are dropped because the request says so
	}
	type place struct {
		at     int  // all before is accounted for
		inCall bool // what precedes is a call's
	}
	places := []place{{}} // a short text can stand at several
	at := 0               // how many bytes were fed
	account := func(e Event) {
		if e.Kind == Call || e.Kind == Arguments {
			places = places[:0]
			for back := range min(at, longestMark) + 1 { // what ended it may be text
				places = append(places, place{at - back, true})
			}
			return
		}
		said := string(e.Text)
		var next []place
		find := func(said string) {
			for _, from := range places {
				for i := from.at; i <= at-len(said); i++ {
					behind := place{i + len(said), false}
					if text[i:i+len(said)] == said && !slices.Contains(next, behind) && isLayout(opt, text[from.at:i], from.inCall) {
						next = append(next, behind)
					}
				}
			}
		}
		find(said)
		if cut := strings.TrimPrefix(said, "\n"); cut != said && speaksHarmony(opt) {
			find(cut) // a message begins with a line of its own
		}
		if len(next) == 0 {
			t.Fatalf("%q was given out, and %q read\n%q", said, text[places[0].at:at], text)
		}
		places = next
	}
	p := New(opt)
	for i := range len(text) {
		at = i + 1
		p.Feed([]byte(text[i:at]), account)
	}
	p.Finish(account)
	if !slices.ContainsFunc(places, func(from place) bool { return isLayout(opt, text[from.at:], from.inCall) }) {
		t.Fatalf("%q is swallowed at the end of\n%q", text[places[0].at:], text)
	}
}

const longestMark = MaxName + 64 // or a name, or a marker, which may turn out to be text

// isLayout reports whether text says nothing: it is white space and markers, and
// behind a call its brackets, and a marker's beginning.
func isLayout(opt Options, text string, inCall bool) bool {
	for text != "" {
		if cut := strings.TrimLeft(text, " \t\r\n"); cut != text {
			text = cut
			continue
		}
		if inCall {
			if cut := strings.TrimLeft(text, "]}),;`"); cut != text {
				text = cut
				continue
			}
			if member := otherMember.FindString(text); member != "" {
				text = text[len(member):]
				continue
			}
		}
		if speaksHarmony(opt) {
			if header := harmonyHeader.FindString(text); header != "" {
				text, inCall = text[len(header):], true
				continue
			}
		}
		found := false
		for _, marker := range markersOf(opt) {
			if strings.HasPrefix(text, marker) || inCall && strings.HasPrefix(marker, text) {
				text = text[min(len(marker), len(text)):]
				found = true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

var (
	harmonyHeader = regexp.MustCompile(`^(<\|(start|channel)\|>[\w.]*( (to=[\w.]*|to?)?)?|<\|(end|call|return|message)\|>|to=[\w.]+|<\|constrain\|>\w*|code)`)
	otherMember   = regexp.MustCompile(`^"\w*(" ?(: ?("\w*"?)?)?)?`)
)

func speaksHarmony(opt Options) bool {
	return opt.Tool.speaksHarmony() || opt.Reasoning.speaksHarmony()
}

// markersOf returns all that the formats write around what they say.
func markersOf(opt Options) []string {
	var all []string
	for _, f := range []*Format{opt.Tool, opt.Reasoning} {
		if f == nil {
			continue
		}
		all = slices.Concat(all, f.Markers, f.opens, f.closes)
		for _, wrap := range f.wraps {
			all = append(all, wrap[:]...)
		}
		for _, t := range f.triggers {
			if !t.first {
				all = append(all, t.marker)
			}
			p := New(Options{})
			p.held = []byte(t.marker)
			switch m := t.opens(p).(type) {
			case *objects:
				all = append(all, m.ends...)
			case *pythonCalls:
				all = append(all, m.ends...)
			case *gemma:
				all = append(all, m.close, m.mark)
			case *elements:
				s := m.spec
				all = append(append(all, s.function, s.parameter, s.functionEnd, s.close, s.keyEnd, s.valueStart), slices.Concat(s.layout, s.valueEnds)...)
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // one may be in another
	return slices.DeleteFunc(all, func(marker string) bool { return marker == "" })
}
