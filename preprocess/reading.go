package preprocess

import (
	"strings"

	"baton/engine"
	"baton/parser"
)

// A Reading says how reasoning and tool calls are found in the text of an answer.
type Reading struct {
	Options parser.Options

	HideReasoning bool // the client does not want to see it
	ShortCallIDs  bool // ids of calls must have nine letters and digits

	// Namespaces are those of tools that have one. The name in Options is then the
	// namespace, a dot and the tool's own name.
	Namespaces map[string]string

	// Opens and Closes are the tokens that open and close reasoning, where there are such.
	Opens, Closes []engine.TokenID

	markers []engine.TokenID
}

// keeps are the special tokens whose text is needed.
func (r *Reading) keeps() []engine.TokenID {
	if r == nil {
		return nil
	}
	return r.markers
}

// promptTailBytes is how much of a prompt's end says whether it opens a thought.
const promptTailBytes = 256

// jsonCalls is how an answer that must be calls is constrained: see forcedCalls.
var jsonCalls = parser.ToolByName("json")

// reading says how the answers to a rendered conversation are read; nil if they are
// text and nothing else.
func (r *request) reading(text string) *Reading {
	formats := &r.model.Formats
	o := parser.Options{
		Reasoning:  formats.Reasoning,
		Tools:      r.tooling.tools,
		Parallel:   r.parallelCalls,
		PromptTail: text[max(0, len(text)-promptTailBytes):],
	}
	if r.continueFinalMessage {
		o.Prefill = r.lastContent()
	}
	switch r.tooling.choice {
	case toolsAuto:
		o.Tool = formats.Tool
		if r.constraint != nil && formats.Final == nil {
			o.Tool = jsonCalls // see allowCalls
		}
	case toolsRequired:
		o.Tool = jsonCalls
	case toolsNamed:
		o.Named = r.tooling.named
	}
	if r.constraint != nil {
		r.thought = r.thoughtBefore(&o)
		o.Constrained = r.thought == nil && r.constraint.IsJSON()
		if r.thought == nil && (!o.Constrained || formats.Final != nil) {
			o.Reasoning = nil // the constraint holds from the first token on
		}
	}
	if o.Reasoning == nil && o.Tool == nil && o.Named == "" {
		return nil
	}
	return &Reading{
		Options:       o,
		HideReasoning: !r.includeReasoning,
		ShortCallIDs:  r.model.Shape.ShortCallIDs,
		Namespaces:    r.tooling.namespaces,
		Opens:         r.model.Formats.Opens,
		Closes:        r.model.Formats.Closes,
		markers:       r.model.Formats.Markers,
	}
}

// thoughtBefore says how the reasoning before a constrained answer is told from it; nil
// = there is none, or no tokens tell.
func (r *request) thoughtBefore(o *parser.Options) *engine.Thought {
	formats := &r.model.Formats
	open, over := o.Thought()
	switch {
	case formats.Final != nil:
		if r.continueFinalMessage || r.tooling.choice == toolsRequired || r.tooling.choice == toolsNamed {
			return nil // the answer is in no message of its own
		}
		return &engine.Thought{Ends: formats.Final}
	case len(formats.Closes) != 1:
		return nil
	case open:
		return &engine.Thought{Ends: formats.Closes}
	case over || r.continueFinalMessage || len(formats.Opens) == 0:
		return nil
	}
	return &engine.Thought{Opens: formats.Opens, Ends: formats.Closes}
}

// lastContent is the text of the last message, which the answer continues.
func (r *request) lastContent() string {
	var last value
	for _, message := range r.messages.elements() {
		last = *message
	}
	content, ok := last.member("content")
	switch {
	case !ok:
	case content.isText():
		return unquote(content.raw())
	case content.isArray():
		var texts []string
		for _, part := range content.elements() {
			if m, ok := part.member("text"); ok && m.isText() {
				texts = append(texts, unquote(m.raw()))
			}
		}
		return strings.Join(texts, "\n") // as fitContent does it
	}
	return ""
}
