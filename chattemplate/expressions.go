package chattemplate

// The productions follow from the loosest operator to the tightest, as in
// Jinja's grammar, which differs from Python's: "~" binds tighter than "+", and
// "**" joins to the left.

// tuple parses an expression, or several with commas between, which are a tuple.
// Where conditionals are not allowed, an "if" belongs to the tag around it.
func (p *parser) tuple(conditionals bool) node {
	n := p.expression(conditionals)
	if !p.peek().isOp(",") {
		return n
	}
	items := []node{n}
	for p.skipOp(",") {
		if t := p.peek(); t.kind == tokenVarEnd || t.kind == tokenBlockEnd || t.isOp(")") {
			break
		}
		items = append(items, p.expression(conditionals))
	}
	return listOf(items, true)
}

func listOf(items []node, tuple bool) node {
	return built(func(r *render) value {
		r.list(len(items))
		l := &list{items: make([]value, len(items)), tuple: tuple}
		for i := range items {
			l.items[i] = items[i].eval(r)
		}
		return l
	}, items...)
}

func (p *parser) expression(conditionals bool) node {
	p.enter()
	defer p.leave()
	if !conditionals {
		return p.or()
	}
	return p.conditional()
}

func (p *parser) conditional() node {
	mark := len(p.pending)
	n := p.or()
	for p.skipName("if") {
		then, condition := n, p.or()
		otherwise := constant(&undefined{hint: "the inline if-expression evaluated to false and no else section was defined."})
		if p.skipName("else") {
			otherwise = p.expression(true)
		}
		p.pending = p.pending[:mark] // the branches may never be taken
		n = built(func(r *render) value {
			if r.truth(condition.eval(r)) {
				return then.eval(r)
			}
			return otherwise.eval(r)
		}, condition, then, otherwise)
	}
	return n
}

func (p *parser) or() node {
	n := p.and()
	for p.skipName("or") {
		left, right := n, p.and()
		n = built(func(r *render) value {
			if v := left.eval(r); r.truth(v) {
				return v
			}
			return right.eval(r)
		}, left, right)
	}
	return n
}

func (p *parser) and() node {
	n := p.not()
	for p.skipName("and") {
		left, right := n, p.not()
		n = built(func(r *render) value {
			if v := left.eval(r); !r.truth(v) {
				return v
			}
			return right.eval(r)
		}, left, right)
	}
	return n
}

func (p *parser) not() node {
	if !p.skipName("not") {
		return p.comparison()
	}
	p.enter()
	defer p.leave()
	n := p.not()
	return built(func(r *render) value { return !r.truth(n.eval(r)) }, n)
}

func (p *parser) comparison() node {
	type link struct {
		op    string
		right node
	}
	n := p.sum()
	var links []link
	nodes := []node{n}
	for op := p.comparisonOp(); op != ""; op = p.comparisonOp() {
		links = append(links, link{op, p.sum()})
		nodes = append(nodes, links[len(links)-1].right)
	}
	switch len(links) {
	case 0:
		return n
	case 1:
		op, right := links[0].op, links[0].right
		if op == "==" {
			return built(func(r *render) value { return r.equal(n.eval(r), right.eval(r), 0) }, nodes...)
		}
		return built(func(r *render) value {
			left := n.eval(r)
			return r.compare(op, left, right.eval(r))
		}, nodes...)
	}
	return built(func(r *render) value {
		left := n.eval(r)
		for _, l := range links {
			right := l.right.eval(r)
			if !r.compare(l.op, left, right) {
				return false
			}
			left = right
		}
		return true
	}, nodes...)
}

func (p *parser) comparisonOp() string {
	t := p.peek()
	switch {
	case t.kind == tokenOp:
		switch t.text {
		case "==", "!=", "<", "<=", ">", ">=":
			p.pos++
			return t.text
		}
	case t.isName("in"):
		p.pos++
		return "in"
	case t.isName("not") && p.after().isName("in"):
		p.pos += 2
		return "not in"
	}
	return ""
}

// operators parses a chain of operators that join to the left.
func (p *parser) operators(operand func() node, ops ...string) node {
	n := operand()
	for {
		op := ""
		for _, o := range ops {
			if p.skipOp(o) {
				op = o
				break
			}
		}
		if op == "" {
			return n
		}
		left, right := n, operand()
		n = built(func(r *render) value {
			v := left.eval(r)
			return r.binary(op, v, right.eval(r))
		}, left, right)
	}
}

func (p *parser) sum() node     { return p.operators(p.concat, "+", "-") }
func (p *parser) product() node { return p.operators(p.power, "*", "/", "//", "%") }
func (p *parser) power() node {
	return p.operators(func() node { return p.unary(true) }, "**")
}

func (p *parser) concat() node {
	n := p.product()
	if !p.peek().isOp("~") {
		return n
	}
	nodes := []node{n}
	for p.skipOp("~") {
		nodes = append(nodes, p.product())
	}
	return built(func(r *render) value {
		var b []byte
		for _, n := range nodes {
			b = append(b, r.str(n.eval(r))...)
			if len(b) > maxTextBytes {
				break
			}
		}
		r.text(len(b))
		return string(b)
	}, nodes...)
}

// unary parses a sign. Filters belong to the whole: -x|abs is (-x)|abs.
func (p *parser) unary(filters bool) node {
	var n node
	switch t := p.peek(); {
	case t.isOp("-"), t.isOp("+"):
		p.pos++
		p.enter()
		operand := p.unary(false)
		p.leave()
		minus := t.text == "-"
		n = built(func(r *render) value { return negate(operand.eval(r), minus) }, operand)
	default:
		n = p.primary()
	}
	n = p.postfix(n)
	if filters {
		n = p.filters(n)
	}
	return n
}
