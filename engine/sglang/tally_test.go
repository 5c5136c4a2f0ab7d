package sglang

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"baton/engine"
)

type counted struct {
	ids   []engine.TokenID
	total int
}

// readAll gives events to a decoder and a tally, as an answer does.
func readAll(expected form, events ...counted) (got [][]engine.TokenID, err error) {
	var f frame
	sum := tally{expected: expected}
	for _, e := range events {
		data := []byte(event(append([]engine.TokenID{}, e.ids...), e.total, nil))
		if err := f.decode(data, engine.OutputOptions{}, sum.form == incremental); err != nil {
			return got, err
		}
		ids, err := sum.take(&f)
		if err == errAgain {
			_ = f.decode(data, engine.OutputOptions{}, true)
			ids, err = sum.take(&f)
		}
		if err != nil {
			return got, err
		}
		got = append(got, slices.Clone(ids))
	}
	return got, nil
}

func TestTally(t *testing.T) {
	type ids = []engine.TokenID
	for _, test := range []struct {
		name     string
		expected form
		events   []counted
		want     []ids // of the events before the error
		fails    bool
	}{
		{name: "cumulative", events: []counted{{ids{5}, 1}, {ids{5, 6}, 2}, {ids{5, 6, 7, 8}, 4}}, want: []ids{{5}, {6}, {7, 8}}},
		{name: "incremental", events: []counted{{ids{5}, 1}, {ids{6}, 2}, {ids{7, 8}, 4}}, want: []ids{{5}, {6}, {7, 8}}},
		{name: "one event", events: []counted{{ids{5, 6}, 2}}, want: []ids{{5, 6}}},
		{name: "cumulative, nothing new", events: []counted{{ids{5}, 1}, {ids{5}, 1}, {ids{5, 6}, 2}}, want: []ids{{5}, {}, {6}}},
		{name: "incremental, nothing new", events: []counted{{ids{5}, 1}, {nil, 1}, {ids{6}, 2}, {nil, 2}}, want: []ids{{5}, {}, {6}, {}}},
		{name: "nothing at first", events: []counted{{nil, 0}, {ids{5}, 1}, {ids{6}, 2}}, want: []ids{{}, {5}, {6}}},
		{name: "nothing at all", events: []counted{{nil, 0}}, want: []ids{{}}},
		{name: "incremental, the same id again", events: []counted{{ids{5}, 1}, {ids{5}, 2}, {ids{5}, 3}, {ids{5, 5}, 5}}, want: []ids{{5}, {5}, {5}, {5, 5}}},
		{name: "incremental, begins like the first", events: []counted{{ids{5}, 1}, {ids{5, 6}, 3}}, want: []ids{{5}, {5, 6}}},
		{name: "cumulative, the same id again", events: []counted{{ids{5}, 1}, {ids{5, 5}, 2}, {ids{5, 5, 5}, 3}}, want: []ids{{5}, {5}, {5}}},
		{name: "cumulative, the count lags", events: []counted{{ids{5}, 1}, {ids{5, 6, 7}, 2}, {ids{5, 6, 7, 8}, 4}}, want: []ids{{5}, {6, 7}, {8}}},
		{name: "another beginning", events: []counted{{ids{5, 6}, 2}, {ids{5, 7, 8}, 3}}, want: []ids{{5, 6}}, fails: true},
		{name: "cumulative, shorter", events: []counted{{ids{5}, 1}, {ids{5, 6, 7}, 3}, {ids{5, 6}, 3}}, want: []ids{{5}, {6, 7}}, fails: true},
		{name: "cumulative, then not", events: []counted{{ids{5}, 1}, {ids{5, 6}, 2}, {ids{7}, 3}}, want: []ids{{5}, {6}}, fails: true},
		{name: "incremental, one lost", events: []counted{{ids{5}, 1}, {ids{6}, 2}, {ids{8}, 4}}, want: []ids{{5}, {6}}, fails: true},
		{name: "incremental, one twice", events: []counted{{ids{5}, 1}, {ids{6}, 2}, {ids{6}, 2}}, want: []ids{{5}, {6}}, fails: true},
		{name: "the first count is too high", events: []counted{{ids{5}, 2}}, fails: true},
		{name: "the first count is too low", events: []counted{{ids{5, 6}, 1}}, fails: true},
		{name: "cumulative, the count is too high", events: []counted{{ids{5}, 1}, {ids{5, 6}, 2}, {ids{5, 6, 7}, 4}}, want: []ids{{5}, {6}}, fails: true},
		{name: "begins like the first, where that is no news", expected: cumulative, events: []counted{{ids{5}, 1}, {ids{5, 6}, 3}}, want: []ids{{5}}, fails: true},
		{name: "another form than the settings say", expected: cumulative, events: []counted{{ids{5}, 1}, {ids{6}, 2}, {ids{5, 6}, 4}}, want: []ids{{5}, {6}, {5, 6}}},
		{name: "a repeated event, before it is known what it is", events: []counted{{ids{5}, 1}, {ids{5}, 1}, {ids{5, 6}, 2}}, want: []ids{{5}, {}, {6}}},
	} {
		got, err := readAll(test.expected, test.events...)
		if (err != nil) != test.fails || !slices.EqualFunc(got, test.want, slices.Equal) {
			t.Errorf("%s: %v, %v; want %v", test.name, got, err, test.want)
		}
	}
}

// However an answer is cut into events, of either form, its ids come out whole.
func TestTallyOfAnyAnswer(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		answer := make([]engine.TokenID, 1+rnd.IntN(20))
		for i := range answer {
			answer[i] = engine.TokenID(rnd.IntN(3)) // many alike
		}
		for _, repeats := range []bool{false, true} {
			expected := []form{unknown, incremental}[rnd.IntN(2)]
			if repeats {
				expected = []form{unknown, cumulative}[rnd.IntN(2)]
			}
			var events []counted
			for from := 0; from < len(answer); {
				to := min(from+rnd.IntN(4), len(answer))
				ids := answer[from:to]
				if repeats {
					ids = answer[:to]
				}
				events, from = append(events, counted{ids, to}), to
			}
			got, err := readAll(expected, events...)
			if all := slices.Concat(got...); err != nil || !slices.Equal(all, answer) {
				t.Fatalf("%v in %v: %v, %v", answer, events, all, err)
			}
		}
	}
}

func TestTallyNeedsACount(t *testing.T) {
	var f frame
	var sum tally
	if err := f.decode([]byte(`{"output_ids":[5],"meta_info":{}}`), engine.OutputOptions{}, false); err != nil {
		t.Fatal(err)
	}
	if ids, err := sum.take(&f); err == nil {
		t.Errorf("%v without a count", fmt.Sprint(ids))
	}
}
