package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A peer that does not answer is said and left out; the others stay.
func TestCompareLeavesOutWhoFails(t *testing.T) {
	c := newTestCourse(t, "/bin/true")
	var said, table bytes.Buffer
	s := &standings{course: c, progress: &said}
	broken := contestant{command: command{name: "broken", args: []string{"/bin/sh", "-c", "echo out of order"}}}
	for _, who := range []contestant{c.floor("first"), broken, c.floor("last")} {
		s.rows = append(s.rows, &row{contestant: who})
	}
	s.rows[2].mostOpen = 9
	s.round(t.Context(), 1)
	s.openings(t.Context(), 10)
	if err := s.print(&table); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(said.String(), "broken: left out from here on") || !strings.Contains(said.String(), "out of order") {
		t.Errorf("it was not said: %s", &said)
	}
	if text := table.String(); !strings.Contains(text, "first") || !strings.Contains(text, "last") || strings.Contains(text, "broken") ||
		!strings.Contains(text, "memory/stream, 10 open") {
		t.Errorf("table:\n%s", text)
	}
	if r := s.rows[2]; r.failed != nil || len(r.rounds) != 1 || len(r.openings) != 0 {
		t.Errorf("the last one: %v, %d rounds, opened %d times and should not be", r.failed, len(r.rounds), len(r.openings))
	}
	if err := s.failure(t.Context()); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("the second is no peer, and its failure was not told: %v", err)
	}
}

// Whoever interrupts gets away at once, and nothing stays: not even what a
// contestant has started itself.
func TestInterruptedRaceLeavesNothing(t *testing.T) {
	c := newTestCourse(t, "/bin/true")
	c.plan.hold, c.plan.requests = time.Minute, 1
	pidFile := filepath.Join(t.TempDir(), "pid")
	floor := c.floor("floor")
	parent := floor
	parent.args = append([]string{"/bin/sh", "-c", `sleep 1000 & echo $! >"$0"; "$@"`, pidFile}, floor.args...)
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := time.AfterFunc(2*time.Second, cancel)
	defer interrupted.Stop()
	if _, err := c.race(ctx, floor, parent, false); !errors.Is(err, context.Canceled) {
		t.Fatalf("the race ended with %v", err)
	}
	text, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	for end := time.Now().Add(5 * time.Second); alive(pid); {
		if time.Now().After(end) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

// alive says whether a process runs; one that has ended may not have been
// waited for yet.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

func TestPeersArePlaced(t *testing.T) {
	c := &course{worker: &process{target: target{address: "127.0.0.1:1"}}, files: 4096}
	left := regexp.MustCompile(`{[a-z0-9]+}`)
	for _, p := range peers {
		if !strings.Contains(installScript, "["+p.name+"]=") {
			t.Errorf("%s is not in the script that installs", p.name)
		}
		who := c.placed(p, "/peers/x", "1.0")
		all := append(append([]string{}, who.args...), who.env...)
		for _, text := range who.files {
			all = append(all, text)
		}
		for _, word := range left.FindAllString(strings.Join(all, " "), -1) {
			switch word {
			case "{port}", "{port2}", "{scratch}", "{address}": // known at its start
			default:
				t.Errorf("%s: nothing is put in the place of %s", p.name, word)
			}
		}
	}
}
