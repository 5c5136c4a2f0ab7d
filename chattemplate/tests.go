package chattemplate

import (
	"math/big"
)

// tests are what may stand behind "is".
var tests map[string]*method

func init() {
	tests = map[string]*method{}
	for name, holds := range simpleTests {
		tests[name] = &method{name: name, apply: func(r *render, v value, _ []value) value { return holds(r, v) }}
	}
	for name, holds := range comparisons {
		tests[name] = &method{name: name, signature: takes("other"), apply: func(r *render, v value, args []value) value {
			return holds(r, v, args[0])
		}}
	}
}

var simpleTests = map[string]func(r *render, v value) bool{
	"defined":   func(_ *render, v value) bool { _, ok := v.(*undefined); return !ok },
	"undefined": func(_ *render, v value) bool { _, ok := v.(*undefined); return ok },
	"none":      func(_ *render, v value) bool { return v == nil },
	"boolean":   func(_ *render, v value) bool { _, ok := v.(bool); return ok },
	"true":      func(_ *render, v value) bool { return v == true },
	"false":     func(_ *render, v value) bool { return v == false },
	"integer": func(_ *render, v value) bool {
		switch v.(type) {
		case int64, *big.Int:
			return true
		}
		return false
	},
	"float": func(_ *render, v value) bool { _, ok := v.(float64); return ok },
	"number": func(_ *render, v value) bool {
		switch v.(type) {
		case bool, int64, *big.Int, float64:
			return true
		}
		return false
	},
	"string":   func(_ *render, v value) bool { _, ok := textOf(v); return ok },
	"mapping":  func(_ *render, v value) bool { _, ok := v.(*dict); return ok },
	"escaped":  func(_ *render, v value) bool { _, ok := v.(markup); return ok },
	"callable": func(_ *render, v value) bool { return isCallable(v) },
	"iterable": func(_ *render, v value) bool { return isIterable(v) },
	"sequence": func(_ *render, v value) bool {
		switch v.(type) {
		case string, markup, *list, *dict, *span, *undefined:
			return true
		}
		return false
	},
	"odd":    func(r *render, v value) bool { return r.equal(r.binary("%", v, int64(2)), int64(1), 0) },
	"even":   func(r *render, v value) bool { return r.equal(r.binary("%", v, int64(2)), int64(0), 0) },
	"lower":  func(r *render, v value) bool { return allCased(r.str(v), isLower) },
	"upper":  func(r *render, v value) bool { return allCased(r.str(v), isUpper) },
	"filter": func(_ *render, v value) bool { return names(filters, v) },
	"test":   func(_ *render, v value) bool { return names(tests, v) },
}

// comparisons are the tests that take one argument.
var comparisons = func() map[string]func(r *render, v, other value) bool {
	table := map[string]func(r *render, v, other value) bool{
		"in":          func(r *render, v, other value) bool { return r.contains(v, other) },
		"divisibleby": func(r *render, v, other value) bool { return r.equal(r.binary("%", v, other), int64(0), 0) },
		"sameas": func(r *render, v, other value) bool {
			return typeName(v) == typeName(other) && isAtom(v) == isAtom(other) && (v == other || isAtom(v) && r.equal(v, other, 0))
		},
	}
	for op, names := range map[string][]string{
		"==": {"eq", "equalto"}, "!=": {"ne"}, "<": {"lt", "lessthan"}, ">": {"gt", "greaterthan"}, "<=": {"le"}, ">=": {"ge"},
	} {
		holds := func(r *render, v, other value) bool { return r.compare(op, v, other) }
		for _, name := range append(names, op) {
			table[name] = holds
		}
	}
	return table
}()

// names tells whether there is such a filter or test.
func names(table map[string]*method, v value) bool {
	hashed(v) // what has no hash is refused
	s, ok := textOf(v)
	return ok && table[s] != nil
}

// isAtom tells values that have no identity of their own here.
func isAtom(v value) bool {
	switch v.(type) {
	case nil, bool, int64, *big.Int, float64, string, markup:
		return true
	}
	return false
}

func isCallable(v value) bool {
	switch v.(type) {
	case *callable, *undefined, *loop:
		return true
	}
	return false
}

func isIterable(v value) bool {
	switch v.(type) {
	case string, markup, *list, *dict, *span, *view, *stream, *undefined, *loop:
		return true
	}
	return false
}

// allCased is str.islower() or isupper(): no letter of the other case, and at
// least one of this.
func allCased(s string, in func(rune) bool) bool {
	found := false
	for _, c := range s {
		switch {
		case in(c):
			found = true
		case isCased(c):
			return false
		}
	}
	return found
}
