package chattemplate

import "strings"

// globals are the functions that every template can call. A variable of the same
// name hides them.
var globals map[string]value

func init() {
	globals = map[string]value{
		"range":           function("range", rangeFunction),
		"dict":            dictFunction(),
		"namespace":       function("namespace", namespaceFunction),
		"joiner":          function("joiner", joinerFunction),
		"cycler":          function("cycler", cyclerFunction),
		"raise_exception": function("raise_exception", raiseException),
		"strftime_now": function("strftime_now", func(r *render, args arguments) value {
			format := (&signature{names: []string{"format"}}).bind("strftime_now", args)[0]
			return r.strftime(r.now, needText(format))
		}),
		"lipsum": function("lipsum", func(*render, arguments) value {
			return fail("NotImplementedError", "lipsum is not supported in chat templates")
		}),
	}
}

func function(name string, call func(r *render, args arguments) value) *callable {
	return &callable{name: name, call: call}
}

// raiseException is how templates refuse a conversation.
func raiseException(r *render, args arguments) value {
	message := (&signature{names: []string{"message"}}).bind("raise_exception", args)[0]
	panic(failure{&RaisedError{Message: r.str(message)}})
}

func rangeFunction(_ *render, args arguments) value {
	if args.keywords != nil && len(args.keywords.keys) > 0 {
		typeError("range() takes no keyword arguments")
	}
	n := len(args.positional)
	if n < 1 || n > 3 {
		typeError("range expected 1 to 3 arguments, got %d", n)
	}
	var bounds [3]int64
	for i, v := range args.positional {
		if u, ok := v.(*undefined); ok {
			typeError("'%s' object cannot be interpreted as an integer", typeName(u))
		}
		bounds[i] = needInt(v)
	}
	s := &span{stop: bounds[0], step: 1}
	if n > 1 {
		s.start, s.stop = bounds[0], bounds[1]
	}
	if n > 2 {
		s.step = bounds[2]
	}
	if s.step == 0 {
		fail("ValueError", "range() arg 3 must not be zero")
	}
	if s.len() > maxRange || s.len() < 0 {
		fail("OverflowError", "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return s
}

// dictFunction is dict(), and dict.fromkeys().
func dictFunction() *callable {
	f := function("dict", func(r *render, args arguments) value { return r.newDict("dict", args) })
	f.fromKeys = true
	return f
}

// newDict is Python's dict(mapping or pairs, **more).
func (r *render) newDict(name string, args arguments) *dict {
	d := &dict{}
	if len(args.positional) > 1 {
		typeError("%s expected at most 1 argument, got %d", name, len(args.positional))
	}
	if len(args.positional) == 1 {
		if from, ok := args.positional[0].(*dict); ok {
			d = from.copy(r)
		} else if u, ok := args.positional[0].(*undefined); ok {
			u.fail()
		} else {
			for _, e := range r.collect(args.positional[0]) {
				pair := r.collect(e)
				if len(pair) != 2 {
					fail("ValueError", "dictionary update sequence element has length %d; 2 is required", len(pair))
				}
				r.list(2)
				d.set(pair[0], pair[1])
			}
		}
	}
	if args.keywords != nil {
		for i, k := range args.keywords.keys {
			d.set(k, args.keywords.vals[i])
		}
	}
	return d
}

func namespaceFunction(r *render, args arguments) value {
	n := &namespace{}
	attrs := r.newDict("namespace", args)
	for i, k := range attrs.keys {
		n.set(k, attrs.vals[i])
	}
	return n
}

// set refuses the names under which Python keeps its own things.
func (n *namespace) set(name, v value) {
	if s, ok := textOf(name); ok && strings.HasPrefix(s, "_") {
		fail("SecurityError", "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '%s'.", s)
	}
	n.attrs.set(name, v)
}

// joinerFunction makes a function that returns nothing at first, and then the
// separator.
func joinerFunction(_ *render, args arguments) value {
	bound := (&signature{names: []string{"sep"}, defaults: []value{", "}}).bind("joiner", args)
	used := false
	return function("joiner", func(*render, arguments) value {
		if used {
			return bound[0]
		}
		used = true
		return ""
	})
}

func cyclerFunction(_ *render, args arguments) value {
	if len(args.positional) == 0 {
		fail("RuntimeError", "at least one item has to be provided")
	}
	return &cycle{items: args.positional}
}

func (c *cycle) attribute(name string) (value, bool) {
	switch name {
	case "current":
		return c.items[c.pos], true
	case "next":
		return function(name, func(*render, arguments) value {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v
		}), true
	case "reset":
		return function(name, func(*render, arguments) value {
			c.pos = 0
			return nil
		}), true
	}
	return nil, false
}
