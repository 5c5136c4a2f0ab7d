package chattemplate

// statement parses one tag, up to but not including its closing delimiter.
func (p *parser) statement() statement {
	line := p.peek().line
	name := p.expectName()
	switch name {
	case "if":
		return p.ifStatement()
	case "for":
		return p.forStatement()
	case "set":
		return p.setStatement()
	case "macro":
		return p.macroStatement()
	case "call":
		return p.callStatement()
	case "filter":
		return p.filterStatement()
	case "with":
		return p.withStatement()
	case "generation":
		return p.generationStatement()
	case "block":
		return p.blockStatement()
	case "print":
		return p.printStatement()
	case "break", "continue":
		return p.loopControl(name)
	case "include", "import", "from", "extends":
		return p.otherTemplate(name)
	}
	p.pos--
	p.fail("unknown tag %q on line %d", name, line)
	return nil
}

func (p *parser) ifStatement() statement {
	type branch struct {
		condition node
		body      block
	}
	mark := len(p.pending)
	branches := []branch{}
	var otherwise block
	for more := true; more; {
		condition := p.tuple(false)
		p.blockBegins()
		p.scope.branches++
		branches = append(branches, branch{condition, p.body("elif", "else", "endif")})
		p.scope.branches--
		switch p.expectName() {
		case "else":
			p.scope.branches++
			otherwise = p.bodyTo("endif")
			p.scope.branches--
			more = false
		case "endif":
			more = false
		}
	}
	p.pending = p.pending[:mark]
	return func(r *render) signal {
		for i := range branches {
			if r.truth(branches[i].condition.eval(r)) {
				return branches[i].body.run(r)
			}
		}
		return otherwise.run(r)
	}
}

// A target is what a value is assigned to.
type target func(r *render, v value)

// target parses names, tuples of names, and attributes of namespaces where
// attributes is set.
//
// The names it sets are left in p.targets: an assignment sets them in the current
// scope, once its value is parsed, and other tags in the scope that they open.
func (p *parser) target(attributes bool) target {
	p.targets = nil
	return p.targetPart(attributes)
}

func (p *parser) targetPart(attributes bool) target {
	targets := []target{p.oneTarget(attributes)}
	tuple := false
	for p.skipOp(",") {
		tuple = true
		if p.peek().isOp(")") {
			break
		}
		targets = append(targets, p.oneTarget(attributes))
	}
	if !tuple {
		return targets[0]
	}
	return func(r *render, v value) {
		items := r.collect(v)
		if len(items) != len(targets) {
			fail("ValueError", "cannot unpack %d values into %d", len(items), len(targets))
		}
		for i, t := range targets {
			t(r, items[i])
		}
	}
}

func (p *parser) oneTarget(attributes bool) target {
	if p.skipOp("(") {
		p.enter()
		defer p.leave()
		t := p.targetPart(false)
		p.expectOp(")")
		return t
	}
	name := p.expectName()
	switch name {
	case "true", "false", "none", "True", "False", "None":
		p.fail("can't assign to %q", name)
	}
	slot := p.slot(name)
	if !attributes || !p.skipOp(".") {
		p.targets = append(p.targets, slot)
		return func(r *render, v value) { r.set(slot, v) }
	}
	attr := p.expectName()
	p.notesRead(slot)
	return func(r *render, v value) {
		n, ok := r.lookup(slot).(*namespace)
		if !ok {
			fail("TemplateRuntimeError", "cannot assign attribute on non-namespace object")
		}
		n.set(attr, v)
	}
}

func (p *parser) setStatement() statement {
	assign := p.target(true)
	targets := p.targets
	if p.skipOp("=") {
		v := p.tuple(true)
		p.noteTargets(targets)
		return func(r *render) signal {
			assign(r, v.eval(r))
			return goOn
		}
	}
	p.noteTargets(targets)
	filter := p.captured("endset")
	return func(r *render) signal {
		v, sig := filter(r)
		if sig == goOn {
			assign(r, v)
		}
		return sig
	}
}

func (p *parser) filterStatement() statement {
	p.pos-- // so that the first filter reads like the others
	p.tokens[p.pos] = token{kind: tokenOp, text: "|", line: p.peek().line}
	filter := p.captured("endfilter")
	return func(r *render) signal {
		v, sig := filter(r)
		if sig == goOn {
			r.write(r.str(v))
		}
		return sig
	}
}

