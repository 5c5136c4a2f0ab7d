package chattemplate

import (
	"math/big"
	"strings"
	"unicode/utf8"
)

// attribute is x.name in a template: an attribute first, then an item.
func (r *render) attribute(v value, name string) value {
	if a, ok := r.ownAttribute(v, name); ok {
		return a
	}
	if d, ok := v.(*dict); ok {
		if item, ok := d.get(name); ok {
			return item
		}
	}
	return missing(v, name)
}

// item is x[key]: an item first, then an attribute.
func (r *render) item(v, key value) value {
	switch x := v.(type) {
	case *dict:
		r.step(sizeOf(key) / 64)
		if _, ok := key.(string); ok || isHashable(key) {
			if item, ok := x.get(key); ok {
				return item
			}
		}
	case *list:
		if i, ok := position(key, int64(len(x.items))); ok {
			return x.items[i]
		}
	case *span:
		if i, ok := position(key, x.len()); ok {
			return x.at(i)
		}
	case string:
		if c, ok := r.character(x, key); ok {
			return c
		}
	case markup:
		if c, ok := r.character(string(x), key); ok {
			return markup(c)
		}
	case *undefined:
		return x.fail()
	}
	if name, ok := textOf(key); ok {
		if a, ok := r.ownAttribute(v, name); ok {
			return a
		}
		return missing(v, name)
	}
	return &undefined{of: v, key: key}
}

// position resolves an index, which may count from the end.
func position(key value, n int64) (int64, bool) {
	i, ok := intOf(key)
	if !ok {
		return 0, false
	}
	if i < 0 {
		i += n
	}
	return i, i >= 0 && i < n
}

func (r *render) character(s string, key value) (string, bool) {
	if _, ok := intOf(key); !ok {
		return "", false
	}
	r.step(len(s) / 64)
	i, ok := position(key, int64(utf8.RuneCountInString(s)))
	if !ok {
		return "", false
	}
	for range i {
		_, width := utf8.DecodeRuneInString(s)
		s = s[width:]
	}
	_, width := utf8.DecodeRuneInString(s)
	return s[:width], true
}

// ownAttribute is Python's getattr, as far as the sandbox lets a template see it.
func (r *render) ownAttribute(v value, name string) (value, bool) {
	switch x := v.(type) {
	case *undefined:
		if !unsafe(x, name) {
			return x.fail(), true
		}
	case *namespace:
		return x.attrs.get(name)
	case *loop:
		return x.attribute(r, name)
	case *cycle:
		return x.attribute(name)
	case *callable:
		if x.macro != nil {
			return x.macro.attribute(name)
		}
		if x.fromKeys && name == "fromkeys" {
			return function(name, func(r *render, args arguments) value {
				return r.fromKeys(dictMethods["fromkeys"].bind(name, args))
			}), true
		}
		return nil, false
	case *list:
		if x.group && (name == "grouper" || name == "list") {
			return x.items[map[string]int{"grouper": 0, "list": 1}[name]], true
		}
	}
	if a, ok := numberAttribute(v, name); ok {
		return a, true
	}
	if m := methodOf(v, name); m != nil {
		return &callable{name: name, call: func(r *render, args arguments) value { return m.invoke(r, v, args) }}, true
	}
	if unsafe(v, name) {
		return &undefined{of: v, key: name, unsafe: true}, true
	}
	return nil, false
}

// unsafe tells attributes that exist in Python, but not for templates: methods
// that change what they belong to, and everything behind double underscores.
func unsafe(v value, name string) bool {
	if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
		return name == "__class__" || name == "__doc__" || name == "__len__" || name == "__init__"
	}
	switch x := v.(type) {
	case *dict:
		switch name {
		case "clear", "pop", "popitem", "setdefault", "update":
			return true
		}
	case *list:
		switch name {
		case "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove":
			return !x.tuple
		}
	}
	return false
}

