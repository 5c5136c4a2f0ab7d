package chattemplate

import "strings"

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
