package chattemplate

import (
	"cmp"
	"math"
	"math/big"
	"sort"
	"strings"
)

// equal is Python's ==, which compares anything with anything.
func (r *render) equal(a, b value, depth int) bool {
	switch x := a.(type) {
	case string:
		switch y := b.(type) {
		case string:
			if len(x) != len(y) {
				return false
			}
			r.step(len(x) / 256)
			return x == y
		case markup:
			return x == string(y)
		}
		return false
	case markup:
		y, ok := textOf(b)
		return ok && string(x) == y
	case nil:
		return b == nil
	case bool, int64, float64, *big.Int:
		order, ok := compareNumbers(a, b)
		return ok && order == 0
	case *undefined:
		_, ok := b.(*undefined)
		return ok
	case *list:
		y, ok := b.(*list)
		if !ok || len(x.items) != len(y.items) || x.tuple != y.tuple {
			return false
		}
		for i := range x.items {
			if !r.same(x.items[i], y.items[i], depth) {
				return false
			}
		}
		return true
	case *dict:
		y, ok := b.(*dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false
		}
		for i, k := range x.keys {
			v, ok := y.get(k)
			if !ok || !r.same(x.vals[i], v, depth) {
				return false
			}
		}
		return true
	case *span:
		y, ok := b.(*span)
		if !ok || x.len() != y.len() {
			return false
		}
		return x.len() == 0 || x.start == y.start && (x.len() == 1 || x.step == y.step)
	case *view:
		y, ok := b.(*view)
		if !ok || x.kind == "dict_values" || y.kind == "dict_values" || len(x.items) != len(y.items) {
			return a == b
		}
		for _, e := range x.items {
			if !r.contains(e, y) {
				return false
			}
		}
		return true
	}
	return a == b
}

// same is the comparison of elements: what is identical is equal, and needs no
// descent.
func (r *render) same(a, b value, depth int) bool {
	r.step(1)
	switch a.(type) {
	case *list, *dict:
		if a == b {
			return true
		}
		return r.equal(a, b, deeper(depth))
	}
	return r.equal(a, b, depth)
}

// compareNumbers is exact where an int and a float meet. It is not ok where one
// is no number, and never 0, -1 or 1 with a NaN.
func compareNumbers(a, b value) (order int, ok bool) {
	if x, ok := intOf(a); ok {
		if y, ok := intOf(b); ok {
			return cmp.Compare(x, y), true
		}
	}
	x, okA := a.(float64)
	y, okB := b.(float64)
	switch {
	case okA && okB:
		return compareFloats(x, y), true
	case okA:
		if n, ok := bigOf(b); ok {
			return -compareMixed(n, x), true
		}
		return 0, false
	case okB:
		if n, ok := bigOf(a); ok {
			return compareMixed(n, y), true
		}
		return 0, false
	}
	m, okA := bigOf(a)
	n, okB := bigOf(b)
	if !okA || !okB {
		return 0, false
	}
	return m.Cmp(n), true
}

const unordered = 2

func compareFloats(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	}
	return unordered
}

func compareMixed(n *big.Int, f float64) int {
	switch {
	case math.IsNaN(f):
		return unordered
	case math.IsInf(f, 0):
		return -int(math.Copysign(1, f))
	}
	return new(big.Float).SetInt(n).Cmp(big.NewFloat(f))
}

// less is Python's <. Everything else that orders is made of it and equal.
func (r *render) less(a, b value, depth int) bool { return r.ordered("<", a, b, depth) }

func (r *render) ordered(op string, a, b value, depth int) bool {
	r.step(1)
	if u, ok := a.(*undefined); ok {
		u.fail()
	}
	if u, ok := b.(*undefined); ok {
		u.fail()
	}
	if x, ok := textOf(a); ok {
		if y, ok := textOf(b); ok {
			r.step(min(len(x), len(y)) / 256)
			return holds(op, strings.Compare(x, y)) // UTF-8 keeps the order of code points
		}
	} else if order, ok := compareNumbers(a, b); ok {
		return holds(op, order)
	} else if x, ok := a.(*list); ok {
		if y, ok := b.(*list); ok && x.tuple == y.tuple {
			for i := range min(len(x.items), len(y.items)) {
				if !r.same(x.items[i], y.items[i], depth) {
					return r.ordered(op, x.items[i], y.items[i], deeper(depth))
				}
			}
			return holds(op, cmp.Compare(len(x.items), len(y.items)))
		}
	}
	typeError("'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b))
	return false
}

func holds(op string, order int) bool {
	if order == unordered || order == -unordered {
		return false
	}
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// compare is one link of a comparison.
func (r *render) compare(op string, a, b value) bool {
	switch op {
	case "==":
		return r.equal(a, b, 0)
	case "!=":
		return !r.equal(a, b, 0)
	case "in":
		return r.contains(a, b)
	case "not in":
		return !r.contains(a, b)
	}
	return r.ordered(op, a, b, 0)
}

// contains is "element in container".
func (r *render) contains(element, container value) bool {
	switch x := container.(type) {
	case string, markup:
		text, _ := textOf(x)
		part, ok := textOf(element)
		if !ok {
			typeError("'in <string>' requires string as left operand, not %s", typeName(element))
		}
		r.step(len(text) / 64)
		return strings.Contains(text, part)
	case *dict:
		r.step(sizeOf(element) / 64)
		return x.find(element) >= 0
	case *view:
		if x.kind == "dict_keys" {
			return x.of.find(element) >= 0
		}
	case *undefined:
		return false
	case *list:
		for _, e := range x.items {
			if r.same(e, element, 0) {
				return true
			}
		}
		return false
	case *span, *stream, *loop:
	default:
		typeError("argument of type '%s' is not iterable", typeName(container))
	}
	next := r.iterate(container)
	for e, ok := next(); ok; e, ok = next() {
		if r.same(e, element, 0) {
			return true
		}
	}
	return false
}

// sortBy sorts as Python's sorted() does: stable, also in reverse.
func (r *render) sortBy(items []value, reverse bool, key func(value) value) []value {
	r.made(64 * len(items))
	type keyed struct{ key, item value }
	pairs := make([]keyed, len(items))
	for i, v := range items {
		pairs[i] = keyed{key(v), v}
	}
	sort.SliceStable(pairs, func(i, j int) bool {
		if reverse {
			i, j = j, i
		}
		return r.less(pairs[i].key, pairs[j].key, 0)
	})
	out := make([]value, len(items))
	for i, p := range pairs {
		out[i] = p.item
	}
	return out
}
