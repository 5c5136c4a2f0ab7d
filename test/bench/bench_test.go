package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"baton/tokenizer"
)

// TestMain lets the test's own program play the worker and the floor.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "worker" || os.Args[1] == "floor") {
		fmt.Fprintln(os.Stderr, run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A race of a second, to see that the tool still works with what it measures.
func TestRace(t *testing.T) {
	c := newTestCourse(t, "")
	rows, err := c.raceAll(t.Context(), c.races(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if got := r.rounds[0].unpacedCPU; got > 50 { // 0: a busy machine left no tick of CPU time
			t.Errorf("%s: CPU per unpaced token is %v times the yardstick's", r.name, got)
		}
	}
	var table bytes.Buffer
	if err := printTable(&table, rows); err != nil || strings.Count(table.String(), "\n") != 1+len(columns)+2+1 {
		t.Errorf("table: %v\n%s", err, &table)
	}
}

func TestUsageCountsThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("CPU times are read from /proc")
	}
	begin, err := usageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for spent := time.Duration(0); spent < 5*tick; {
		now, err := usageOf(os.Getpid())
		if err != nil || now.memory <= 0 {
			t.Fatalf("%+v, %v", now, err)
		}
		spent = now.cpu - begin.cpu // reading /proc is work
	}
}

func TestModelHasTheWords(t *testing.T) {
	dir := t.TempDir()
	if err := writeModel(dir); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < wordCount; i += 97 {
		if n, ok := wordNumber([]byte(words[i])); !ok || n != i {
			t.Errorf("%q is word %d (%v), want %d", words[i], n, ok, i)
		}
		ids := tok.Encode(words[i], false)
		if len(ids) != 1 || int(ids[0]) != firstWordID+i {
			t.Errorf("%q encodes to %d, want %d", words[i], ids, firstWordID+i)
		}
	}
	for _, text := range []string{"", "baba", " bab", " b1ba", " ébab"} {
		if n, ok := wordNumber([]byte(text)); ok {
			t.Errorf("%q is word %d", text, n)
		}
	}
}

func TestAgeSurvivesTheWrap(t *testing.T) {
	const unit = 10 * time.Microsecond
	written := time.Unix(0, int64(wordCount*unit)*12345-int64(30*unit)) // 30 units before a wrap
	for _, under := range []time.Duration{0, 3, unit, 29 * unit, 70*unit + 7} {
		if got := age(stamp(written, unit), written.Add(under), unit); got != under {
			t.Errorf("age is %v, want %v", got, under)
		}
	}
}

// The client is what vouches for the figures: it must notice each of these.
func TestClientBelievesNothing(t *testing.T) {
	event := func(text, finish string) string {
		return `data: {"choices":[{"delta":{"content":"` + text + `"},"finish_reason":` + finish + "}]}\n\n"
	}
	first, last := event(words[0], "null"), event(words[1], `"length"`)
	const done = "data: [DONE]\n\n"
	for _, test := range []struct {
		name, body string
		good       bool
	}{
		{"whole", first + last + done, true},
		{"two tokens in an event", event(words[0]+words[1], `"length"`) + done, true},
		{"a token short", last + done, false},
		{"a token twice", first + first + last + done, false},
		{"wrong order", event(words[1], "null") + event(words[0], `"length"`) + done, false},
		{"no finish", first + event(words[1], "null") + done, false},
		{"no end", first + last, false},
		{"more after the end", first + last + done + first, false},
		{"spaces in the JSON", strings.ReplaceAll(first+last, ":\"", ": \"") + done, true},
		{"an error", first + "data: {\"error\":{}}\n\n", false},
	} {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			far.Read(make([]byte, 4096))
			fmt.Fprintf(far, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(test.body), test.body)
		}()
		c := &client{inOrder: true, onToken: func(int, time.Time) {}}
		c.use(near)
		if err := c.ask(2); (err == nil) != test.good {
			t.Errorf("%s: error %v", test.name, err)
		}
		c.close()
	}
}

func TestSummary(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   string
	}{
		{nil, "–"},
		{[]float64{0}, "–"},
		{[]float64{1.5, 0}, "1.50"},
		{[]float64{1.5, 1.1, 0, 1.2}, "1.20 (1.10–1.50)"},
	} {
		if got := summary(test.values, "%.2f"); got != test.want {
			t.Errorf("summary is %q, want %q", got, test.want)
		}
	}
}
