package parser

import (
	"bytes"
	"encoding/json"
	"slices"
)

// objects reads calls that are JSON objects with a name and arguments, alone, in
// a list, or one after the other. The two may stand in any order, beside other
// members, and inside a member "function" as in OpenAI's own form.
type objects struct {
	ends       []string // markers that close it
	semicolons bool     // objects are separated by them
	strict     bool     // there is no marker: the name must be known, and arguments be there

	state objectsState
	list  bool
	end   expect

	key     []byte
	name    string
	inner   bool // inside the member "function"
	begun   bool // this object's call was given
	raw     jsonText
	from    int    // where in held a name or a string begins
	args    []byte // arguments that came before the name
	hasArgs bool
	escaped bool
}

// callKeys are the members that a call has, where no marker says that it is one.
var callKeys = []string{"name", "arguments", "parameters", "function", "type", "id"}

type objectsState uint8

const (
	wantObject objectsState = iota
	wantKey
	inKey
	wantColon
	wantValue
	inName
	inArguments
	inEarlyArguments // before the name is known
	inQuoted         // arguments that are JSON in a JSON string
	inSkipped
	wantComma
	behindObject
	inEnd
)

func (o *objects) next(p *Parser, c byte) verdict {
	switch o.state {
	case inKey:
		return o.readKey(c)
	case inName:
		return o.readName(p, c)
	case inArguments:
		return o.readArguments(p, c)
	case inEarlyArguments:
		return o.readEarlyArguments(p, c)
	case inQuoted:
		return o.readQuoted(p, c)
	case inSkipped:
		return o.skip(p, c)
	case inEnd:
		return o.end.end(c)
	}
	if space(c) {
		return more
	}
	return o.mark(p, c)
}

// mark takes a byte that stands between names and values.
func (o *objects) mark(p *Parser, c byte) verdict {
	switch o.state {
	case wantObject:
		return o.open(p, c)
	case wantKey:
		switch c {
		case '"':
			o.key, o.state = o.key[:0], inKey
			return more
		case '}':
			return o.closeObject(p)
		}
	case wantColon:
		if c == ':' {
			o.state = wantValue
			return more
		}
	case wantValue:
		return o.value(p, c)
	case wantComma:
		switch c {
		case ',':
			o.state = wantKey
			return more
		case '}':
			return o.closeObject(p)
		}
		if o.begun && !o.inner {
			return o.behind(p, c) // the object's own bracket was forgotten
		}
	case behindObject:
		return o.behind(p, c)
	}
	return fail
}

func (o *objects) readKey(c byte) verdict {
	if c != '"' {
		o.key = append(o.key, c)
	} else if o.state = wantColon; o.strict && !slices.Contains(callKeys, string(o.key)) {
		return fail // some other object
	}
	if len(o.key) > MaxName {
		return fail
	}
	return more
}

func (o *objects) readArguments(p *Parser, c byte) verdict {
	closed, taken := o.raw.flow(p, c)
	if closed {
		o.state = wantComma
	}
	if !taken {
		o.state = behindObject
		return o.behind(p, c)
	}
	return more
}

func (o *objects) readEarlyArguments(p *Parser, c byte) verdict {
	closed, foreign := o.raw.scan(c)
	switch {
	case foreign:
		return fail
	case closed:
		o.args = append(o.args[:0], p.held[o.from:]...)
		o.state = wantComma
		return o.tryBegin(p)
	}
	return more
}

// open begins an object, or a list of them.
func (o *objects) open(p *Parser, c byte) verdict {
	switch {
	case c == '{':
		p.after = false
		*o = objects{ends: o.ends, semicolons: o.semicolons, strict: o.strict, list: o.list,
			key: o.key[:0], args: o.args[:0], state: wantKey}
	case c == '[' && !o.list && !p.after:
		o.list = true
	default:
		return fail
	}
	return more
}

func (o *objects) value(p *Parser, c byte) verdict {
	o.from = len(p.held) - 1
	o.escaped = false
	switch string(o.key) {
	case "name", "tool_name":
		if c != '"' || o.name != "" {
			return fail
		}
		o.state = inName
	case "function": // an object with the name in it, or the name
		if c == '"' && o.name == "" {
			o.state = inName
			return more
		}
		if c != '{' || o.inner {
			return fail
		}
		o.inner, o.state = true, wantKey
	case "arguments", "parameters":
		if o.hasArgs {
			return fail
		}
		return o.openArguments(p, c)
	default:
		o.raw = jsonText{}
		o.state = inSkipped
		return o.skip(p, c)
	}
	return more
}

