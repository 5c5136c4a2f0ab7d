package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary play the children that the tests start.
func TestMain(m *testing.M) {
	switch os.Getenv("BATON_TEST_CHILD") {
	case "":
		os.Exit(m.Run())
	case "words":
		os.Stdout.WriteString("first\nlast words\n")
		os.Exit(3)
	case "sleep":
		dieWithParent()
		select {}
	}
}

func TestLastWordsOfAChild(t *testing.T) {
	t.Setenv("BATON_TEST_CHILD", "words")
	var lines []string
	p, err := startProcess("the child", func(l string) { lines = append(lines, l) }, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	err = waitUntil(t.Context(), p, time.Minute, func(context.Context) bool { return false })
	if want := "the child ended while starting; its last line: last words"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	p.close()
	if strings.Join(lines, "|") != "first|last words" {
		t.Errorf("lines %q", lines)
	}
}

func TestCloseKills(t *testing.T) {
	t.Setenv("BATON_TEST_CHILD", "sleep")
	p, err := startProcess("the child", nil, os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if p.hasEnded() {
		t.Error("it ended by itself")
	}
	p.close()
	if !p.hasEnded() || p.cmd.ProcessState == nil {
		t.Error("it was not waited for")
	}
}

// A child of ours ends when its parent's end of the pipe is gone, which is what
// the operating system does when the parent dies.
func TestDieWithParent(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "BATON_TEST_CHILD=sleep", parentPipe+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
		t.Fatal("it ended while its parent lived")
	default:
	}
	stdin.Close()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		cmd.Process.Kill()
		t.Fatal("it outlives its parent")
	}
}

func TestChildrenDoNotInheritSettings(t *testing.T) {
	t.Setenv("DYN_HTTP_PORT", "1")
	t.Setenv("KEEP_ME", "1")
	all := strings.Join(environment(), "\n")
	if strings.Contains(all, "DYN_HTTP_PORT") || !strings.Contains(all, "KEEP_ME") {
		t.Error(all)
	}
}

func TestUnknownCommands(t *testing.T) {
	for _, args := range [][]string{{"frobnicate"}, {"version", "x"}, {"help", "x"}, {"demo", "--x"}, {"serve", "--x"}, {"sim", "--x"}, {"sim", "--kind", "x"}} {
		var stderr strings.Builder
		if status := run(args, io.Discard, &stderr); status != exitUsage || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%q: status %d, %q", args, status, stderr.String())
		}
	}
	for _, args := range [][]string{nil, {"help"}, {"version"}, {"help", "serve"}, {"serve", "--help"}, {"demo", "-h"}} {
		var stdout, stderr strings.Builder
		if status := run(args, &stdout, &stderr); status != exitOK || stdout.Len() == 0 || stderr.Len() > 0 {
			t.Errorf("%q: status %d, %q", args, status, stderr.String())
		}
	}
}

// What a child said of an error counts more than its tidying up.
func TestLastWords(t *testing.T) {
	for want, tail := range map[string][]string{
		"it said nothing":               nil,
		"its last line: bye":            {"hello", "bye"},
		"it said: main: error: no file": {"loading", "main: error: no file", "cleaning up before exit..."},
	} {
		if got := (&process{tail: tail}).lastWords(); got != want {
			t.Errorf("%q: %s", tail, got)
		}
	}
}
