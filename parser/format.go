package parser

import (
	"slices"
	"strings"
)

// Format is one way in which a family of models writes calls or reasoning.
type Format struct {
	// Name is vLLM's, Aliases are other names of the same, Dynamo's among them.
	Name    string
	Aliases []string

	// Families are the models, for people.
	Families string

	// Markers are the texts that open and close things. Where one is a special
	// token, its text must reach the parser, although special tokens have
	// no text for clients.
	Markers []string

	// A chat template that has all texts of taught and none of unlike teaches the
	// format; one without taught is never detected.
	taught, unlike []string

	triggers []trigger // of calls

	opens, closes []string // of reasoning
	opensToken    string   // the special token with which opens begins, if it is more than that
	// unopened: the model reasons from its first byte on, unless the prompt says
	// that it does not.
	unopened bool
	// wraps are the markers around the content that follows the reasoning, if there
	// are any: what opens it, and what closes it.
	wraps [][2]string

	harmony bool
}

// thinks reports whether the answer begins inside reasoning.
func (f *Format) thinks(promptTail, prefill string) bool {
	if f == nil {
		return false
	}
	if strings.TrimSpace(prefill) != "" {
		return lastOf(prefill, f.opens) > lastOf(prefill, f.closes)
	}
	tail := strings.TrimRight(promptTail, " \r\n\t")
	for _, marker := range f.opens {
		if strings.HasSuffix(tail, marker) {
			return true
		}
	}
	for _, marker := range f.closes {
		if strings.HasSuffix(tail, marker) {
			return false
		}
	}
	return f.unopened
}

// justOpened reports whether text ends with the beginning of reasoning.
func (f *Format) justOpened(text string) bool {
	return slices.ContainsFunc(f.opens, func(marker string) bool { return strings.HasSuffix(text, marker) })
}

func lastOf(text string, markers []string) int {
	last := -1
	for _, marker := range markers {
		last = max(last, strings.LastIndex(text, marker))
	}
	return last
}

func (f *Format) speaksHarmony() bool { return f != nil && f.harmony }

// ReasoningMarkers returns what opens and what closes the reasoning, where that is all
// that does; nothing for formats of another build. If a special token opens it together
// with a text, it is that token.
func (f *Format) ReasoningMarkers() (opens, closes []string) {
	if f.opensToken != "" {
		return []string{f.opensToken}, f.closes
	}
	return f.opens, f.closes
}

// FinalMessage returns what begins the answer proper where every part of it is a
// message that says what it is; nothing for other formats. Each text is one token.
func (f *Format) FinalMessage() []string {
	if !f.harmony {
		return nil
	}
	return []string{harmonyChannel, "final", harmonyMessage}
}

// ToolByName returns the format of calls with that name or alias, nil if there is none.
func ToolByName(name string) *Format { return byName(toolFormats, name) }

// ReasoningByName returns the format of reasoning with that name or alias, nil if
// there is none.
func ReasoningByName(name string) *Format { return byName(reasoningFormats, name) }

// ToolFormats returns the formats of calls, in the order in which they are looked for.
func ToolFormats() []*Format { return toolFormats }

// ReasoningFormats returns the formats of reasoning, in the order in which they are looked for.
func ReasoningFormats() []*Format { return reasoningFormats }

// DetectTool returns the format of calls that a chat template teaches, nil if
// it teaches none that is known.
func DetectTool(template string) *Format { return detect(toolFormats, template) }

// DetectReasoning returns the format of reasoning that a chat template knows of,
// nil if there is none.
func DetectReasoning(template string) *Format { return detect(reasoningFormats, template) }

func detect(formats []*Format, template string) *Format {
	for _, f := range formats {
		if f.taughtBy(template) {
			return f
		}
	}
	return nil
}

func (f *Format) taughtBy(template string) bool {
	in := func(text string) bool { return strings.Contains(template, text) }
	for _, text := range f.taught {
		if !in(text) {
			return false
		}
	}
	return len(f.taught) > 0 && !slices.ContainsFunc(f.unlike, in)
}

func byName(formats []*Format, name string) *Format {
	for _, f := range formats {
		if strings.EqualFold(f.Name, name) {
			return f
		}
		for _, alias := range f.Aliases {
			if strings.EqualFold(alias, name) {
				return f
			}
		}
	}
	return nil
}
