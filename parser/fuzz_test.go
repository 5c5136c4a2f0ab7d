package parser

import (
	"encoding/json"
	"strings"
	"testing"
)

// fuzzOptions are the ways in which a fuzzed text is read.
func fuzzOptions() []Options {
	var all []Options
	for _, f := range ToolFormats() {
		for _, reasoning := range []string{"", "qwen3", "deepseek_r1"} {
			all = append(all, Options{Tool: f, Reasoning: ReasoningByName(reasoning), Tools: defaultTools, Parallel: true})
		}
		all = append(all, Options{Tool: f, Parallel: true}) // any name is known
	}
	for _, f := range ReasoningFormats() {
		all = append(all, Options{Reasoning: f, Parallel: true})
		all = append(all, Options{Reasoning: f, Named: "get_weather", Constrained: true, Parallel: true})
	}
	return all
}

func seed(f *testing.F) {
	options := fuzzOptions()
	for _, r := range readRecorded(f) {
		for i, opt := range options {
			if opt.Tool == r.opt.Tool && opt.Named == r.opt.Named && (opt.Reasoning == nil) == (r.opt.Reasoning == nil) {
				f.Add(r.output, uint16(i), uint8(len(r.output)/2))
			}
		}
	}
}

// FuzzCuts: no text makes the parser fail, and no cut changes what it gives out.
func FuzzCuts(f *testing.F) {
	seed(f)
	options := fuzzOptions()
	f.Fuzz(func(t *testing.T, text string, which uint16, step uint8) {
		opt := options[int(which)%len(options)]
		whole := joined(opt, text)
		var cuts []int
		for i := int(step)%7 + 1; i < len(text); i += int(step)%7 + 1 {
			cuts = append(cuts, i)
		}
		if cut := joined(opt, text, cuts...); cut.String() != whole.String() {
			t.Errorf("%q cut at %v\ngave\n%s\nand whole\n%s", text, cuts, cut, whole)
		}
	})
}

// FuzzAccount: nothing is swallowed, and the arguments of a call that was closed
// are JSON, if each text that was taken over as JSON is.
func FuzzAccount(f *testing.F) {
	seed(f)
	options := fuzzOptions()
	f.Fuzz(func(t *testing.T, text string, which uint16, step uint8) {
		opt := options[int(which)%len(options)]
		a := joined(opt, text)
		if opt.Tool == nil && opt.Named == "" && !a.harmony && a.calls > 0 {
			t.Error("calls without a format")
		}
		// Of an object the members that are no name and no arguments are dropped.
		object := a.calls > 0 && (strings.Contains(text, "name") || strings.Contains(text, "function"))
		if !a.harmony && opt.Named == "" && !object {
			checkAccount(t, opt, text)
		}
		if opt.Named != "" || a.harmony || opt.Tool == nil {
			return
		}
		// Elements and Python are translated, so what comes out is whole JSON if it
		// ends with the brace that closes it.
		for i, e := range a.events {
			if e.Kind != Arguments || i == len(a.events)-1 || !translates(opt.Tool) {
				continue
			}
			if last := e.Text[len(e.Text)-1]; last == '}' && e.Text[0] == '{' && !json.Valid(e.Text) {
				t.Errorf("%q\ngave %s", text, e.Text)
			}
		}
	})
}

func translates(f *Format) bool {
	switch f.Name {
	case "glm45", "seed_oss", "minimax_m2", "step3", "deepseek_v32":
		return true
	}
	return false
}
