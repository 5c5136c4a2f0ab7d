package chattemplate

import "strings"

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

func constant(v value) node { return node{eval: func(*render) value { return v }} }

func (p *parser) primary() node {
	t := p.peek()
	p.pos++
	switch t.kind {
	case tokenName:
		return p.variable(t.text)
	case tokenString:
		text := t.text
		if p.peek().kind == tokenString { // texts side by side are one
			var b strings.Builder
			b.WriteString(text)
			for ; p.peek().kind == tokenString; p.pos++ {
				b.WriteString(p.peek().text)
			}
			text = b.String()
		}
		return constant(text)
	case tokenNumber:
		return constant(t.value)
	case tokenOp:
		switch t.text {
		case "(":
			if p.skipOp(")") {
				return listOf(nil, true)
			}
			n := p.tuple(true)
			p.expectOp(")")
			return n
		case "[":
			return p.listDisplay()
		case "{":
			return p.dictDisplay()
		}
	}
	p.pos--
	p.fail("unexpected %q", t.text)
	return node{}
}

func (p *parser) variable(name string) node {
	switch name {
	case "true", "True":
		return constant(true)
	case "false", "False":
		return constant(false)
	case "none", "None":
		return constant(nil)
	case "caller", "kwargs", "varargs":
		p.reads[name]++
	}
	slot := p.slot(name)
	p.notesRead(slot)
	return node{eval: func(r *render) value { return r.lookup(slot) }}
}

func (p *parser) listDisplay() node {
	var items []node
	for !p.skipOp("]") {
		if len(items) > 0 {
			p.expectOp(",")
			if p.skipOp("]") {
				break
			}
		}
		items = append(items, p.expression(true))
	}
	return listOf(items, false)
}

func (p *parser) dictDisplay() node {
	var keys, values []node
	for !p.skipOp("}") {
		if len(keys) > 0 {
			p.expectOp(",")
			if p.skipOp("}") {
				break
			}
		}
		keys = append(keys, p.expression(true))
		p.expectOp(":")
		values = append(values, p.expression(true))
	}
	return built(func(r *render) value {
		r.list(2 * len(keys))
		d := &dict{}
		for i := range keys {
			k := keys[i].eval(r)
			d.set(k, values[i].eval(r))
		}
		return d
	}, append(keys[:len(keys):len(keys)], values...)...)
}

// postfix parses attributes, subscripts and calls.
func (p *parser) postfix(n node) node {
	for {
		switch t := p.peek(); {
		case t.isOp("."):
			p.pos++
			n = p.attribute(n)
		case t.isOp("["):
			p.pos++
			n = p.subscript(n)
		case t.isOp("("):
			n = p.callOf(n)
		default:
			return n
		}
	}
}

func (p *parser) attribute(of node) node {
	t := p.peek()
	p.pos++
	switch {
	case t.kind == tokenNumber:
		if _, isFloat := t.value.(float64); !isFloat {
			return built(func(r *render) value { return r.item(of.eval(r), t.value) }, of)
		}
	case t.kind == tokenName && p.peek().isOp("("):
		return p.methodCall(of, t.text)
	case t.kind == tokenName:
		return attributeOf(of, t.text)
	}
	p.pos--
	p.fail("expected a name or number, got %q", t.text)
	return node{}
}

func attributeOf(of node, name string) node {
	_, method := dictMethods[name]
	own := method || unsafe(&dict{}, name) // dicts have it themselves
	var key value = name
	return built(func(r *render) value {
		v := of.eval(r)
		if d, ok := v.(*dict); ok && !own { // by far the most common case
			if i := d.findText(name); i >= 0 {
				return d.vals[i]
			}
			return &undefined{of: v, key: key}
		}
		return r.attribute(v, name)
	}, of)
}

// subscript parses what stands in x[...]: a key, a slice, or several keys, which
// are a tuple.
func (p *parser) subscript(of node) node {
	var keys []node
	var slices [][3]node
	for !p.skipOp("]") {
		if len(keys)+len(slices) > 0 {
			p.expectOp(",")
		}
		if bounds, ok := p.sliceOrKey(&keys); ok {
			slices = append(slices, bounds)
		}
	}
	switch {
	case len(slices) == 1 && len(keys) == 0:
		slice := slices[0]
		low, high, step := slice[0], slice[1], slice[2]
		return built(func(r *render) value {
			v := of.eval(r)
			l, h := low.eval(r), high.eval(r)
			return r.slice(v, l, h, step.eval(r))
		}, of, low, high, step)
	case len(slices) > 0:
		return built(func(r *render) value { return typeError("a slice in a tuple is no key") }, of)
	case len(keys) == 1:
		key := keys[0]
		return built(func(r *render) value {
			v := of.eval(r)
			return r.item(v, key.eval(r))
		}, of, key)
	}
	key := listOf(keys, true)
	return built(func(r *render) value {
		v := of.eval(r)
		return r.item(v, key.eval(r))
	}, of, key)
}

func (p *parser) sliceOrKey(keys *[]node) (bounds [3]node, slice bool) {
	none := constant(nil)
	bounds = [3]node{none, none, none}
	for i := range bounds {
		if !p.peek().isOp(":") && !p.peek().isOp("]") && !p.peek().isOp(",") {
			bounds[i] = p.expression(true)
		} else if i == 0 && !p.peek().isOp(":") {
			p.fail("unexpected %q", p.peek().text)
		}
		if i == 2 || !p.skipOp(":") {
			break
		}
		slice = true
	}
	if !slice {
		*keys = append(*keys, bounds[0])
	}
	return bounds, slice
}
