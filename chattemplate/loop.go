package chattemplate

// forStatement parses "for x in y if z recursive".
func (p *parser) forStatement() statement {
	assign := p.target(false)
	targets := p.targets
	if !p.skipName("in") {
		p.fail("expected 'in', got %q", p.peek().text)
	}
	over := p.tuple(false)
	mark := len(p.pending)
	f := &forLoop{assign: assign, slot: p.slot("loop")}
	if p.skipName("if") {
		symbols, leave := p.openScope(p.scope)
		symbols.parameters(targets...)
		condition := p.expression(true)
		f.condition = &condition
		leave()
	}
	f.recursive = p.skipName("recursive")
	p.blockBegins()
	symbols, leave := p.openScope(p.scope)
	symbols.parameters(append(targets, f.slot)...)
	f.symbols = symbols
	p.loops++
	f.body = p.body("else", "endfor")
	p.loops--
	leave()
	if p.expectName() == "else" {
		f.otherwiseSymbols, leave = p.openScope(p.scope)
		f.otherwise = p.bodyTo("endfor")
		leave()
	}
	p.settle(mark)
	return func(r *render) signal { return f.run(r, over.eval(r), 1) }
}

type forLoop struct {
	slot      int // of the name "loop"
	assign    target
	condition *node
	recursive bool
	body      block
	otherwise block

	symbols, otherwiseSymbols *symbols
}

// run executes the loop. Each round begins with an empty scope: what a round
// sets is gone in the next.
func (f *forLoop) run(r *render, v value, depth int) signal {
	outer := r.scope
	l := f.over(r, v, depth)
	inner := newScope(outer)
	ran := false
	for {
		item, ok := l.advance(r)
		if !ok {
			break
		}
		ran = true
		inner.slots, inner.values = append(inner.slots[:0], f.slot), append(inner.values[:0], l)
		r.scope = inner
		r.step(1)
		r.hide(f.symbols)
		f.assign(r, item)
		sig := f.body.run(r)
		r.scope = outer
		if sig == breakLoop {
			break
		}
	}
	if ran || f.otherwise == nil {
		return goOn
	}
	defer r.leaveScope(r.enterScope(f.otherwiseSymbols))
	return f.otherwise.run(r)
}

// over prepares the loop variable.
func (f *forLoop) over(r *render, v value, depth int) *loop {
	outer := r.scope
	if f.condition != nil {
		v = filtered(r, v, func(item value) bool {
			before := r.scope
			r.scope = newScope(outer)
			f.assign(r, item)
			keep := r.truth(f.condition.eval(r))
			r.scope = before
			return keep
		})
	}
	l := &loop{index: -1, depth: depth, total: -1}
	switch x := v.(type) {
	case *stream:
		l.streams = deeper(x.depth)
	case *loop:
		l.streams = deeper(x.streams)
	}
	switch v.(type) {
	case *list, *dict, *view:
		l.items = r.collect(v)
		l.total = len(l.items)
	default:
		if n, ok := r.length(v); ok {
			l.total = n
		}
		l.next = r.iterate(v)
	}
	if f.recursive {
		l.again = func(r *render, v value) value {
			before, start := r.scope, len(r.out)
			r.enterCall()
			r.scope = outer
			f.run(r, v, depth+1)
			r.scope = before
			r.leaveCall()
			return r.captured(start)
		}
	}
	return l
}

// loop is the variable of that name. It looks ahead only when it is asked for
// something that lies ahead.
type loop struct {
	items []value // all of them, where next is nil
	next  func() (value, bool)
	index int // from 0
	total int // -1: not known yet
	depth int
	// streams counts the streams below this loop, which is itself read as one by
	// those who iterate over it.
	streams int

	before, current, ahead value
	lookedAhead, atEnd     bool

	changedBefore *list
	again         func(r *render, v value) value
}

// advance moves on to the next element.
func (l *loop) advance(r *render) (value, bool) {
	if l.next == nil {
		if l.index+1 >= len(l.items) {
			return nil, false
		}
		l.index++
		return l.items[l.index], true
	}
	item, ok := l.peek()
	l.lookedAhead = false
	if !ok {
		return nil, false
	}
	l.index++
	l.before, l.current = l.current, item
	return item, true
}

func (l *loop) peek() (value, bool) {
	if l.next == nil {
		if l.index+1 < len(l.items) {
			return l.items[l.index+1], true
		}
		return nil, false
	}
	if !l.lookedAhead && !l.atEnd {
		var ok bool
		l.ahead, ok = l.next()
		l.lookedAhead, l.atEnd = ok, !ok
	}
	return l.ahead, l.lookedAhead
}

// length reads a generator to its end, if that is what the loop is over.
func (l *loop) length(r *render) int {
	if l.total >= 0 {
		return l.total
	}
	var rest []value
	for item, ok := l.peek(); ok; item, ok = l.peek() {
		if rest = append(rest, item); len(rest)&(len(rest)-1) == 0 {
			r.list(len(rest))
		}
		l.lookedAhead = false
	}
	l.total = l.index + 1 + len(rest)
	l.next, l.atEnd = over(rest), false
	return l.total
}

func (l *loop) attribute(r *render, name string) (value, bool) {
	switch name {
	case "index":
		return int64(l.index + 1), true
	case "index0":
		return int64(l.index), true
	case "revindex":
		return int64(l.length(r) - l.index), true
	case "revindex0":
		return int64(l.length(r) - l.index - 1), true
	case "first":
		return l.index == 0, true
	case "last":
		_, more := l.peek()
		return !more, true
	case "length":
		return int64(l.length(r)), true
	case "depth":
		return int64(l.depth), true
	case "depth0":
		return int64(l.depth - 1), true
	case "previtem":
		return l.previous(), true
	case "nextitem":
		if item, ok := l.peek(); ok {
			return item, true
		}
		return &undefined{hint: "there is no next item"}, true
	case "cycle":
		return &callable{name: name, call: func(_ *render, args arguments) value {
			if len(args.positional) == 0 {
				typeError("no items for cycling given")
			}
			return args.positional[l.index%len(args.positional)]
		}}, true
	case "changed":
		return &callable{name: name, call: func(r *render, args arguments) value {
			now := tupleOf(args.positional...)
			if l.changedBefore != nil && r.equal(l.changedBefore, now, 0) {
				return false
			}
			l.changedBefore = now
			return true
		}}, true
	}
	return nil, false
}

func (l *loop) previous() value {
	switch {
	case l.index == 0:
		return &undefined{hint: "there is no previous item"}
	case l.next == nil:
		return l.items[l.index-1]
	}
	return l.before
}

// recurse is loop(...), in loops that are marked recursive.
func (l *loop) recurse(r *render, args arguments) value {
	if l.again == nil {
		typeError("The loop must have the 'recursive' marker to be called recursively.")
	}
	bound := (&signature{names: []string{"iterable"}}).bind("loop", args)
	return l.again(r, bound[0])
}