func numberAttribute(v value, name string) (value, bool) {
	_, isFloat := v.(float64)
	isInt := isInt(v)
	if !isInt && !isFloat {
		return nil, false
	}
	switch {
	case name == "real" || name == "numerator" && isInt:
		if b, ok := v.(bool); ok {
			n, _ := intOf(b)
			return n, true
		}
		return v, true
	case name == "imag" && isFloat:
		return 0.0, true
	case name == "imag":
		return int64(0), true
	case name == "denominator" && isInt:
		return int64(1), true
	}
	return nil, false
}

func missing(v value, name string) value { return &undefined{of: v, key: name} }

func objectName(v value) string {
	switch v.(type) {
	case nil:
		return "None"
	case *loop, *namespace, *cycle:
		return "jinja2." + typeName(v) + " object"
	}
	return typeName(v) + " object"
}

// slice is x[low:high:step]; None stands for what was left out.
func (r *render) slice(v, low, high, step value) value {
	if u, ok := v.(*undefined); ok {
		return u.fail()
	}
	var n int
	var chars []rune
	switch x := v.(type) {
	case string:
		if s, ok := asciiSlice(x, low, high, step); ok {
			r.text(len(s))
			return s
		}
		r.made(4 * len(x))
		chars = []rune(x)
		n = len(chars)
	case markup:
		r.made(4 * len(x))
		chars = []rune(string(x))
		n = len(chars)
	case *list:
		n = len(x.items)
	case *span:
		n = int(x.len())
	default:
		return typeError("'%s' object is not subscriptable", typeName(v))
	}
	first, count, stride := sliceBounds(int64(n), low, high, step)
	switch x := v.(type) {
	case *span:
		return &span{x.at(first), x.at(first + count*stride), x.step * stride}
	case *list:
		if stride == 1 {
			return &list{items: x.items[first : first+count : first+count], tuple: x.tuple}
		}
		r.list(int(count))
		out := make([]value, count)
		for i := range out {
			out[i] = x.items[first+int64(i)*stride]
		}
		return &list{items: out, tuple: x.tuple}
	}
	r.made(4 * int(count))
	if stride == 1 {
		return alike(v, string(chars[first:first+count]))
	}
	out := make([]rune, count)
	for i := range out {
		out[i] = chars[first+int64(i)*stride]
	}
	return alike(v, string(out))
}

// asciiSlice is the common case: a prefix or suffix of text of one byte a letter.
func asciiSlice(s string, low, high, step value) (string, bool) {
	if step != nil || !isASCII(s) {
		return "", false
	}
	if _, ok := low.(int64); !ok && low != nil {
		return "", false
	}
	if _, ok := high.(int64); !ok && high != nil {
		return "", false
	}
	first, count, _ := sliceBounds(int64(len(s)), low, high, nil)
	return s[first : first+count], true
}

// sliceBounds clips a slice to n elements: the first index, how many, and how far
// from one to the next.
func sliceBounds(n int64, low, high, step value) (first, count, stride int64) {
	stride = 1
	if step != nil {
		if stride = sliceIndex(step); stride == 0 {
			fail("ValueError", "slice step cannot be zero")
		}
		stride = min(max(stride, -1<<31), 1<<31) // far beyond any list, and safe to add
	}
	least, most := int64(0), n
	if stride < 0 {
		least, most = -1, n-1
	}
	clip := func(v value, otherwise int64) int64 {
		if v == nil {
			return otherwise
		}
		i := sliceIndex(v)
		if i < 0 {
			i += n
		}
		return min(max(i, least), most)
	}
	if stride > 0 {
		first = clip(low, 0)
		count = (clip(high, n) - first + stride - 1) / stride
	} else {
		first = clip(low, n-1)
		count = (first - clip(high, -1) - stride - 1) / -stride
	}
	if count <= 0 {
		return 0, 0, stride
	}
	return first, count, stride
}

func sliceIndex(v value) int64 {
	switch x := v.(type) {
	case *undefined:
		typeError("slice indices must be integers or None or have an __index__ method")
	case int64, bool, *big.Int:
		return needInt(x)
	}
	typeError("slice indices must be integers or None or have an __index__ method")
	return 0
}
