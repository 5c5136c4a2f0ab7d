package chattemplate

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// dict is Python's dict: it keeps the order in which keys came, and takes 1, 1.0
// and True for the same key.
type dict struct {
	keys []value
	vals []value
	// index finds keys in large dicts. It is built at the first search, since
	// most dicts of a request are only printed.
	index map[value]int
}

// Up to this size looking at every key is faster than hashing.
const smallDict = 8

func (d *dict) find(key value) int {
	if s, ok := key.(string); ok && len(d.keys) <= smallDict {
		for i, k := range d.keys {
			if k, ok := k.(string); ok && k == s {
				return i
			}
		}
		return -1
	}
	key = hashed(key, 0)
	if len(d.keys) <= smallDict {
		for i, k := range d.keys {
			if hashed(k, 0) == key {
				return i
			}
		}
		return -1
	}
	if d.index == nil {
		d.index = make(map[value]int, 2*len(d.keys))
		for i, k := range d.keys {
			d.index[hashed(k, 0)] = i
		}
	}
	if i, ok := d.index[key]; ok {
		return i
	}
	return -1
}

// Keys that Go could mistake for others.
type (
	bigKey   string
	tupleKey string
)

// hashed maps equal keys to equal Go values, and refuses what has no hash.
func hashed(key value, depth int) value {
	switch x := key.(type) {
	case string, int64, nil:
		return key
	case markup:
		return string(x)
	case bool:
		if x {
			return int64(1)
		}
		return int64(0)
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<62 {
			return int64(x)
		}
		return x
	case *big.Int:
		return bigKey(x.String())
	case *list:
		if x.tuple {
			var b strings.Builder
			for _, e := range x.items {
				switch h := hashed(e, deeper(depth)).(type) {
				case string:
					b.WriteString("s" + strconv.Quote(h))
				case int64:
					b.WriteString("i" + strconv.FormatInt(h, 10))
				case float64:
					b.WriteString("f" + strconv.FormatFloat(h, 'g', -1, 64))
				case bigKey:
					b.WriteString("b" + string(h))
				case tupleKey:
					b.WriteString("(" + string(h) + ")")
				case nil:
					b.WriteString("n")
				default:
					return key // an identity: such tuples equal only themselves
				}
				b.WriteByte(',')
			}
			return tupleKey(b.String())
		}
	case *undefined:
		return (*undefined)(nil) // every undefined equals every other
	case *span, *view, *stream, *namespace, *callable, *loop, *cycle:
		return key
	}
	return typeError("unhashable type: '%s'", typeName(key))
}

func isHashable(key value) bool {
	switch x := key.(type) {
	case *dict:
		return false
	case *list:
		if !x.tuple {
			return false
		}
		for _, e := range x.items {
			if !isHashable(e) {
				return false
			}
		}
	case *view:
		return x.kind == "dict_values"
	}
	return true
}

func (d *dict) get(key value) (value, bool) {
	if i := d.find(key); i >= 0 {
		return d.vals[i], true
	}
	return nil, false
}

// set keeps the place, and the spelling, of a key that is there already.
func (d *dict) set(key, v value) {
	if i := d.find(key); i >= 0 {
		d.vals[i] = v
		return
	}
	if d.index != nil {
		d.index[hashed(key, 0)] = len(d.keys)
	}
	d.keys, d.vals = append(d.keys, key), append(d.vals, v)
}

func (d *dict) remove(key value) {
	i := d.find(key)
	if i < 0 {
		return
	}
	d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
	d.vals = append(d.vals[:i:i], d.vals[i+1:]...)
	d.index = nil
}

func (d *dict) copy(r *render) *dict {
	r.list(2 * len(d.keys))
	return &dict{keys: append([]value(nil), d.keys...), vals: append([]value(nil), d.vals...)}
}

// pairs are the dict's items, as tuples.
func (d *dict) pairs(r *render) []value {
	r.list(4 * len(d.keys))
	out := make([]value, len(d.keys))
	tuples := make([]list, len(d.keys))
	items := make([]value, 2*len(d.keys))
	for i, k := range d.keys {
		pair := items[2*i : 2*i+2 : 2*i+2]
		pair[0], pair[1] = k, d.vals[i]
		tuples[i] = list{items: pair, tuple: true}
		out[i] = &tuples[i]
	}
	return out
}
