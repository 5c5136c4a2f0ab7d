package parser

import (
	"strings"

	"baton/jsonbytes"
)

// elements reads calls that are written as elements: a function with a name, in
// it parameters with names, whose values have no quotes. The tool's schema says
// what a value is; strings flow, others are given when they are complete.
type elements struct {
	spec *elementsSpec

	state elementsState
	want  expect
	buf   []byte // a name, or a value's end that may be a marker
	name  string
	types map[string]parameter
	begun bool

	param   parameter
	value   []byte // of a parameter that does not flow
	flows   bool
	first   bool // nothing of the value was read
	newline bool // a newline that is layout if the value ends behind it
	some    bool // the call has parameters
}

// elementsSpec is how a family spells them. White space between markers is layout.
type elementsSpec struct {
	function    string   // opens a function; "" if the name follows the outer marker
	nameEnds    []string // the first is the proper one, the others begin or end something else
	functionEnd string
	parameter   string // opens a parameter
	keyEnd      string
	valueStart  string   // what opens the value, if the key's end does not
	valueEnds   []string // the first is the proper one, then those of models that forget it: a parameter, the function's end
	close       string   // closes the outer marker
	layout      []string // what else stands between functions and says nothing
	attributes  bool     // the key says itself whether the value is a string: string="true"
	trim        bool     // one newline at each end of a value is layout
	loose       bool     // see parameter.appendValue
}

type elementsState uint8

const (
	outside elementsState = iota // of a function
	inFunctionName
	inFunction
	inParameterName
	wantParameterValue
	inParameterValue
)

// outer returns what reads on behind the outer marker.
func (spec *elementsSpec) outer(*Parser) machine {
	e := &elements{spec: spec}
	if spec.function == "" {
		e.state = inFunctionName
	}
	return e
}

// inner returns what reads on behind the marker that opens a function.
func (spec *elementsSpec) inner(*Parser) machine {
	return &elements{spec: spec, state: inFunctionName}
}

func (e *elements) next(p *Parser, c byte) verdict {
	switch e.state {
	case inFunctionName:
		return e.readName(p, c)
	case inParameterName:
		return e.readKey(p, c)
	case inParameterValue:
		return e.readValue(p, c)
	}
	if len(e.want.got) == 0 {
		if space(c) {
			return more
		}
		if e.state == outside && !p.after && c == '{' {
			// A model that was taught elements, and writes JSON all the same.
			p.machine = &objects{ends: []string{e.spec.close}}
			return p.machine.next(p, c)
		}
		switch e.state {
		case outside:
			e.want.markers = append(append(e.want.markers[:0], e.spec.close, e.spec.function), e.spec.layout...)
		case inFunction:
			e.want.markers = append(e.want.markers[:0], e.spec.functionEnd, e.spec.parameter)
		case wantParameterValue:
			e.want.markers = append(e.want.markers[:0], e.spec.valueStart)
		}
	}
	at, possible := e.want.next(c)
	if !possible {
		return e.abandon(p)
	}
	if at < 0 {
		return more
	}
	return e.marker(p, at)
}

func (e *elements) marker(p *Parser, at int) verdict {
	switch {
	case e.state == outside && at == 0:
		if !p.after {
			return fail // the marker closes nothing
		}
		return done
	case e.state == outside && at > 1: // layout
		if p.after {
			p.drop()
		}
	case e.state == outside:
		p.after = false
		e.buf, e.state = e.buf[:0], inFunctionName
	case e.state == inFunction && at == 0:
		return e.closeFunction(p)
	case e.state == inFunction:
		return e.openParameter(p)
	default:
		e.openValue()
	}
	return more
}

func (e *elements) readName(p *Parser, c byte) verdict {
	e.buf = append(e.buf, c)
	for i, end := range e.spec.nameEnds {
		if !endsWith(e.buf, end) {
			continue
		}
		e.name = unquote(e.buf[:len(e.buf)-len(end)])
		if e.name == "" {
			continue
		}
		if !p.callable(e.name, false) {
			return fail
		}
		e.begun, e.some, e.state = false, false, inFunction
		e.buf = e.buf[:0]
		switch {
		case i == 0:
			return more
		case end == e.spec.parameter:
			return e.openParameter(p)
		}
		return e.closeFunction(p)
	}
	if len(e.buf) > MaxName+64 {
		return fail
	}
	return more
}

