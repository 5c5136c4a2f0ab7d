package sglang

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
	"baton/engine/stream"
	"baton/engine/transport"
)

// tokens returns the events of an answer of n tokens, repeated or not.
func tokens(n int, repeats bool) []string {
	var all []engine.TokenID
	var events []string
	for i := range n {
		all = append(all, engine.TokenID(10+i%50))
		ids := all
		if !repeats {
			ids = all[i:]
		}
		var finish any
		if i == n-1 {
			finish = map[string]any{"type": "length", "length": n}
		}
		events = append(events, "data: "+event(ids, i+1, finish)+"\n\n")
	}
	return events
}

// deltasOf returns the ids of each delta.
func deltasOf(t *testing.T, pieces ...string) (deltas [][]engine.TokenID, failure *engine.Error) {
	t.Helper()
	all, failure := enginetest.Deltas(t, func(l *transport.Link) engine.Engine { return New(l) }, enginetest.NewRequest(), pieces...)
	for _, d := range all {
		deltas = append(deltas, d.TokenIDs)
	}
	return deltas, failure
}

// Events that have arrived together are one delta, and nothing is waited for.
func TestEventsThatArriveTogetherAreOneDelta(t *testing.T) {
	for _, repeats := range []bool{true, false} {
		e := tokens(5, repeats)
		for _, test := range []struct {
			pieces []string
			want   [][]engine.TokenID
		}{
			{[]string{strings.Join(e, "")}, [][]engine.TokenID{{10, 11, 12, 13}, {14}}},
			{e, [][]engine.TokenID{{10}, {11}, {12}, {13}, {14}}},
			{[]string{e[0] + e[1] + e[2][:20], e[2][20:] + e[3] + e[4]}, [][]engine.TokenID{{10, 11}, {12, 13}, {14}}},
		} {
			if got, err := deltasOf(t, test.pieces...); err != nil || !slices.EqualFunc(got, test.want, slices.Equal) {
				t.Errorf("repeats %v: %v, %v; want %v", repeats, got, err, test.want)
			}
		}
	}
}

// An answer of many tokens is read whole, in deltas that stay small, and within
// the bound of an event although each repeats all before it.
func TestLongAnswers(t *testing.T) {
	const n = 1500
	for _, repeats := range []bool{true, false} {
		got, err := deltasOf(t, strings.Join(tokens(n, repeats), ""))
		if err != nil {
			t.Fatal(err)
		}
		i := 0
		for _, delta := range got {
			if len(delta) > stream.MaxJoined {
				t.Errorf("a delta of %d ids", len(delta))
			}
			for _, id := range delta {
				if int(id) != 10+i%50 {
					t.Fatalf("id %d is %d", i, id)
				}
				i++
			}
		}
		if i != n {
			t.Errorf("repeats %v: %d ids", repeats, i)
		}
	}
}

// A stream is not read beyond what an answer of its budget can need.
func TestEndlessEvent(t *testing.T) {
	c := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, `data: {"text":"`)
		for range 4 << 10 {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<10)); err != nil {
				return
			}
		}
	}))
	if e := lastError(t, c, enginetest.NewRequest()); e == nil || e.Kind != engine.ProtocolError {
		t.Errorf("%v", e)
	}
}

func BenchmarkStream(b *testing.B) {
	for name, repeats := range map[string]bool{"cumulative": true, "incremental": false} {
		b.Run(name, func(b *testing.B) {
			const n = 1000
			body := strings.Join(tokens(n, repeats), "")
			c := clientOf(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, body)
			}))
			enginetest.BenchmarkStream(b, c, n)
		})
	}
}
