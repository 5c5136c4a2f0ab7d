package chattemplate

// filters parses what may follow an operand: |filter, "is test", and calls of
// the result of either.
func (p *parser) filters(n node) node {
	for {
		switch t := p.peek(); {
		case t.isOp("|"):
			p.pos++
			n = p.filter(n)
		case t.isName("is"):
			p.pos++
			n = p.test(n)
		case t.isOp("("):
			n = p.callOf(n)
		default:
			return n
		}
	}
}

// dotted parses a name that may have dots in it.
func (p *parser) dotted() string {
	name := p.expectName()
	for p.skipOp(".") {
		name += "." + p.expectName()
	}
	return name
}

func (p *parser) filter(of node) node {
	line := p.peek().line
	name := p.dotted()
	var l argumentList
	if p.peek().isOp("(") {
		l = p.arguments()
	}
	f := filters[name]
	if f == nil {
		p.pending = append(p.pending, unknownName{line, "no filter named '" + name + "'"})
		f = noFilter(name)
	}
	if len(l.positional)+len(l.keywords) == 0 && l.spread == nil && l.spreadMap == nil {
		return built(func(r *render) value { return f.invoke(r, of.eval(r), arguments{}) }, of)
	}
	return built(func(r *render) value {
		v := of.eval(r)
		return f.invoke(r, v, l.eval(r))
	}, append(l.nodes(), of)...)
}

func noFilter(name string) *method {
	return &method{name: name, raw: func(*render, value, arguments) value {
		return fail("TemplateRuntimeError", "No filter named '%s'.", name)
	}}
}

func (p *parser) test(of node) node {
	negated := p.skipName("not")
	line := p.peek().line
	name := p.dotted()
	l := p.testArguments()
	t := tests[name]
	if t == nil {
		p.pending = append(p.pending, unknownName{line, "no test named '" + name + "'"})
		t = noTest(name)
	}
	return built(func(r *render) value {
		v := of.eval(r)
		return r.truth(t.invoke(r, v, l.eval(r))) != negated
	}, append(l.nodes(), of)...)
}

func noTest(name string) *method {
	return &method{name: name, raw: func(*render, value, arguments) value {
		return fail("TemplateRuntimeError", "No test named '%s'.", name)
	}}
}

// testArguments parses a test's arguments, a single one also without brackets:
// "x is divisibleby 3".
func (p *parser) testArguments() argumentList {
	switch t := p.peek(); {
	case t.isOp("("):
		return p.arguments()
	case t.isName("is"):
		p.fail("tests cannot be chained with is")
	case t.isName("else"), t.isName("or"), t.isName("and"):
	case t.kind == tokenName, t.kind == tokenString, t.kind == tokenNumber, t.isOp("["), t.isOp("{"):
		p.enter()
		defer p.leave()
		return argumentList{positional: []node{p.postfix(p.primary())}}
	}
	return argumentList{}
}
