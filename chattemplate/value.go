package chattemplate

import (
	"math/big"
)

// A value is one of Python's, as far as templates meet them:
//
//	nil                None
//	bool, float64      bool, float
//	int64, *big.Int    int; *big.Int only beyond int64, see smallest
//	string, markup     str, and the str that needs no HTML escaping any more
//	*list              list or tuple
//	*dict              dict
//	*span              range
//	*view              what dict.items(), keys() and values() return
//	*stream            a generator or iterator: read once, without a length
//	*namespace         namespace(), the only thing a template can change
//	*undefined         jinja2.Undefined
//	*callable          a function, a bound method or a macro
//	*loop              the loop variable of a for
//	*cycle             cycler()
type value any

type (
	// markup is text that |safe or |escape made: what is added to it gets escaped.
	markup string

	list struct {
		items []value
		tuple bool
		group bool  // a tuple with the names grouper and list, from |groupby
		key   value // of a tuple, its hash, once it was needed
	}

	span struct{ start, stop, step int64 }

	view struct {
		kind  string // dict_items, dict_keys or dict_values
		of    *dict
		items []value
	}

	// stream gives its elements on demand, as a Python generator: an error in an
	// element that is never asked for never happens.
	stream struct {
		kind  string // Python's name of the type
		depth int    // streams below this one
		next  func(r *render) (value, bool)
	}

	namespace struct{ attrs dict }

	// undefined stands for what is not there. It prints as nothing, is false and
	// empty, and fails when it is used for anything else.
	undefined struct {
		hint   string // the message; empty: made of the following
		of     value  // what lacks something
		key    value  // the name or the element it lacks
		unsafe bool   // it is there, but not for templates
	}

	callable struct {
		name  string
		call  func(r *render, args arguments) value
		macro *macro // set where it is one
		// fromKeys marks dict, the only function with a function of its own.
		fromKeys bool
	}

	// cycle has a state, which next() and reset() change.
	cycle struct {
		items []value
		pos   int
	}
)

func undefinedName(name string) *undefined {
	return &undefined{hint: "'" + name + "' is undefined"}
}

// fail makes the message only here: most of what is undefined is only asked
// whether it is.
func (u *undefined) fail() value {
	name, isName := textOf(u.key)
	switch {
	case u.hint != "":
		return fail("UndefinedError", "%s", u.hint)
	case u.unsafe:
		return fail("SecurityError", "access to attribute '%s' of '%s' object is unsafe.", name, typeName(u.of))
	case isName:
		return fail("UndefinedError", "'%s' has no attribute '%s'", objectName(u.of), name)
	}
	return fail("UndefinedError", "%s has no element of that %s", objectName(u.of), typeName(u.key))
}

func tupleOf(items ...value) *list { return &list{items: items, tuple: true} }

func typeName(v value) string {
	switch x := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *list:
		if x.tuple {
			return "tuple"
		}
		return "list"
	case *dict:
		return "dict"
	case *span:
		return "range"
	case *view:
		return x.kind
	case *stream:
		return x.kind
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *loop:
		return "LoopContext"
	case *cycle:
		return "Cycler"
	}
	return "function"
}

// truth is Python's bool().
func (r *render) truth(v value) bool {
	switch x := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return x
	case string:
		return x != ""
	case int64:
		return x != 0
	case float64:
		return x != 0
	case markup:
		return x != ""
	case *list:
		return len(x.items) > 0
	case *dict:
		return len(x.keys) > 0
	case *span:
		return x.len() > 0
	case *view:
		return len(x.items) > 0
	}
	return true // also *big.Int, which is never zero
}

// textOf returns the text of a str.
func textOf(v value) (string, bool) {
	switch x := v.(type) {
	case string:
		return x, true
	case markup:
		return string(x), true
	}
	return "", false
}

// alike gives s the type of v: what is made of markup stays markup.
func alike(v value, s string) value {
	if _, ok := v.(markup); ok {
		return markup(s)
	}
	return s
}

func needText(v value) string {
	s, ok := textOf(v)
	if !ok {
		if u, ok := v.(*undefined); ok {
			typeError("expected str, not %s", typeName(u))
		}
		typeError("expected str, not %s", typeName(v))
	}
	return s
}

func (s *span) len() int64 {
	switch {
	case s.step > 0 && s.start < s.stop:
		return int64((uint64(s.stop)-uint64(s.start)-1)/uint64(s.step)) + 1
	case s.step < 0 && s.start > s.stop:
		return int64((uint64(s.start)-uint64(s.stop)-1)/(-uint64(s.step))) + 1
	}
	return 0
}

func (s *span) at(i int64) int64 { return s.start + i*s.step }