// captured parses "| filters %} body {% end" and returns what runs the body and
// sends its text through the filters, in a scope of its own.
func (p *parser) captured(end string) func(r *render) (value, signal) {
	mark := len(p.pending)
	text := p.slot("") // no name is empty: the text of the innermost body
	n := p.filters(node{eval: func(r *render) value { return r.lookup(text) }})
	inner, leave := p.openScope(p.scope)
	body := p.bodyTo(end)
	leave()
	p.settle(mark)
	return func(r *render) (value, signal) {
		defer r.leaveScope(r.enterScope(inner))
		start := len(r.out)
		sig := body.run(r)
		s := r.captured(start)
		if sig != goOn {
			return nil, sig
		}
		r.set(text, s)
		return n.eval(r), goOn
	}
}

func (p *parser) withStatement() statement {
	var targets []target
	var values []node
	var slots []int
	for p.peek().kind != tokenBlockEnd && !p.peek().isOp(":") {
		if len(targets) > 0 {
			p.expectOp(",")
		}
		targets = append(targets, p.target(false))
		slots = append(slots, p.targets...)
		p.expectOp("=")
		values = append(values, p.expression(true))
	}
	mark := len(p.pending)
	symbols, leave := p.openScope(p.scope)
	symbols.parameters(slots...)
	body := p.bodyTo("endwith")
	leave()
	p.settle(mark)
	return func(r *render) signal {
		outer := r.scope
		inner := newScope(outer)
		r.scope = inner
		r.hide(symbols)
		for i, n := range values {
			r.scope = outer
			v := n.eval(r)
			r.scope = inner
			targets[i](r, v)
		}
		r.scope = inner
		sig := body.run(r)
		r.scope = outer
		return sig
	}
}

// generationStatement is transformers' own tag, which marks what the assistant
// wrote. Only training needs the marks; here it is a scope.
func (p *parser) generationStatement() statement {
	inner, leave := p.openScope(p.scope)
	body := p.function("endgeneration")
	leave()
	return func(r *render) signal {
		defer r.leaveScope(r.enterScope(inner))
		body.run(r)
		return goOn
	}
}

// function parses a body that Python would make a function of: no break or
// continue reaches out of it.
func (p *parser) function(end string) block {
	loops, mark := p.loops, len(p.pending)
	p.loops = 0
	body := p.bodyTo(end)
	p.loops = loops
	p.settle(mark)
	return body
}

// blockStatement runs the block where it stands: nothing can extend a chat
// template. Blocks see the variables of the whole template, and those around
// them only when they are scoped.
func (p *parser) blockStatement() statement {
	name := p.expectName()
	if p.blocks[name] {
		p.fail("block %q defined twice", name)
	}
	p.blocks[name] = true
	scoped := p.skipName("scoped")
	p.skipName("required")
	around := p.scope
	if !scoped {
		around = nil
	}
	inner, leave := p.openScope(around)
	body := p.function("endblock")
	leave()
	p.skipName(name)
	return func(r *render) signal {
		outer := r.scope
		r.scope = newScope(r.root)
		if scoped {
			r.scope.parent = outer
		}
		r.hide(inner)
		body.run(r)
		r.scope = outer
		return goOn
	}
}

func (p *parser) printStatement() statement {
	var nodes []node
	for p.peek().kind != tokenBlockEnd {
		if len(nodes) > 0 {
			p.expectOp(",")
		}
		nodes = append(nodes, p.expression(true))
	}
	return func(r *render) signal {
		for _, n := range nodes {
			r.write(r.str(n.eval(r)))
		}
		return goOn
	}
}

func (p *parser) loopControl(name string) statement {
	if p.loops == 0 {
		p.fail("%q outside of a loop", name)
	}
	sig := breakLoop
	if name == "continue" {
		sig = continueLoop
	}
	return func(*render) signal { return sig }
}

// otherTemplate reads the tags that need other templates. There are none: as in
// transformers they fail, but only when they are reached.
func (p *parser) otherTemplate(tag string) statement {
	p.expression(true)
	for p.peek().kind == tokenName || p.peek().isOp(",") {
		p.pos++
	}
	return func(*render) signal {
		typeError("no loader for this environment specified (%s)", tag)
		return goOn
	}
}
