package main

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// newTestCourse makes a course for races of a second or two.
func newTestCourse(t *testing.T, binary string) *course {
	t.Helper()
	if testing.Short() {
		t.Skip("starts programs")
	}
	if runtime.GOOS != "linux" {
		t.Skip("what a process costs is read from /proc")
	}
	c, err := newCourse(t.Context(), plan{requests: 3, streams: 20, flat: 2, hold: 300 * time.Millisecond, rounds: 1}, binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// What is planted into the floor has to be found, by the figure that it is
// planted for, and the floor itself must not be blamed.
func TestGuardFindsWhatIsPlanted(t *testing.T) {
	c := newTestCourse(t, "/bin/true") // baton does not take part
	most := bounds{"CPU/token paced": 1.5, "CPU/token unpaced": 1.5, "segments/token": 1.2}
	for _, test := range []struct {
		name     string
		handicap []string
		rounds   int // the machine is busy with other tests
		finds    string
	}{
		{"nothing", nil, 8, ""},
		{"CPU time", []string{"100us"}, 1, "CPU/token paced"},
		{"a write", []string{"halved"}, 1, "segments/token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c.plan.rounds = test.rounds
			var report bytes.Buffer
			err := c.guard(t.Context(), c.floor("it", test.handicap...), most, &report)
			if test.finds == "" && err != nil {
				t.Errorf("blamed without reason: %v\n%s", err, &report)
			}
			if test.finds != "" && (err == nil || !strings.Contains(err.Error(), test.finds)) {
				t.Errorf("got %v, want a loss of %s\n%s", err, test.finds, &report)
			}
		})
	}
}

func TestBoundsBelieveTheBest(t *testing.T) {
	most := bounds{"CPU/token paced": 1.3, "memory/stream paced": 0.9}
	for _, test := range []struct {
		name  string
		races []ratios
		lost  int
	}{
		{"within", []ratios{{pacedCPU: 1.2, memory: 0.5}}, 0},
		{"once within", []ratios{{pacedCPU: 1.6, memory: 0.5}, {pacedCPU: 1.2, memory: 2}}, 0},
		{"never", []ratios{{pacedCPU: 1.6, memory: 1}, {pacedCPU: 1.4, memory: 0.5}}, 1},
		{"both", []ratios{{pacedCPU: 1.6, memory: 1}}, 2},
		{"never measured", []ratios{{pacedCPU: 1.1}, {pacedCPU: 1.1}}, 1},
		{"measured later", []ratios{{memory: 0.5}, {pacedCPU: 1.1}}, 0},
	} {
		if lost := most.lost(test.races); len(lost) != test.lost {
			t.Errorf("%s: lost %q, want %d", test.name, lost, test.lost)
		}
	}
}

// A title that no column has would guard nothing.
func TestGuardBoundsAreOfColumns(t *testing.T) {
	for title := range guardBounds {
		if !slices.ContainsFunc(columns, func(c column) bool { return c.title == title }) {
			t.Errorf("no column has the title %q", title)
		}
	}
}
