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
	if s, ok := key.(string); ok {
		return d.findText(s)
	}
	key = hashed(key)
	if len(d.keys) <= smallDict {
		for i, k := range d.keys {
			if hashed(k) == key {
				return i
			}
		}
		return -1
	}
	d.makeIndex()
	if i, ok := d.index[key]; ok {
		return i
	}
	return -1
}

// findText is find for a text, which it does not have to make a value of.
func (d *dict) findText(key string) int {
	if len(d.keys) <= smallDict {
		for i, k := range d.keys {
			if k, ok := k.(string); ok && k == key {
				return i
			}
		}
		return -1
	}
	d.makeIndex()
	if i, ok := d.index[key]; ok {
		return i
	}
	return -1
}

func (d *dict) makeIndex() {
	if d.index != nil {
		return
	}
	d.index = make(map[value]int, 2*len(d.keys))
	for i, k := range d.keys {
		d.index[hashed(k)] = i
	}
}

// Keys that Go could mistake for others.
type (
	bigKey   string
	tupleKey string
)

// hashed maps equal keys to equal Go values, and refuses what has no hash.
func hashed(key value) value {
	h, ok := hash(key, 0)
	if !ok {
		typeError("unhashable type: '%s'", typeName(key))
	}
	return h
}

func isHashable(key value) bool {
	_, ok := hash(key, 0)
	return ok
}

func hash(key value, depth int) (value, bool) {
	switch x := key.(type) {
	case string, int64, nil:
		return key, true
	case markup:
		return string(x), true
	case bool:
		n, _ := intOf(x)
		return n, true
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<62 {
			return int64(x), true
		}
		return x, true
	case *big.Int:
		return bigKey(x.Text(62)), true
	case *list:
		if !x.tuple {
			return nil, false
		}
		if x.key == nil {
			x.key = x.hash(deeper(depth))
		}
		return x.key, x.key != noKey
	case *dict:
		return nil, false
	case *view:
		return key, x.kind == "dict_values"
	case *undefined:
		return (*undefined)(nil), true // every undefined equals every other
	}
	return key, true
}

// noKey is remembered of tuples that hold something without a hash.
const noKey = tupleKey("")

// hash writes a tuple as a text. It is remembered: a tuple of tuples may hold the
// same one over and over.
func (l *list) hash(depth int) value {
	var b strings.Builder
	b.WriteByte('(')
	for _, e := range l.items {
		h, ok := hash(e, depth)
		if !ok {
			return noKey
		}
		switch h := h.(type) {
		case string:
			b.WriteString(strconv.Itoa(len(h)) + "s" + h)
		case int64:
			b.WriteString(strconv.FormatInt(h, 10) + "i")
		case float64:
			b.WriteString(strconv.FormatFloat(h, 'g', -1, 64) + "f")
		case bigKey:
			b.WriteString(string(h) + "b")
		case tupleKey:
			b.WriteString(string(h))
		case nil:
			b.WriteString("n")
		default:
			return l // an identity: such a tuple equals only itself
		}
		if b.Len() > maxKeyBytes {
			overLimit("bytes of a tuple that is a key", maxKeyBytes)
		}
	}
	return tupleKey(b.String())
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
		d.index[hashed(key)] = len(d.keys)
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