// begin gives the call, when more than its name was read.
func (e *elements) begin(p *Parser) bool {
	if !e.begun {
		if !p.begin(e.name, "", false) {
			return false
		}
		e.begun = true
		e.types = p.parametersOf(e.name)
		p.argue([]byte{'{'})
	}
	return true
}

func (e *elements) openParameter(p *Parser) verdict {
	if !e.begin(p) {
		return fail
	}
	e.buf, e.state = e.buf[:0], inParameterName
	return more
}

func (e *elements) closeFunction(p *Parser) verdict {
	if !e.begin(p) {
		return fail
	}
	p.argue([]byte{'}'})
	p.close()
	if e.spec.function == "" {
		return done
	}
	e.state = outside
	return more
}

// abandon ends a function in which something else stands; what it has of
// parameters is whole.
func (e *elements) abandon(p *Parser) verdict {
	if p.open {
		if e.state == wantParameterValue {
			p.argue([]byte("null")) // the key is given out already
		}
		p.argue([]byte{'}'})
		p.close()
		p.after = false
		p.held = append(p.held, e.want.got...) // the byte that did not fit at its end
	}
	return fail
}

func (e *elements) readKey(p *Parser, c byte) verdict {
	e.buf = append(e.buf, c)
	if !endsWith(e.buf, e.spec.keyEnd) {
		if len(e.buf) > MaxName {
			e.want.got = append(append(e.want.got[:0], e.spec.parameter...), e.buf...)
			return e.abandon(p)
		}
		return more
	}
	key, attributes := string(e.buf[:len(e.buf)-len(e.spec.keyEnd)]), ""
	if e.spec.attributes {
		key, attributes, _ = strings.Cut(key, "string=")
	}
	key = unquote([]byte(key))
	p.scratch = appendQuoted(e.separator(p), []byte(key))
	p.argue(append(p.scratch, ": "...))
	e.some = true
	e.param = e.types[key]
	e.param = e.param.said(unquote([]byte(attributes)))
	if e.spec.valueStart != "" {
		e.state = wantParameterValue
		return more
	}
	e.openValue()
	return more
}

// separator begins p.scratch with what stands before a key.
func (e *elements) separator(p *Parser) []byte {
	p.scratch = p.scratch[:0]
	if e.some {
		p.scratch = append(p.scratch, ", "...)
	}
	return p.scratch
}

// unquote returns a name without the white space and the quotes around it.
func unquote(text []byte) string {
	return strings.Trim(strings.TrimSpace(string(text)), `"'`)
}

func (e *elements) openValue() {
	e.state = inParameterValue
	e.buf, e.value = e.buf[:0], e.value[:0]
	e.first, e.newline, e.flows = true, false, false
	if e.param.kind == "" && !e.spec.loose {
		e.param.kind = "string"
	}
}

func (e *elements) readValue(p *Parser, c byte) verdict {
	p.scratch = p.scratch[:0]
	if len(e.buf) == 0 && c != '<' && c != '\n' { // which no value's end begins with
		e.take(p, c)
		p.argue(p.scratch)
		return more
	}
	e.buf = append(e.buf, c)
	for len(e.buf) > 0 {
		begins := false
		for i, end := range e.spec.valueEnds {
			if len(e.buf) > len(end) || end[:len(e.buf)] != string(e.buf) {
				continue
			}
			if len(e.buf) == len(end) {
				return e.closeValue(p, i)
			}
			begins = true
		}
		if begins {
			break
		}
		e.take(p, e.buf[0])
		e.buf = append(e.buf[:0], e.buf[1:]...)
	}
	p.argue(p.scratch)
	return more
}

// take adds a byte to the value, in p.scratch if it flows.
func (e *elements) take(p *Parser, c byte) {
	if e.spec.trim {
		if e.first && c == '\n' {
			e.first = false
			return
		}
		e.first = false
		if e.newline {
			e.add(p, '\n')
		}
		if e.newline = c == '\n'; e.newline {
			return
		}
	}
	e.add(p, c)
}