func (o *objects) openArguments(p *Parser, c byte) verdict {
	o.hasArgs = true
	o.raw = jsonText{depth: 1}
	switch c {
	case '{':
		if o.name == "" {
			o.state = inEarlyArguments
			return more
		}
		if !p.begin(o.name, "", o.strict) {
			return fail
		}
		o.begun, o.state = true, inArguments
		p.argue([]byte{c})
	case '"':
		o.state = inQuoted
	case 'n': // null
		o.args = append(o.args[:0], "{}"...)
		o.raw = jsonText{}
		o.state = inSkipped
	default:
		return fail
	}
	return more
}

func (o *objects) readName(p *Parser, c byte) verdict {
	if !o.closes(c) {
		if len(p.held)-o.from > MaxName+2 {
			return fail
		}
		return more
	}
	if json.Unmarshal(p.held[o.from:], &o.name) != nil || !p.callable(o.name, o.strict) {
		return fail
	}
	o.state = wantComma
	return o.tryBegin(p)
}

func (o *objects) readQuoted(p *Parser, c byte) verdict {
	if !o.closes(c) {
		return more
	}
	var text string
	if json.Unmarshal(p.held[o.from:], &text) != nil {
		return fail
	}
	o.args = append(o.args[:0], bytes.TrimSpace([]byte(text))...)
	if len(o.args) == 0 || o.args[0] != '{' {
		return fail
	}
	o.state = wantComma
	return o.tryBegin(p)
}

// closes reports whether c ends the string that is being read.
func (o *objects) closes(c byte) bool {
	if o.escaped {
		o.escaped = false
		return false
	}
	o.escaped = c == '\\'
	return c == '"'
}

// skip reads a member that means nothing here.
func (o *objects) skip(p *Parser, c byte) verdict {
	plain := !o.raw.quoted && o.raw.depth == 0
	if plain && (c == ',' || c == '}') {
		o.state = wantComma
		return o.next(p, c)
	}
	if _, foreign := o.raw.scan(c); foreign || o.raw.depth < 0 || o.raw.depth > maxDepth {
		return fail
	}
	return more
}

// tryBegin gives the call if its name is known and its arguments were read before.
func (o *objects) tryBegin(p *Parser) verdict {
	if o.begun || o.name == "" || len(o.args) == 0 {
		return more
	}
	if !p.begin(o.name, "", o.strict) {
		return fail
	}
	o.begun = true
	j := jsonText{}
	p.scratch = p.scratch[:0]
	for _, c := range o.args {
		before := j
		j.scan(c)
		p.scratch = before.appendJSON(p.scratch, c)
	}
	p.argue(p.scratch)
	p.close()
	return more
}

func (o *objects) closeObject(p *Parser) verdict {
	if o.inner {
		o.inner, o.state = false, wantComma
		return more
	}
	if !o.begun {
		if o.name == "" || o.strict && !o.hasArgs {
			return fail
		}
		if len(o.args) == 0 {
			o.args = append(o.args, "{}"...)
		}
		if v := o.tryBegin(p); v != more {
			return v
		}
	}
	p.close()
	o.state = behindObject
	return more
}

// behind reads what follows an object: another one, or the end. Brackets too many
// are dropped; models write them.
func (o *objects) behind(p *Parser, c byte) verdict {
	switch {
	case c == '{' && !o.list:
		return o.open(p, c)
	case c == ',' && o.list, c == ';' && o.semicolons:
		o.state = wantObject
		return more
	case c == ']' || c == '}':
		ended := o.list && c == ']' && len(o.ends) == 0
		o.list = false
		p.drop()
		if ended {
			return done
		}
		return more
	}
	o.end = expect{markers: o.ends, got: o.end.got[:0]}
	if _, possible := o.end.next(c); !possible {
		return fail
	}
	o.state = inEnd
	return more
}

func (o *objects) finish(*Parser) {}
