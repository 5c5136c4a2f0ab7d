package chattemplate

import (
	"math"
	"math/big"
	"slices"
)

// methodOf finds the method of that name on v's type, or nil.
func methodOf(v value, name string) *method {
	switch x := v.(type) {
	case string, markup:
		return textMethods[name]
	case *dict:
		return dictMethods[name]
	case *list:
		if x.tuple && name == "copy" {
			return nil
		}
		return listMethods[name]
	case *span:
		if name != "copy" {
			return listMethods[name]
		}
	case bool, int64, *big.Int:
		return intMethods[name]
	case float64:
		return floatMethods[name]
	}
	return nil
}

// fn makes a method of a table, whose key names it.
func fn(takes signature, apply func(r *render, self value, args []value) value) *method {
	return &method{signature: takes.byPosition(), apply: apply}
}

func withNames(tables ...map[string]*method) {
	for _, table := range tables {
		for name, m := range table {
			m.name = name
		}
	}
}

// The methods of each type. They are made by init because some of them look
// methods up, which Go would call a cycle.
var textMethods, dictMethods, listMethods, intMethods, floatMethods map[string]*method

func init() {
	textMethods, dictMethods, listMethods = methodsOfText(), methodsOfDict(), methodsOfList()
	intMethods, floatMethods = methodsOfInt(), methodsOfFloat()
	withNames(textMethods, dictMethods, listMethods, intMethods, floatMethods)
}

func methodsOfDict() map[string]*method {
	return map[string]*method{
		"get": fn(takes("key default", nil), func(r *render, self value, args []value) value {
			if v, ok := self.(*dict).get(args[0]); ok {
				return v
			}
			return args[1]
		}),
		"items": fn(takes(""), func(r *render, self value, _ []value) value {
			d := self.(*dict)
			return &view{kind: "dict_items", of: d, items: d.pairs(r)}
		}),
		"keys": fn(takes(""), func(r *render, self value, _ []value) value {
			d := self.(*dict)
			return &view{kind: "dict_keys", of: d, items: d.keys}
		}),
		"values": fn(takes(""), func(r *render, self value, _ []value) value {
			d := self.(*dict)
			return &view{kind: "dict_values", of: d, items: d.vals}
		}),
		"copy": fn(takes(""), func(r *render, self value, _ []value) value { return self.(*dict).copy(r) }),
		"fromkeys": fn(takes("iterable value", nil), func(r *render, _ value, args []value) value {
			return r.fromKeys(args)
		}),
	}
}

func (r *render) fromKeys(args []value) value {
	d := &dict{}
	for _, k := range r.collect(args[0]) {
		r.list(2)
		d.set(k, args[1])
	}
	return d
}

func methodsOfList() map[string]*method {
	return map[string]*method{
		"index": fn(takes("value start stop", int64(0), nil), func(r *render, self value, args []value) value {
			items := r.collect(self)
			_, ok := self.(*list)
			if !ok && (args[1] != int64(0) || args[2] != nil) {
				typeError("range.index() takes exactly one argument")
			}
			first, count, _ := sliceBounds(int64(len(items)), args[1], args[2], nil)
			for i := first; i < first+count; i++ {
				if r.same(items[i], args[0], 0) {
					return i
				}
			}
			return fail("ValueError", "%s is not in list", r.reprText(args[0]))
		}),
		"count": fn(takes("value"), func(r *render, self value, args []value) value {
			n := int64(0)
			for _, e := range r.collect(self) {
				if r.same(e, args[0], 0) {
					n++
				}
			}
			return n
		}),
		"copy": fn(takes(""), func(r *render, self value, _ []value) value {
			items := self.(*list).items
			r.list(len(items))
			return &list{items: slices.Clone(items)}
		}),
	}
}

func methodsOfInt() map[string]*method {
	return map[string]*method{
		"bit_length": fn(takes(""), func(_ *render, self value, _ []value) value {
			n, _ := bigOf(self)
			return int64(n.BitLen())
		}),
		"conjugate": fn(takes(""), func(_ *render, self value, _ []value) value { return negate(self, false) }),
	}
}

func methodsOfFloat() map[string]*method {
	return map[string]*method{
		"is_integer": fn(takes(""), func(_ *render, self value, _ []value) value {
			f := self.(float64)
			return f == math.Trunc(f) && !math.IsInf(f, 0)
		}),
		"conjugate": fn(takes(""), func(_ *render, self value, _ []value) value { return self }),
	}
}