func (e *elements) add(p *Parser, c byte) {
	if e.flows {
		p.scratch = jsonbytes.AppendEscaped(p.scratch, c)
		return
	}
	e.value = append(e.value, c)
	// A string that may be null is known to be none when it is longer than the
	// word; a value that is beyond all measure is a string.
	if e.param.isString() || e.param.kind == "string" && !e.param.quoted && len(e.value) > 4 || len(e.value) > maxHeld {
		e.flow(p)
	}
}

func (e *elements) flow(p *Parser) {
	e.flows = true
	p.scratch = append(p.scratch, '"')
	p.scratch = appendAllEscaped(p.scratch, e.value)
}

func (e *elements) closeValue(p *Parser, end int) verdict {
	if e.flows {
		p.scratch = append(p.scratch, '"')
	} else {
		p.scratch = e.param.appendValue(p.scratch, e.value, e.spec.loose)
	}
	p.argue(p.scratch)
	e.buf, e.state = e.buf[:0], inFunction
	switch end {
	case 1:
		return e.openParameter(p)
	case 2:
		return e.closeFunction(p)
	}
	return more
}

// finish gives out as much of an argument as was read.
func (e *elements) finish(p *Parser) {
	if !p.open {
		return
	}
	switch e.state {
	case inParameterName:
		p.scratch = append(e.separator(p), '"')
		p.scratch = appendAllEscaped(p.scratch, []byte(strings.TrimLeft(string(e.buf), ` "'`)))
		p.argue(p.scratch)
	case inParameterValue:
		p.scratch = p.scratch[:0]
		for _, c := range e.buf {
			e.take(p, c)
		}
		if e.newline {
			e.add(p, '\n')
		}
		if !e.flows {
			p.scratch = e.param.appendCut(p.scratch, e.value)
		}
		p.argue(p.scratch)
	}
}

var qwenSpec = &elementsSpec{
	function:    "<function=",
	nameEnds:    []string{">"},
	functionEnd: "</function>",
	parameter:   "<parameter=",
	keyEnd:      ">",
	valueEnds:   []string{"</parameter>", "\n<parameter=", "\n</function>"},
	close:       "</tool_call>",
	trim:        true,
}

// glmSpec serves GLM 4.5 and 4.6, whose name ends with the line, and 4.7, which has no lines.
var glmSpec = &elementsSpec{
	nameEnds:    []string{"\n", "<arg_key>", "</tool_call>"},
	functionEnd: "</tool_call>",
	parameter:   "<arg_key>",
	keyEnd:      "</arg_key>",
	valueStart:  "<arg_value>",
	valueEnds:   []string{"</arg_value>"},
	close:       "</tool_call>",
	loose:       true,
}

// seedSpec is Qwen's in other brackets.
var seedSpec = &elementsSpec{
	function:    qwenSpec.function,
	nameEnds:    qwenSpec.nameEnds,
	functionEnd: qwenSpec.functionEnd,
	parameter:   qwenSpec.parameter,
	keyEnd:      qwenSpec.keyEnd,
	valueEnds:   qwenSpec.valueEnds,
	close:       "</seed:tool_call>",
	trim:        true,
}

var minimaxSpec = &elementsSpec{
	function:    "<invoke name=",
	nameEnds:    []string{">"},
	functionEnd: "</invoke>",
	parameter:   "<parameter name=",
	keyEnd:      ">",
	valueEnds:   []string{"</parameter>", "\n<parameter name=", "\n</invoke>"},
	close:       "</minimax:tool_call>",
}

func dsmlSpec(close string) *elementsSpec {
	return &elementsSpec{
		function:    "<｜DSML｜invoke name=",
		nameEnds:    []string{">"},
		functionEnd: "</｜DSML｜invoke>",
		parameter:   "<｜DSML｜parameter name=",
		keyEnd:      ">",
		valueEnds:   []string{"</｜DSML｜parameter>"},
		close:       close,
		attributes:  true,
	}
}

var stepSpec = &elementsSpec{
	function:    "<steptml:invoke name=",
	nameEnds:    []string{">"},
	functionEnd: "</steptml:invoke>",
	parameter:   "<steptml:parameter name=",
	keyEnd:      ">",
	valueEnds:   []string{"</steptml:parameter>"},
	close:       "<｜tool_calls_end｜>",
	layout:      []string{"<｜tool_call_begin｜>", "<｜tool_call_end｜>", "<｜tool_sep｜>", "function"},
}
