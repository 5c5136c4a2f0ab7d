package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"baton/engine"
)

// A probeReport is what `baton probe --json` prints.
type probeReport struct {
	URL        string            `json:"url"`
	Usable     bool              `json:"usable"`
	Problem    string            `json:"problem"` // one sentence; "" if it is usable
	Ready      bool              `json:"ready"`   // it says so itself
	Loading    bool              `json:"loading"` // it will be, later
	Kind       string            `json:"kind"`
	Version    string            `json:"version"`
	Models     []modelReport     `json:"models"`
	Parameters []parameterReport `json:"parameters"` // those that are not exact
	Requests   []requestSeen     `json:"requests"`
}

type modelReport struct {
	ID                string          `json:"id"`
	Parent            string          `json:"parent,omitempty"` // of a LoRA adapter
	Path              string          `json:"path,omitempty"`   // as the worker has it
	ContextLength     int             `json:"context_length"`   // 0 = it does not say
	VocabSize         int             `json:"vocab_size"`       // 0 = it does not say
	Files             string          `json:"files,omitempty"`  // on this machine
	FilesProblem      string          `json:"files_problem,omitempty"`
	TemplateProblem   string          `json:"template_problem,omitempty"`
	Tokenizes         bool            `json:"tokenizes"`
	TokenizerCompared bool            `json:"tokenizer_compared"` // and found equal
	Token             *engine.TokenID `json:"token,omitempty"`    // that it generated
	TookMS            float64         `json:"took_ms,omitempty"`
}

// A parameterReport is of a parameter that the worker lacks, or that does not survive
// a move to another worker of its kind as it is.
type parameterReport struct {
	Parameter string `json:"parameter"`
	Fidelity  string `json:"fidelity"`
	Note      string `json:"note,omitempty"`
}

type requestSeen struct {
	Method string  `json:"method"`
	Path   string  `json:"path"`
	Status int     `json:"status"` // 0 = no answer
	TookMS float64 `json:"took_ms"`
	Curl   string  `json:"curl"`
}

func parameterReports(p engine.Parameters) []parameterReport {
	list := []parameterReport{}
	for _, name := range engine.AllParameters {
		if s := p[name]; s.Fidelity != engine.Exact {
			list = append(list, parameterReport{string(name), s.Fidelity.String(), s.Note})
		}
	}
	return list
}

// requestReports are the exchanges, each one that was repeated once.
func requestReports(all []exchange, base string) []requestSeen {
	list := []requestSeen{}
	for i := range all {
		e := &all[i]
		seen := requestSeen{e.method, e.path, e.status, milliseconds(e.took), e.curl(base)}
		if !slices.ContainsFunc(list, func(s requestSeen) bool { return s.Curl == seen.Curl && s.Status == seen.Status }) {
			list = append(list, seen)
		}
	}
	return list
}

// print writes the report for a person.
func (r *probeReport) print(w io.Writer) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("worker", "%s", r.URL)
	if r.Kind != "" {
		line("engine", "%s %s", engineNames[r.Kind], cmp.Or(r.Version, "of unknown version"))
	}
	switch {
	case r.Loading:
		line("state", "still loading")
	case r.Ready:
		line("state", "ready")
	}
	for _, m := range r.Models {
		m.print(line)
	}
	if r.Kind != "" {
		line("endpoints", "%s", endpoints(r.Requests))
		for _, p := range r.Parameters {
			switch p.Fidelity {
			case engine.Unsupported.String():
				line("parameter", "%s is not there%s", p.Parameter, after(": ", p.Note))
			case engine.Restarts.String():
				line("parameter", "%s begins anew after a move%s", p.Parameter, after(": ", p.Note))
			default:
				line("parameter", "%s is %s after a move%s", p.Parameter, p.Fidelity, after(": ", p.Note))
			}
		}
	}
	if len(r.Requests) > 0 {
		b.WriteString("\nWhat was asked, in this order ($KEY is the worker's key, if it has one):\n")
	}
	for _, e := range r.Requests {
		answer := "no answer"
		if e.Status != 0 {
			answer = fmt.Sprintf("%d in %.1f ms", e.Status, e.TookMS)
		}
		fmt.Fprintf(&b, "\n# %s %s: %s\n%s\n", e.Method, e.Path, answer, e.Curl)
	}
	switch {
	case r.Usable && slices.ContainsFunc(r.Models, func(m modelReport) bool { return m.Files == "" }):
		b.WriteString("\nbaton serve can use this worker with the model's files: it fetches those of a hub id, others are named with --model-path.\n")
	case r.Usable:
		b.WriteString("\nbaton serve can use this worker.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (m *modelReport) print(line func(name, format string, args ...any)) {
	line("model", "%s%s", m.ID, after(", a LoRA adapter of ", m.Parent))
	if m.Path != "" {
		line("  path", "%s, at the worker", m.Path)
	}
	line("  context", "%s", tokens(m.ContextLength))
	line("  vocabulary", "%s", tokens(m.VocabSize))
	switch {
	case m.Files != "" && m.Parent != "":
		line("  tokenizer", "%s, that of its base model", m.Files)
	case m.Files != "" && m.TokenizerCompared:
		line("  tokenizer", "%s makes the same tokens of a test text as the worker", m.Files)
	case m.Files != "":
		line("  tokenizer", "%s; not compared, as the worker does not tokenize", m.Files)
	default:
		does := "the worker tokenizes"
		if !m.Tokenizes {
			does = "the worker does not tokenize"
		}
		line("  tokenizer", "%s; not compared, because %s", does, m.FilesProblem)
	}
	if m.TemplateProblem != "" {
		line("  template", "that of the files is used, but %s", m.TemplateProblem)
	}
	if m.Token != nil {
		line("  generates", "one token, id %d, in %.1f ms", *m.Token, m.TookMS)
	}
}

func tokens(n int) string {
	if n == 0 {
		return "the worker does not say"
	}
	return fmt.Sprintf("%d tokens", n)
}

// after is text with what leads to it, or nothing.
func after(lead, text string) string {
	if text == "" {
		return ""
	}
	return lead + text
}

// endpoints lists the paths that were asked, by whether the worker has them.
func endpoints(seen []requestSeen) string {
	var there, missing []string
	for _, e := range seen {
		list := &there
		if e.Status == 403 || e.Status == 404 || e.Status == 405 {
			list = &missing
		}
		if e.Status != 0 && !slices.Contains(*list, e.Path) {
			*list = append(*list, e.Path)
		}
	}
	return strings.Join(there, ", ") + after("; not there: ", strings.Join(missing, ", "))
}
