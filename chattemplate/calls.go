package chattemplate

import "strings"

// arguments are what a call passes. The slices belong to the callee.
type arguments struct {
	positional []value
	keywords   *dict // nil: none
}

// A signature says which arguments a function takes.
type signature struct {
	names    []string
	defaults []value // of the last names
	// nameless parameters cannot be given as keywords: functions that Python
	// has written in C.
	nameless bool
}

// takes makes a signature of names with blanks between.
func takes(names string, defaults ...value) signature {
	return signature{names: strings.Fields(names), defaults: defaults}
}

func (s signature) byPosition() signature {
	s.nameless = true
	return s
}

// bind gives each parameter its argument, or complains as Python does. The
// result is only read: it may be the defaults themselves.
func (s *signature) bind(function string, args arguments) []value {
	if args.keywords == nil && len(args.positional) == len(s.names) {
		return args.positional
	}
	if len(args.positional) > len(s.names) {
		typeError("%s() takes at most %d arguments (%d given)", function, len(s.names), len(args.positional))
	}
	n, used := len(args.positional), 0
	required := len(s.names) - len(s.defaults)
	if args.keywords == nil && n >= required {
		if n == 0 {
			return s.defaults
		}
		return append(args.positional, s.defaults[n-required:]...)
	}
	out := make([]value, len(s.names))
	copy(out, args.positional)
	for i := n; i < len(s.names); i++ {
		if args.keywords != nil && !s.nameless {
			if v, ok := args.keywords.get(s.names[i]); ok {
				out[i] = v
				used++
				continue
			}
		}
		if i < required {
			typeError("%s() missing required argument: '%s'", function, s.names[i])
		}
		out[i] = s.defaults[i-required]
	}
	if args.keywords != nil && used < len(args.keywords.keys) {
		typeError("%s() got an unexpected or repeated keyword argument", function)
	}
	return out
}

// argumentList is a call's (...) before it is evaluated.
type argumentList struct {
	positional []node
	keywords   []keyword
	spread     *node // *args
	spreadMap  *node // **kwargs
}

type keyword struct {
	name string
	node node
}

// arguments parses "(...)".
func (p *parser) arguments() argumentList {
	var l argumentList
	p.expectOp("(")
	for first := true; !p.skipOp(")"); first = false {
		if !first {
			p.expectOp(",")
			if p.skipOp(")") {
				break
			}
		}
		allowed := true
		switch {
		case p.skipOp("*"):
			allowed = l.spread == nil && l.spreadMap == nil
			n := p.expression(true)
			l.spread = &n
		case p.skipOp("**"):
			allowed = l.spreadMap == nil
			n := p.expression(true)
			l.spreadMap = &n
		case p.peek().kind == tokenName && p.after().isOp("="):
			allowed = l.spreadMap == nil
			name := p.expectName()
			p.pos++
			for _, k := range l.keywords {
				allowed = allowed && k.name != name
			}
			l.keywords = append(l.keywords, keyword{name, p.expression(true)})
		default:
			allowed = l.spread == nil && l.spreadMap == nil && len(l.keywords) == 0
			l.positional = append(l.positional, p.expression(true))
		}
		if !allowed {
			p.fail("invalid syntax for function call expression")
		}
	}
	return l
}

// nodes are all that the list stands on.
func (l *argumentList) nodes() []node {
	out := append([]node(nil), l.positional...)
	for _, k := range l.keywords {
		out = append(out, k.node)
	}
	for _, n := range []*node{l.spread, l.spreadMap} {
		if n != nil {
			out = append(out, *n)
		}
	}
	return out
}

func (l *argumentList) eval(r *render) arguments {
	var args arguments
	if len(l.positional) > 0 {
		// Room for defaults that bind may add.
		args.positional = make([]value, len(l.positional), len(l.positional)+2)
		for i := range l.positional {
			args.positional[i] = l.positional[i].eval(r)
		}
	}
	if l.spread != nil {
		more := r.collect(l.spread.eval(r))
		r.list(len(args.positional) + len(more))
		args.positional = append(args.positional, more...)
	}
	if len(l.keywords) > 0 {
		args.keywords = &dict{}
		for i := range l.keywords {
			args.keywords.set(l.keywords[i].name, l.keywords[i].node.eval(r))
		}
	}
	if l.spreadMap != nil {
		l.evalMap(r, &args)
	}
	return args
}

func (l *argumentList) evalMap(r *render, args *arguments) {
	d, ok := l.spreadMap.eval(r).(*dict)
	if !ok {
		typeError("argument after ** must be a mapping")
	}
	r.list(len(d.keys))
	if args.keywords == nil {
		args.keywords = &dict{}
	}
	for i, k := range d.keys {
		name, ok := textOf(k)
		if !ok {
			typeError("keywords must be strings")
		}
		if args.keywords.find(name) >= 0 {
			typeError("got multiple values for keyword argument '%s'", name)
		}
		args.keywords.set(name, d.vals[i])
	}
}

// call is what {% call %} needs to know of the call in it.
type call struct {
	run func(r *render, caller value) value
}

func (p *parser) callOf(function node) node {
	l := p.arguments()
	return callNode(func(r *render, caller value) value {
		f := function.eval(r)
		return r.call(f, withCaller(l.eval(r), caller))
	}, append(l.nodes(), function)...)
}

// methodCall is x.name(...). It is a case of its own because most calls in
// templates are methods of texts and dicts, which then need no bound function.
func (p *parser) methodCall(of node, name string) node {
	l := p.arguments()
	textMethod, dictMethod := textMethods[name], dictMethods[name]
	return callNode(func(r *render, caller value) value {
		v := of.eval(r)
		switch v.(type) {
		case string:
			if textMethod != nil && caller == nil {
				return textMethod.invoke(r, v, l.eval(r))
			}
		case *dict:
			if dictMethod != nil && caller == nil {
				return dictMethod.invoke(r, v, l.eval(r))
			}
		}
		f := r.attribute(v, name)
		return r.call(f, withCaller(l.eval(r), caller))
	}, append(l.nodes(), of)...)
}

func callNode(run func(r *render, caller value) value, on ...node) node {
	n := built(func(r *render) value { return run(r, nil) }, on...)
	n.call = &call{run}
	return n
}

func withCaller(args arguments, caller value) arguments {
	if caller == nil {
		return args
	}
	if args.keywords == nil {
		args.keywords = &dict{}
	}
	if args.keywords.find("caller") >= 0 {
		typeError("got multiple values for keyword argument 'caller'")
	}
	args.keywords.set("caller", caller)
	return args
}

// call calls a value.
func (r *render) call(f value, args arguments) value {
	r.step(1)
	switch x := f.(type) {
	case *callable:
		return x.call(r, args)
	case *undefined:
		return x.fail()
	case *loop:
		return x.recurse(r, args)
	}
	return typeError("'%s' object is not callable", typeName(f))
}

// A method is a function that belongs to a type.
type method struct {
	name string
	signature
	apply func(r *render, self value, args []value) value
	// raw, instead of apply, is for those that take any arguments.
	raw func(r *render, self value, args arguments) value
}

func (m *method) invoke(r *render, self value, args arguments) value {
	r.step(1 + sizeOf(self)/64)
	if m.raw != nil {
		return m.raw(r, self, args)
	}
	return m.apply(r, self, m.bind(m.name, args))
}

// sizeOf is what most methods have to look at, in bytes or elements.
func sizeOf(v value) int {
	switch x := v.(type) {
	case string:
		return len(x)
	case *list:
		return len(x.items)
	case *dict:
		return len(x.keys)
	}
	return 0
}
