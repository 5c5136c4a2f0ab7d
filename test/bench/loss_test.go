package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// Half of a few streams lose their worker, to see that the tool still works with
// what it measures.
func TestLosses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("CPU times are read from /proc")
	}
	c := newTestCourse(t, "")
	const streams = 20
	plan := lossPlan{gap: 50 * time.Millisecond, ramp: openRamp, window: 400 * time.Millisecond, stall: 500 * time.Millisecond}
	runs, err := c.loseAll(t.Context(), plan, streams, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		moved, stayed := r.split()
		moves, blamed := r.moves(c.worker.address)
		if len(moved) == 0 || len(moved)+len(stayed) != streams || moves < len(moved) || r.failed()+r.wrong() != 0 || len(r.pauses()) != len(moved) {
			t.Errorf("%s: %d moved, %d moves, %d stayed, %d failed, %d wrong, %d pauses", r.name, len(moved), moves, len(stayed), r.failed(), r.wrong(), len(r.pauses()))
		}
		if blamed > 0 {
			t.Errorf("%s: %d moves are blamed on the worker that lives", r.name, blamed)
		}
		if pause := slices.Min(r.pauses()); r.frozen && pause < 0 {
			t.Errorf("%s: a stream was moved %v before the stall bound", r.name, -pause)
		}
	}
	var table bytes.Buffer
	if err := printLosses(&table, runs, c.worker.address); err != nil || strings.Count(table.String(), "\n") != 19 || strings.Contains(table.String(), "NaN") {
		t.Errorf("table: %v\n%s", err, &table)
	}
}

func TestGapsOfAStream(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		name     string
		tokens   []time.Duration
		span     span
		longest  time.Duration
		lateness time.Duration // -1 = none
	}{
		{"on time", []time.Duration{0, s, 2 * s, 3 * s}, span{s, 3 * s}, s, 0},
		{"late for ever", []time.Duration{0, s, 4 * s, 5 * s}, span{2 * s, 6 * s}, 3 * s, 2 * s},
		{"late once", []time.Duration{0, s, 4 * s, 4 * s}, span{2 * s, 6 * s}, 3 * s, 3 * s / 2},
		{"the first one was late", []time.Duration{s, s, 2 * s, 3 * s}, span{0, s + 1}, 0, s / 2},
		{"only the end counts", []time.Duration{0, 5 * s, 6 * s}, span{0, 5 * s}, 0, 0},
		{"none in the span", []time.Duration{0, s}, span{2 * s, 3 * s}, 0, -1},
		{"none at all", nil, span{0, s}, 0, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &follower{tokens: c.tokens}
			late, ok := f.lateness(c.span, s)
			if !ok {
				late = -1
			}
			if longest := f.longestGap(c.span); longest != c.longest || late != c.lateness {
				t.Errorf("longest gap %v, lateness %v, want %v, %v", longest, late, c.longest, c.lateness)
			}
		})
	}
}

func TestPausesOfWhoMoved(t *testing.T) {
	const s = time.Second
	one := []followed{{Worker: "a"}}
	two := []followed{{Worker: "a", Tokens: 1, Error: "disconnected"}, {Worker: "b"}}
	none := []followed{{Worker: "a", Error: "disconnected"}, {Worker: "b"}}
	r := &lossRun{plan: lossPlan{stall: 2 * s}, streams: []*follower{
		{tokens: []time.Duration{s, 5 * s}, attempts: two},
		{tokens: []time.Duration{s, 2 * s, 3 * s}, attempts: one},
		{tokens: []time.Duration{4 * s}, attempts: none},
		{tokens: []time.Duration{s, 6 * s}, attempts: two, err: io.EOF},
		{attempts: two, err: fmt.Errorf("%w: 1 of 2", errTokens)},
	}}
	r.loads[0].to = 3 * s
	if got := r.pauses(); !slices.Equal(got, []time.Duration{2 * s}) {
		t.Errorf("killed: %v", got)
	}
	r.frozen = true
	if got := r.pauses(); !slices.Equal(got, []time.Duration{2 * s}) {
		t.Errorf("frozen: %v", got)
	}
	if moves, blamed := r.moves("a"); moves != 4 || blamed != 4 || r.failed() != 2 || r.wrong() != 1 {
		t.Errorf("%d moves, %d of a, %d failed, %d wrong", moves, blamed, r.failed(), r.wrong())
	}
}

func TestSortsOfFailures(t *testing.T) {
	var out bytes.Buffer
	r := &lossRun{streams: []*follower{{err: errors.New("port 123")}, {err: errors.New("port 456")}, {}}, direct: []*follower{{err: io.EOF}}}
	r.complain(&out)
	if want := "  1: EOF\n  2: port ###\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}

// An answer goes on where its part in the prompt ends.
func TestWhereAnAnswerBegins(t *testing.T) {
	for body, want := range map[string]int{
		`{"prompt":[1,2,10],"max_tokens":5}`:        0,
		`{"prompt":[1,457,10, 456]}`:                1,
		`{"prompt":[456,10455]}`:                    0,
		`{"prompt":[10,456,457,458],"stream":true}`: 3,
		`{"prompt":[]}`:                             0,
		`{"prompt":[456]}`:                          1,
		`{}`:                                        0,
	} {
		if _, got := completionFrames([]byte(body)); got != want {
			t.Errorf("%s: word %d, want %d", body, got, want)
		}
	}
}
