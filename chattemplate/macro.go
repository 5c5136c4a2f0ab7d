package chattemplate

import "slices"

// macroStatement parses "macro name(parameters)".
func (p *parser) macroStatement() statement {
	name := p.expectName()
	slot := p.slot(name)
	p.notesSet(slot)
	symbols, leave := p.openScope(p.scope)
	m := p.macroBody(name, p.parameters(), "endmacro")
	leave()
	m.symbols = symbols
	return func(r *render) signal {
		r.set(slot, m.bind(r.scope))
		return goOn
	}
}

// callStatement parses "call(parameters) macro(...)": a call of a macro, which
// gets the body as a macro of its own, under the name caller.
func (p *parser) callStatement() statement {
	var params []parameter
	symbols, leave := p.openScope(p.scope)
	outer := symbols.parent
	if p.peek().isOp("(") {
		params = p.parameters()
	}
	p.scope = outer // in which the call is made
	n := p.expression(true)
	if n.call == nil {
		p.fail("expected a call")
	}
	p.scope = symbols
	m := p.macroBody("caller", params, "endcall")
	leave()
	m.symbols = symbols
	return func(r *render) signal {
		r.write(r.str(n.call.run(r, m.bind(r.scope))))
		return goOn
	}
}

type parameter struct {
	name     string
	slot     int
	fallback *node
}

func (p *parser) parameters() []parameter {
	var params []parameter
	p.expectOp("(")
	for !p.skipOp(")") {
		if len(params) > 0 {
			p.expectOp(",")
		}
		name := p.expectName()
		param := parameter{name: name, slot: p.slot(name)}
		p.scope.parameters(param.slot)
		if slices.ContainsFunc(params, func(x parameter) bool { return x.name == name }) {
			p.fail("duplicate argument %q", name)
		}
		if p.skipOp("=") {
			n := p.expression(true)
			param.fallback = &n
		} else if len(params) > 0 && params[len(params)-1].fallback != nil {
			p.fail("non-default argument follows default argument")
		}
		params = append(params, param)
	}
	return params
}

// macro is what a definition says; bind makes it a function.
type macro struct {
	name   string
	params []parameter
	body   block
	// The special names, as slots, that the body reads. -1: it does not.
	caller, kwargs, varargs int

	symbols *symbols
}

func (p *parser) macroBody(name string, params []parameter, end string) *macro {
	before := map[string]int{}
	for special, n := range p.reads {
		before[special] = n
	}
	m := &macro{name: name, params: params}
	m.body = p.function(end)
	reads := func(special string) int {
		if p.reads[special] == before[special] {
			return -1
		}
		for _, x := range params {
			if x.name != special {
				continue
			}
			if special == "caller" && x.fallback == nil {
				p.fail(`the parameter "caller" needs a default`)
			}
			return -1
		}
		p.scope.parameters(p.slot(special))
		return p.slot(special)
	}
	m.caller, m.kwargs, m.varargs = reads("caller"), reads("kwargs"), reads("varargs")
	return m
}

// bind ties a macro to the scope in which it was defined.
func (m *macro) bind(outer *scope) *callable {
	return &callable{name: m.name, macro: m, call: func(r *render, args arguments) value {
		inner := newScope(outer)
		before, start := r.scope, len(r.out)
		r.enterCall()
		r.scope = inner
		r.hide(m.symbols)
		m.arguments(r, args)
		m.body.run(r)
		r.scope = before
		r.leaveCall()
		return r.captured(start)
	}}
}

// attribute is what a template can ask of a macro.
func (m *macro) attribute(name string) (value, bool) {
	switch name {
	case "name":
		return m.name, true
	case "arguments":
		names := &list{tuple: true}
		for _, p := range m.params {
			names.items = append(names.items, p.name)
		}
		return names, true
	case "catch_kwargs":
		return m.kwargs >= 0, true
	case "catch_varargs":
		return m.varargs >= 0, true
	case "caller":
		return m.caller >= 0, true
	}
	return nil, false
}

// arguments sets the parameters. What no parameter takes is left for kwargs and
// varargs, or is too much.
func (m *macro) arguments(r *render, args arguments) {
	rest := &dict{}
	if args.keywords != nil && len(args.keywords.keys) > 0 {
		rest = args.keywords.copy(r)
	}
	for i, p := range m.params {
		if i < len(args.positional) {
			r.set(p.slot, args.positional[i])
			continue
		}
		if v, ok := rest.get(p.name); ok {
			r.set(p.slot, v)
			r.step(len(rest.keys) / 16)
			rest.remove(p.name)
			continue
		}
		if p.fallback != nil {
			r.set(p.slot, p.fallback.eval(r))
			continue
		}
		r.set(p.slot, &undefined{hint: "parameter '" + p.name + "' was not provided"})
	}
	if m.caller >= 0 {
		caller, ok := rest.get("caller")
		if !ok || caller == nil {
			caller = &undefined{hint: "No caller defined"}
		}
		rest.remove("caller")
		r.set(m.caller, caller)
	}
	if m.kwargs >= 0 {
		r.set(m.kwargs, rest)
	} else if len(rest.keys) > 0 {
		typeError("macro '%s' takes no keyword argument '%s'", m.name, r.str(rest.keys[0]))
	}
	extra := args.positional[min(len(m.params), len(args.positional)):]
	if m.varargs >= 0 {
		r.set(m.varargs, tupleOf(extra...))
	} else if len(extra) > 0 {
		typeError("macro '%s' takes not more than %d argument(s)", m.name, len(m.params))
	}
}
