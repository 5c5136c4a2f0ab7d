package chattemplate

import (
	"encoding/json"
	"time"
)

// A Template is a compiled chat template. It is immutable: any number of
// goroutines may render it at the same time.
type Template struct {
	source string
	body   block
	root   *symbols
	names  []string       // every name that the template uses
	slots  map[string]int // and its number
	base   []value        // what each name is before the request is known: a global function, or nothing
}

// Source is what the template was compiled from.
func (t *Template) Source() string { return t.source }

// Parse compiles a template. Templates come from a model's files, so it is
// meant to be called once per model, not per request.
//
// The error is a *SyntaxError when the source is no template, or a *LimitError
// when it is larger or nested deeper than a chat template has any reason to be.
func Parse(source string) (t *Template, err error) {
	defer rescue(&err)
	if len(source) > maxTemplateBytes {
		overLimit("bytes of a template", maxTemplateBytes)
	}
	p := newParser(validUTF8(source))
	t = &Template{source: source, slots: p.slots}
	t.body, t.root = p.template()
	t.names = p.names
	t.base = make([]value, len(t.names))
	for i, name := range t.names {
		if f, ok := globals[name]; ok {
			t.base[i] = f
		} else {
			t.base[i] = undefinedName(name)
		}
	}
	return t, nil
}

// Input is what one request gives to the template.
//
// The JSON fields are the request's own bytes, because what a decoder into Go
// maps would lose can be seen in the prompt: the order of keys, and whether a
// number was written 1 or 1.0. Bytes that are not UTF-8 and escapes of lone
// surrogates become U+FFFD, as in encoding/json.
type Input struct {
	Messages  json.RawMessage // an array of objects, required
	Tools     json.RawMessage // an array of objects; absent or null is None
	Documents json.RawMessage // an array of objects; absent or null is None

	// AddGenerationPrompt asks for the header of the answer at the end.
	AddGenerationPrompt bool
	// ContinueFinalMessage leaves the last message open, so that the model goes
	// on writing it. It cannot be combined with AddGenerationPrompt.
	ContinueFinalMessage bool
	// Normalize prepares the messages as transformers 5 does before a template
	// sees them: members that are null are dropped, and reasoning is given under
	// both of the names reasoning_content and thinking, whichever of
	// reasoning_content, thinking and reasoning it came under.
	Normalize bool

	// Kwargs is the object chat_template_kwargs of the request: its members
	// become variables of the template and hide special tokens of the same name.
	// The names of other parameters of apply_chat_template, such as tools, are an
	// *InputError, as they are in transformers.
	Kwargs json.RawMessage

	// SpecialTokens are the tokenizer's named special tokens, bos_token and the
	// like. The function of this name reads them from tokenizer_config.json.
	SpecialTokens map[string]string

	// Now is what strftime_now tells, in its own time zone. The zero value means
	// the time of the call.
	Now time.Time
}

// Render writes the prompt for one conversation.
//
// The error is a *RaisedError when the template itself refused the
// conversation with raise_exception, an *InputError when the conversation is
// not what the template can work with, and a *LimitError when rendering would
// have taken more than its share of time or memory. All three are the
// client's to repair. The text is empty whenever there is an error.
func (t *Template) Render(in Input) (prompt string, err error) {
	defer rescue(&err)
	c := readConversation(in)
	if in.ContinueFinalMessage {
		return t.renderOpen(c, in.AddGenerationPrompt), nil
	}
	return t.render(c), nil
}

func (t *Template) render(c *conversation) string {
	r := &render{
		budget: budget{steps: maxSteps, bytes: maxMadeBytes},
		vars:   append([]value(nil), t.base...),
		names:  t.names,
		root:   newScope(nil),
		now:    c.now,
		out:    make([]byte, 0, c.size+c.size/4+1<<10),
	}
	r.scope = r.root
	r.hide(t.root)
	for i, name := range c.names {
		if slot, ok := t.slots[name]; ok {
			r.vars[slot] = c.values[i]
		}
	}
	t.body.run(r)
	return string(r.out)
}

// render is one rendering: its output so far, its variables, and what it may
// still spend.
type render struct {
	budget
	out   []byte
	scope *scope
	root  *scope
	vars  []value // by slot, what is in no scope
	names []string
	calls int // macros inside macros
	// scratch is where toJSON writes before it knows how much it will be.
	scratch []byte
	now     time.Time
}

// A scope holds the variables of a template, of a loop's round, of a macro's
// call. They are few: looking at each is faster than any map.
type scope struct {
	slots  []int
	values []value
	parent *scope

	// Room for the first few, so that a scope is one allocation.
	firstSlots  [4]int
	firstValues [4]value
}

func newScope(parent *scope) *scope {
	s := &scope{parent: parent}
	s.slots, s.values = s.firstSlots[:0], s.firstValues[:0]
	return s
}

// set sets a variable of the innermost scope.
func (r *render) set(slot int, v value) {
	s := r.scope
	r.steps -= len(s.slots) / 16
	for i, x := range s.slots {
		if x == slot {
			s.values[i] = v
			return
		}
	}
	s.slots, s.values = append(s.slots, slot), append(s.values, v)
}

func (r *render) lookup(slot int) value {
	for s := r.scope; s != nil; s = s.parent {
		r.steps -= len(s.slots) / 16
		for i, x := range s.slots {
			if x == slot {
				return s.values[i]
			}
		}
	}
	return r.vars[slot]
}

func (r *render) enterScope(s *symbols) (outer *scope) {
	outer = r.scope
	r.scope = newScope(outer)
	r.hide(s)
	return outer
}

func (r *render) leaveScope(outer *scope) { r.scope = outer }

// enterCall counts macros inside macros, which Python bounds by its stack.
func (r *render) enterCall() {
	r.step(1)
	if r.calls++; r.calls > maxMacroDepth {
		overLimit("macro calls inside each other", maxMacroDepth)
	}
}

func (r *render) leaveCall() { r.calls-- }

func (r *render) write(s string) {
	if len(r.out)+len(s) > maxOutputBytes {
		overLimit("bytes of output", maxOutputBytes)
	}
	r.steps -= len(s) / 64
	r.out = append(r.out, s...)
}

// captured takes back what was written since start: macros and captured blocks
// write to the same buffer as everything else.
func (r *render) captured(start int) string {
	s := string(r.out[start:])
	r.text(len(s))
	r.out = r.out[:start]
	return s
}
