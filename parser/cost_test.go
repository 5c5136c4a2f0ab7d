package parser

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

var prose = []byte(strings.Repeat("It is 3 < 4, of course; the list [1, 2] has \"two\" entries.\nNothing is called here. ", 12))

// everyFormat returns options for each format of calls, with reasoning, and for
// each format of reasoning.
func everyFormat() map[string]Options {
	all := map[string]Options{}
	for _, f := range ToolFormats() {
		all[f.Name] = Options{Tool: f, Reasoning: ReasoningByName("qwen3"), Tools: defaultTools, Parallel: true}
		if f.harmony {
			all[f.Name] = Options{Tool: f, Reasoning: ReasoningByName("openai_gptoss"), Tools: defaultTools, Parallel: true}
		}
	}
	for _, f := range ReasoningFormats() {
		all["reasoning/"+f.Name] = Options{Reasoning: f, Parallel: true}
	}
	return all
}

// Text that is plain costs no allocation, in whatever pieces it comes.
func TestPlainTextAllocatesNothing(t *testing.T) {
	for name, opt := range everyFormat() {
		p := New(opt)
		n := 0
		emit := func(e Event) { n += len(e.Text) }
		feed := func() {
			for text := range bytes.SplitAfterSeq(prose, []byte(" ")) {
				p.Feed(text, emit)
			}
		}
		feed()
		if allocs := testing.AllocsPerRun(20, feed); allocs != 0 || n == 0 {
			t.Errorf("%s: %v allocations, %d bytes given out", name, allocs, n)
		}
	}
}

func BenchmarkPlainText(b *testing.B) {
	for _, name := range []string{"hermes", "llama3_json", "qwen3_coder", "openai", "mistral"} {
		b.Run(name, func(b *testing.B) {
			p := New(everyFormat()[name])
			emit := func(Event) {}
			tokens := bytes.SplitAfter(prose, []byte(" "))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p.Feed(tokens[i%len(tokens)], emit)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	opt := everyFormat()["hermes"]
	b.ReportAllocs()
	for b.Loop() {
		New(opt)
	}
}

func BenchmarkArguments(b *testing.B) {
	for _, name := range []string{"hermes", "qwen3_coder", "pythonic", "openai"} {
		head := map[string]string{
			"hermes":      `<tool_call>{"name": "search", "arguments": {"query": "`,
			"qwen3_coder": "<tool_call>\n<function=search>\n<parameter=query>\n",
			"pythonic":    `[search(query="`,
			"openai":      `<|channel|>commentary to=functions.search<|message|>{"query": "`,
		}[name]
		b.Run(name, func(b *testing.B) {
			p := New(everyFormat()[name])
			emit := func(Event) {}
			p.Feed([]byte(head), emit)
			if p.Calls() != 1 {
				b.Fatal("no call")
			}
			b.ReportAllocs()
			for b.Loop() {
				p.Feed([]byte("Vienna "), emit)
			}
		})
	}
}

// Whatever a model writes costs time in proportion to its length, and memory that
// has a bound.
func TestAdversarialTextIsLinear(t *testing.T) {
	size := 64 << 10
	if os.Getenv("BATON_LONG_TESTS") != "" {
		size = 10 << 20 // some minutes
	}
	repeat := func(text string) []byte { return bytes.Repeat([]byte(text), size/len(text)) }
	texts := map[string][]byte{
		"<":       repeat("<"),
		"{":       repeat("{"),
		"[":       repeat("["),
		`"`:       repeat(`"`),
		"a":       repeat("a"),
		" ":       repeat(" "),
		"braces":  repeat(`{"a":`),
		"channel": repeat("<|channel|>"),
		"start":   repeat("<|start|>assistant"),
		"end":     repeat("</think>"),
	}
	for name, opt := range everyFormat() {
		t.Run(name, func(t *testing.T) {
			mine := map[string][]byte{}
			for name, text := range texts {
				mine[name] = text
			}
			for _, f := range []*Format{opt.Tool, opt.Reasoning} {
				if f == nil {
					continue
				}
				for _, trigger := range f.triggers {
					m := trigger.marker
					mine[m] = repeat(m)
					mine[m+" then a string without end"] = append([]byte(m+`{"name": "`), texts["a"]...)
					mine[m+" then strings that are skipped"] = append([]byte(m+`{"x": "`), repeat(m+`{\"x\": \"`)...)
					mine[m+" then names"] = repeat(m + strings.Repeat("n", 300))
					mine[m+" then objects"] = repeat(m + `{"name": "x", `)
					mine[m+" then spaces"] = append([]byte(m), texts[" "]...)
				}
			}
			for kind, text := range mine {
				begin := time.Now()
				checkBounded(t, opt, text)
				// Even with the race detector a byte takes well below a microsecond.
				if took := time.Since(begin); took > time.Duration(len(text))*2*time.Microsecond+time.Second {
					t.Errorf("%s: %d bytes took %v", kind, len(text), took)
				}
			}
		})
	}
}

func checkBounded(t *testing.T, opt Options, text []byte) {
	t.Helper()
	p := New(opt)
	emit := func(Event) {}
	for i := 0; i < len(text); i += 4096 {
		p.Feed(text[i:min(i+4096, len(text))], emit)
	}
	held := cap(p.held) + cap(p.unread) + cap(p.out) + cap(p.got) + cap(p.gap) + cap(p.scratch)
	switch m := p.machine.(type) {
	case *objects:
		held += cap(m.args) + cap(m.key) + cap(m.end.got)
	case *elements:
		held += cap(m.buf) + cap(m.value) + cap(m.want.got)
	case *pythonCalls:
		held += cap(m.word) + cap(m.value.stack) + cap(m.value.word) + cap(m.end.got)
	case *gemma:
		held += cap(m.name) + cap(m.got) + cap(m.value.stack) + cap(m.value.word) + cap(m.end.got)
	case *named:
		held += len(m.head) + cap(m.want.got)
	case *harmony:
		held += cap(m.header) + cap(m.body)
	}
	if held > 8*maxHeld {
		t.Errorf("%d bytes are held", held)
	}
	p.Finish(emit)
	runtime.KeepAlive(p)
}
