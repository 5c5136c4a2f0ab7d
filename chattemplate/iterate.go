package chattemplate

import "unicode/utf8"

// iterate returns a function that gives the elements of an iterable one by one.
func (r *render) iterate(v value) func() (value, bool) {
	switch x := v.(type) {
	case *list:
		return over(x.items)
	case *dict:
		return over(x.keys)
	case *view:
		return over(x.items)
	case *stream:
		return func() (value, bool) {
			r.step(1)
			return x.next(r)
		}
	case *span:
		i, n := int64(0), x.len()
		return func() (value, bool) {
			if i >= n {
				return nil, false
			}
			i++
			return x.at(i - 1), true
		}
	case *undefined:
		return over(nil)
	case string:
		return characters(x)
	case markup:
		return characters(string(x))
	case *loop:
		return func() (value, bool) {
			item, ok := x.advance(r)
			if !ok {
				return nil, false
			}
			return tupleOf(item, x), true
		}
	}
	typeError("'%s' object is not iterable", typeName(v))
	return nil
}

func over(items []value) func() (value, bool) {
	i := 0
	return func() (value, bool) {
		if i >= len(items) {
			return nil, false
		}
		i++
		return items[i-1], true
	}
}

func characters(s string) func() (value, bool) {
	return func() (value, bool) {
		if s == "" {
			return nil, false
		}
		_, width := utf8.DecodeRuneInString(s)
		c := s[:width]
		s = s[width:]
		return c, true
	}
}

// collect returns all elements. The slice may be the value's own: it is read,
// never written.
func (r *render) collect(v value) []value {
	switch x := v.(type) {
	case *list:
		return x.items
	case *dict:
		return x.keys
	case *view:
		return x.items
	}
	var out []value
	next := r.iterate(v)
	for e, ok := next(); ok; e, ok = next() {
		if out = append(out, e); len(out)&(len(out)-1) == 0 {
			r.list(len(out))
		}
	}
	return out
}

// length is len(), and is not there for everything that can be iterated.
func (r *render) length(v value) (int, bool) {
	switch x := v.(type) {
	case *list:
		return len(x.items), true
	case *dict:
		return len(x.keys), true
	case *view:
		return len(x.items), true
	case *span:
		return int(x.len()), true
	case string:
		r.step(len(x) / 64)
		return utf8.RuneCountInString(x), true
	case markup:
		return utf8.RuneCountInString(string(x)), true
	case *undefined:
		return 0, true
	case *loop:
		return x.length(r), true
	}
	return 0, false
}

// mapped and filtered are the two kinds of generators that filters make.
func mapped(r *render, v value, f func(value) value) *stream {
	next := r.iterate(v)
	return generator(v, func(*render) (value, bool) {
		e, ok := next()
		if !ok {
			return nil, false
		}
		return f(e), true
	})
}

func filtered(r *render, v value, keep func(value) bool) *stream {
	next := r.iterate(v)
	return generator(v, func(*render) (value, bool) {
		for e, ok := next(); ok; e, ok = next() {
			r.step(1)
			if keep(e) {
				return e, true
			}
		}
		return nil, false
	})
}

// lazily is a generator over v whose body does not begin before its first
// element is asked for: also its complaints about its arguments come only then.
func lazily(v value, begin func(r *render) *stream) *stream {
	var body *stream
	return generator(v, func(r *render) (value, bool) {
		if body == nil {
			body = begin(r)
		}
		return body.next(r)
	})
}

// generator is a stream that reads from v. Streams on streams recurse when they
// are read, so their number is limited.
func generator(v value, next func(r *render) (value, bool)) *stream {
	depth := 0
	switch x := v.(type) {
	case *stream:
		depth = x.depth
	case *loop:
		depth = x.streams
	}
	return &stream{kind: "generator", depth: deeper(depth), next: next}
}

func emptyStream() *stream { return streamOf("generator", nil) }

func streamOf(kind string, items []value) *stream {
	next := over(items)
	return &stream{kind: kind, next: func(*render) (value, bool) { return next() }}
}
