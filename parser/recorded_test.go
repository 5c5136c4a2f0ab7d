package parser

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the events in testdata and the generated documents")

// A recorded answer: testdata/FORMAT/NAME.txt. Its head says where the answer is from,
// and the options it is read with; --- output begins what the model wrote, and
// --- events what that means.
type recorded struct {
	name   string
	opt    Options
	output string
	events string
	head   string
	file   string
}

// defaultTools are offered where a recorded answer does not say.
var defaultTools = []Tool{
	{Name: "get_weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"},
		"location":{"type":"string"},"unit":{"type":"string"},"state":{"type":"string"},"metric":{"type":"string"}}}`)},
	{Name: "get_time", Parameters: json.RawMessage(`{"type":"object","properties":{"timezone":{"type":"string"},"zone":{"type":["string","null"]}}}`)},
	{Name: "search", Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"},
		"tags":{"type":"array","items":{"type":"string"}},"filter":{"type":"object"},"exact":{"type":"boolean"},"score":{"type":"number"}}}`)},
	{Name: "refresh", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)},
}

func readRecorded(t testing.TB) []*recorded {
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no recorded answers", err)
	}
	var all []*recorded
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, rest, hasOutput := strings.Cut(string(text), "--- output\n")
		output, events, hasEvents := strings.Cut(rest, "\n--- events\n")
		if !hasOutput || !hasEvents || !strings.HasPrefix(head, "# ") {
			t.Fatalf("%s: wants a line with its source, --- output and --- events", file)
		}
		r := &recorded{file: file, head: head, output: output, events: events}
		folder := filepath.Base(filepath.Dir(file))
		r.name = folder + "/" + strings.TrimSuffix(filepath.Base(file), ".txt")
		if err := r.readHead(folder); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, r)
	}
	return all
}

func (r *recorded) readHead(folder string) error {
	r.opt = Options{Tool: ToolByName(folder), Tools: defaultTools, Parallel: true}
	if r.opt.Tool == nil {
		r.opt.Reasoning = ReasoningByName(folder)
	}
	for line := range strings.Lines(r.head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		var err error
		switch key {
		case "tool":
			if r.opt.Tool = ToolByName(value); r.opt.Tool == nil {
				err = fmt.Errorf("no format %s", value)
			}
		case "reasoning":
			if r.opt.Reasoning = ReasoningByName(value); r.opt.Reasoning == nil {
				err = fmt.Errorf("no format %s", value)
			}
		case "prompt":
			r.opt.PromptTail, err = strconv.Unquote(value)
		case "prefill":
			r.opt.Prefill, err = strconv.Unquote(value)
		case "parallel":
			r.opt.Parallel, err = strconv.ParseBool(value)
		case "constrained":
			r.opt.Constrained, err = strconv.ParseBool(value)
		case "named":
			r.opt.Named = value
		case "tools":
			r.opt.Tools = nil
			err = json.Unmarshal([]byte(value), &r.opt.Tools)
		default:
			if !strings.HasPrefix(line, "# ") {
				err = fmt.Errorf("what is %q", line)
			}
		}
		if err != nil {
			return err
		}
	}
	if r.opt.Tool == nil && r.opt.Reasoning == nil && r.opt.Named == "" {
		return fmt.Errorf("no format is named %s", folder)
	}
	return nil
}

func TestRecorded(t *testing.T) {
	for _, r := range readRecorded(t) {
		t.Run(r.name, func(t *testing.T) {
			got := joined(r.opt, r.output).String()
			if *update {
				text := r.head + "--- output\n" + r.output + "\n--- events\n" + got
				if err := os.WriteFile(r.file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != r.events {
				t.Errorf("got\n%s\nwant\n%s", got, r.events)
			}
			// Arguments are whole JSON but for answers whose names say why they are not.
			_, name, _ := strings.Cut(r.name, "/")
			if strings.Contains(got, "no whole JSON") && !strings.HasPrefix(name, "cut") && !strings.HasPrefix(name, "broken") {
				t.Errorf("a call that was closed has no whole arguments\n%s", got)
			}
		})
	}
}

// Every format has an answer that says where it is from.
func TestRecordedOfEveryFormat(t *testing.T) {
	seen := map[*Format]bool{}
	for _, r := range readRecorded(t) {
		seen[r.opt.Tool], seen[r.opt.Reasoning] = true, true
	}
	for _, f := range append(ToolFormats(), ReasoningFormats()...) {
		if !seen[f] {
			t.Errorf("%s: no recorded answer", f.Name)
		}
	}
}

// An answer is what came out of a parser, with adjacent pieces joined.
type answer struct {
	events  []Event
	calls   int
	harmony bool // whose messages each say what they are, in any order
}

// joined feeds a text in the pieces that cuts make of it. It checks what every
// sequence of events must be.
func joined(opt Options, text string, cuts ...int) *answer {
	a := &answer{harmony: opt.Tool.speaksHarmony() || opt.Reasoning.speaksHarmony()}
	p := New(opt)
	from := 0
	for _, cut := range append(cuts, len(text)) {
		a.keep(func(emit func(Event)) { p.Feed([]byte(text[from:cut]), emit) })
		from = cut
	}
	a.keep(p.Finish)
	if a.calls != p.Calls() {
		panic(fmt.Sprintf("%d calls were given, and %d counted", a.calls, p.Calls()))
	}
	return a
}

func (a *answer) keep(feed func(func(Event))) {
	var kept []Event
	feed(func(e Event) { kept = append(kept, e) }) // their text is valid until the next call
	for _, e := range kept {
		e.Text = append([]byte(nil), e.Text...)
		last := len(a.events) - 1
		switch {
		case e.Kind == Call:
			if e.Index != a.calls || e.Name == "" || len(e.Text) > 0 {
				panic(fmt.Sprintf("a call that cannot be: %+v", e))
			}
			a.calls++
			a.events = append(a.events, e)
			continue
		case len(e.Text) == 0:
			panic("an event that says nothing")
		case e.Kind == Arguments && e.Index != a.calls-1:
			panic("arguments of a call that is not the last")
		case e.Kind != Arguments && e.Index != 0:
			panic("text with an index")
		case e.Kind == Reasoning && a.said(Content) && !a.harmony:
			panic("reasoning after content")
		}
		if last >= 0 && a.events[last].Kind == e.Kind && a.events[last].Index == e.Index {
			a.events[last].Text = append(a.events[last].Text, e.Text...)
		} else {
			a.events = append(a.events, e)
		}
	}
}

func (a *answer) said(kind Kind) bool {
	for _, e := range a.events {
		if e.Kind == kind {
			return true
		}
	}
	return false
}

func (a *answer) String() string {
	var b strings.Builder
	for _, e := range a.events {
		switch e.Kind {
		case Content:
			fmt.Fprintf(&b, "content %q\n", e.Text)
		case Reasoning:
			fmt.Fprintf(&b, "reasoning %q\n", e.Text)
		case Call:
			fmt.Fprintf(&b, "call %s\n", strings.TrimSpace(e.Name+" "+e.ID))
		case Arguments:
			note := ""
			if !json.Valid(e.Text) {
				note = " (no whole JSON)"
			}
			if quoted := strconv.Quote(string(e.Text)); strings.Count(quoted, `\`) != strings.Count(string(e.Text), `\`)*2+strings.Count(string(e.Text), `"`) {
				fmt.Fprintf(&b, "arguments%s %s\n", note, quoted)
			} else {
				fmt.Fprintf(&b, "arguments%s %s\n", note, e.Text)
			}
		}
	}
	return b.String()
}
