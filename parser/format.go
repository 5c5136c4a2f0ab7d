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

// Thought says where the reasoning stands when an answer begins, in formats in which two
// markers tell it apart: it is open, or it is over. If it is neither the model may open it.
func (o *Options) Thought() (open, over bool) {
	f := o.Reasoning
	if f == nil || f.harmony {
		return false, false
	}
	if strings.TrimSpace(o.Prefill) != "" {
		open = lastOf(o.Prefill, f.opens) > lastOf(o.Prefill, f.closes)
		return open, !open
	}
	tail := strings.TrimRight(o.PromptTail, " \r\n\t")
	switch {
	case endsWithOne(tail, f.opens):
		return true, false
	case endsWithOne(tail, f.closes):
		return false, true
	}
	return f.unopened, false
}

// endsWithOne reports whether text ends with one of the markers.
func endsWithOne(text string, markers []string) bool {
	return slices.ContainsFunc(markers, func(marker string) bool { return strings.HasSuffix(text, marker) })
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
