package model

import (
	"fmt"
	"slices"
	"strings"

	"baton/chattemplate"
	"baton/parser"
)

// The values of --tool-call-parser and --reasoning-parser that name no format.
const (
	parserAuto = "auto" // the one that the chat template teaches
	parserNone = "none" // calls and reasoning stay in the text
)

// Formats are how a model writes tool calls and reasoning; nil = none is known.
type Formats struct {
	Tool, Reasoning *parser.Format
	// ToolByFlag: the operator chose Tool, who may know of another way in which
	// the model is shown tools than its template.
	ToolByFlag bool
	// Markers are the special tokens among the markers of both, whose text the parser
	// must see.
	Markers []int32
	// Opens and Closes are those that open and close reasoning.
	Opens, Closes []int32
	// Final is what opens the answer proper where every part of it is a message that
	// says what it is (gpt-oss).
	Final []int32
}

// formatsOf returns the formats of m under its public name, as the options or its
// chat template have them.
func (o *Options) formatsOf(m *Model) Formats {
	f := Formats{
		Tool:      chosen(o.ToolCallParsers, m.Name, parser.ToolByName, parser.DetectTool, m.TemplateFor(true)),
		Reasoning: chosen(o.ReasoningParsers, m.Name, parser.ReasoningByName, parser.DetectReasoning, m.TemplateFor(false)),
	}
	f.ToolByFlag = f.Tool != nil && flagFor(o.ToolCallParsers, m.Name) != parserAuto
	for _, format := range []*parser.Format{f.Tool, f.Reasoning} {
		if format == nil {
			continue
		}
		for _, id := range m.ids(format.Markers) {
			if m.Tokenizer.IsSpecial(id) && !slices.Contains(f.Markers, id) {
				f.Markers = append(f.Markers, id)
			}
		}
	}
	if f.Reasoning != nil {
		opens, closes := f.Reasoning.ReasoningMarkers()
		f.Opens, f.Closes = m.ids(opens), m.ids(closes)
		if final := f.Reasoning.FinalMessage(); len(final) > 0 && len(m.ids(final)) == len(final) {
			f.Final = m.ids(final)
		}
	}
	return f
}

// ids are those of the texts that are one token.
func (m *Model) ids(texts []string) []int32 {
	var ids []int32
	for _, text := range texts {
		if id, ok := m.Tokenizer.ID(text); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

func chosen(flags map[string]string, public string, byName, detect func(string) *parser.Format, t *chattemplate.Template) *parser.Format {
	switch name := flagFor(flags, public); {
	case name == parserNone || t == nil && name == parserAuto:
		return nil
	case name == parserAuto:
		return detect(t.Source())
	default:
		return byName(name)
	}
}

// flagFor is the value of a flag for a public name.
func flagFor(flags map[string]string, public string) string {
	if value, ok := flags[public]; ok {
		return value
	}
	if value, ok := flags[""]; ok {
		return value
	}
	return parserAuto
}

// checkParsers finds names that no parser has.
func (o *Options) checkParsers() error {
	for _, flag := range []struct {
		name   string
		values map[string]string
		byName func(string) *parser.Format
		all    []*parser.Format
	}{
		{"--tool-call-parser", o.ToolCallParsers, parser.ToolByName, parser.ToolFormats()},
		{"--reasoning-parser", o.ReasoningParsers, parser.ReasoningByName, parser.ReasoningFormats()},
	} {
		for public, value := range flag.values {
			if value == parserAuto || value == parserNone || flag.byName(value) != nil {
				continue
			}
			names := []string{parserAuto, parserNone}
			for _, format := range flag.all {
				names = append(names, format.Name)
			}
			if public != "" {
				value = public + "=" + value
			}
			return fmt.Errorf("%s %s: no such parser; there are %s", flag.name, value, strings.Join(names, ", "))
		}
	}
	return nil
}
