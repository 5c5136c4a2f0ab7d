package backend

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// naive is what the matcher must agree with: it looks at the whole text again
// for each piece.
type naive struct {
	stops []string
	text  string
}

func (n *naive) feed(piece string) (best match, ok bool) {
	from := len(n.text)
	n.text += piece
	bestStart := 0
	for end := from + 1; end <= len(n.text); end++ {
		for i, stop := range n.stops {
			start := end - len(stop)
			if stop == "" || !strings.HasSuffix(n.text[:end], stop) || ok && start >= bestStart {
				continue
			}
			best, bestStart, ok = match{stop: i, end: end - from}, start, true
		}
	}
	return best, ok
}

func (n *naive) held() int {
	for size := len(n.text); size > 0; size-- {
		for _, stop := range n.stops {
			if size < len(stop) && strings.HasPrefix(stop, n.text[len(n.text)-size:]) {
				return size
			}
		}
	}
	return 0
}

// checkMatcher feeds text in pieces of the given sizes to both.
func checkMatcher(t *testing.T, stops []string, text string, sizes []int) {
	t.Helper()
	m, n := newMatcher(stops), &naive{stops: stops}
	for i := 0; len(text) > 0; i++ {
		size := 1
		if len(sizes) > 0 {
			size = min(max(sizes[i%len(sizes)], 0), len(text))
			if size == 0 && i > 2*len(sizes)+len(n.text) {
				size = 1
			}
		}
		piece := text[:size]
		text = text[size:]
		got, gotOK := m.feed([]byte(piece))
		want, wantOK := n.feed(piece)
		if gotOK != wantOK || gotOK && (got.end != want.end || stops[got.stop] != stops[want.stop]) {
			t.Fatalf("stops %q, text %q, piece %q: got %v %v, want %v %v", stops, n.text, piece, got, gotOK, want, wantOK)
		}
		if got, want := m.held(), n.held(); got != want {
			t.Fatalf("stops %q, text %q: %d bytes are held, want %d", stops, n.text, got, want)
		}
	}
}

func TestMatcherEqualsNaiveSearch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	word := func(most int) string {
		b := make([]byte, rnd.IntN(most+1))
		for i := range b {
			b[i] = "ab\xc3\xa9"[rnd.IntN(2+2*rnd.IntN(2))]
		}
		return string(b)
	}
	for range 20000 {
		stops := make([]string, 1+rnd.IntN(4))
		for i := range stops {
			stops[i] = word(5)
		}
		checkMatcher(t, stops, word(24), []int{rnd.IntN(4), rnd.IntN(4), rnd.IntN(3)})
	}
}

func FuzzMatcher(f *testing.F) {
	f.Add("ab", "abcd", "bc", "xabcdabbc", uint8(1), uint8(4))
	f.Add("\n\n", "User:", "", "a\nUser\nUser:\n\n", uint8(3), uint8(0))
	f.Add("aab", "aaab", "ab", "aaaaab", uint8(2), uint8(2))
	f.Fuzz(func(t *testing.T, a, b, c, text string, first, second uint8) {
		if len(text) > 200 {
			return
		}
		checkMatcher(t, []string{a, b, c}, text, []int{int(first), int(second)})
	})
}

func TestMatcherPrefersWhatBeginsFirst(t *testing.T) {
	for _, c := range []struct {
		stops []string
		piece string
		want  string
		end   int
	}{
		{[]string{"bc", "abcd"}, "abcd", "abcd", 4}, // completes later, in the same token
		{[]string{"abcd", "ab"}, "abcd", "ab", 2},   // begin together: the shorter
		{[]string{"b", "ab"}, "ab", "ab", 2},
		{[]string{"x", "a"}, "ax", "a", 1},
	} {
		m := newMatcher(c.stops)
		got, ok := m.feed([]byte(c.piece))
		if !ok || c.stops[got.stop] != c.want || got.end != c.end {
			t.Errorf("%q in %q: got %v %v", c.stops, c.piece, got, ok)
		}
	}
}

func BenchmarkMatcher(b *testing.B) {
	m := newMatcher([]string{"\n\n\n", "User:", "</s>", "Observation:"})
	text := []byte(strings.Repeat("Use the observation: it is User friendly.\n\n", 24))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		m.feed(text)
	}
}
