package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"baton/config"
)

// demoBefore returns a demo whose frontend answers every question with text.
func demoBefore(t *testing.T, text string, out *bytes.Buffer) *demo {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%q},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}`, text)
	}))
	t.Cleanup(s.Close)
	d := &demo{cfg: &config.Demo{Kills: 1}, screen: &screen{w: out, width: 40}, fleet: &fleet{address: s.Listener.Addr().String()}}
	d.answer.WriteString("one two three")
	d.tokens, d.finish = 3, "stop"
	return d
}

func TestVerdict(t *testing.T) {
	var out bytes.Buffer
	if exact, err := demoBefore(t, "one two three", &out).compare(context.Background()); !exact || err != nil || !strings.Contains(out.String(), "✓ exact") {
		t.Errorf("%v, %v, %s", exact, err, out.String())
	}
	out.Reset()
	exact, err := demoBefore(t, "one two seven", &out).compare(context.Background())
	if exact || err != nil {
		t.Errorf("another text: %v, %v", exact, err)
	}
	for _, want := range []string{"✗ not exact", `the same      "one two "`, `disturbed     "three"`, `undisturbed   "seven"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
	// The same letters with another end, or of another number of tokens, are not the same.
	d := demoBefore(t, "one two three", &out)
	d.finish = "length"
	if exact, _ := d.compare(context.Background()); exact {
		t.Error("another finish reason counts as exact")
	}
	d = demoBefore(t, "one two three", &out)
	d.tokens = 4
	if exact, _ := d.compare(context.Background()); exact {
		t.Error("another number of tokens counts as exact")
	}
}

// The mark stands where the frontend says, also when its record comes before or
// after tokens that were still on their way.
func TestSeamIsMarkedAtItsPlace(t *testing.T) {
	var out bytes.Buffer
	a, b := &demoWorker{name: "worker 1", address: "a:1", dead: true}, &demoWorker{name: "worker 2", address: "b:2"}
	d := &demo{cfg: &config.Demo{}, screen: &screen{w: &out, width: 40},
		fleet: &fleet{workers: []*demoWorker{a, b}, seams: make(chan seam, 1)}, writer: a}
	d.screen.begin(nil)
	d.take(chunk{text: "one", tokens: 1})
	d.due = true
	d.settle(chunk{text: " two", tokens: 2}) // of the first worker: there is no record yet
	d.take(chunk{text: " two", tokens: 2})
	d.fleet.seams <- seam{From: "a:1", To: "b:2", Carried: 2}
	d.settle(chunk{text: " three", tokens: 3})
	d.take(chunk{text: " three", tokens: 3})
	d.screen.end()
	if want := "  one two┊ three\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	if d.writer != b || d.due || len(d.seams) != 1 {
		t.Errorf("writer %v, due %v, seams %v", d.writer, d.due, d.seams)
	}
}

func TestCalledAs(t *testing.T) {
	for name, want := range map[string]string{
		"baton": "baton", "./baton": "./baton", "/usr/bin/baton": "/usr/bin/baton", "/my files/baton": "'/my files/baton'",
		"/tmp/go-build1234/b001/exe/baton": "go run ./cmd/baton",
	} {
		if got := calledAs(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
