package chattemplate

import (
	"slices"
	"strconv"
	"strings"
)

func sequenceFilters() map[string]*method {
	return map[string]*method{
		"length": plain(func(r *render, v value) value {
			n, ok := r.length(v)
			if !ok {
				return typeError("object of type '%s' has no len()", typeName(v))
			}
			return int64(n)
		}),
		"list": plain(func(r *render, v value) value {
			items := r.collect(v)
			r.list(len(items))
			return &list{items: slices.Clone(items)}
		}),
		"first":   plain(first),
		"last":    plain(last),
		"reverse": plain(reversed),
		"items": plain(func(r *render, v value) value {
			return lazily(v, func(r *render) *stream {
				if _, ok := v.(*undefined); ok {
					return emptyStream()
				}
				d, ok := v.(*dict)
				if !ok {
					typeError("Can only get item pairs from a mapping.")
				}
				return streamOf("generator", d.pairs(r))
			})
		}),
		"join":       filter(takes("d attribute", "", nil), joined),
		"sort":       filter(takes("reverse case_sensitive attribute", false, false, nil), sorted),
		"dictsort":   filter(takes("case_sensitive by reverse", false, "key", false), dictSorted),
		"unique":     filter(takes("case_sensitive attribute", false, nil), unique),
		"groupby":    filter(takes("attribute default case_sensitive", nil, false), grouped),
		"min":        filter(takes("case_sensitive attribute", false, nil), extreme("<")),
		"max":        filter(takes("case_sensitive attribute", false, nil), extreme(">")),
		"batch":      filter(takes("linecount fill_with", nil), batched),
		"slice":      filter(takes("slices fill_with", nil), sliced),
		"map":        {raw: mapFilter},
		"select":     {raw: selectFilter(false, true)},
		"reject":     {raw: selectFilter(false, false)},
		"selectattr": {raw: selectFilter(true, true)},
		"rejectattr": {raw: selectFilter(true, false)},
		"attr": filter(takes("name"), func(r *render, v value, args []value) value {
			name := needText(args[0])
			if a, ok := r.ownAttribute(v, name); ok {
				return a
			}
			return missing(v, name)
		}),
	}
}

func first(r *render, v value) value {
	if item, ok := r.iterate(v)(); ok {
		return item
	}
	return &undefined{hint: "No first item, sequence was empty."}
}

// last needs a length, as Python's reversed() does: generators have none.
func last(r *render, v value) value {
	if !isReversible(v) {
		return typeError("'%s' object is not reversible", typeName(v))
	}
	if n, _ := r.length(v); n > 0 {
		if s, ok := v.(*span); ok {
			return s.at(int64(n - 1))
		}
		items := r.collect(v)
		if _, ok := v.(markup); ok {
			return safeTexts(items[len(items)-1])
		}
		return items[len(items)-1]
	}
	return &undefined{hint: "No last item, sequence was empty."}
}

func isReversible(v value) bool {
	switch v.(type) {
	case string, markup, *list, *dict, *view, *span, *undefined:
		return true
	}
	return false
}

func reversed(r *render, v value) value {
	if s, ok := textOf(v); ok {
		r.made(5 * len(s))
		runes := []rune(s)
		slices.Reverse(runes)
		return alike(v, string(runes))
	}
	items := slices.Clone(r.collect(v))
	r.list(len(items))
	slices.Reverse(items)
	switch v.(type) {
	case *list:
		return streamOf("list_reverseiterator", items)
	case *dict, *view:
		return streamOf("dict_reversekeyiterator", items)
	case *span, *undefined:
		return streamOf("reversed", items)
	}
	return &list{items: items}
}

func joined(r *render, v value, args []value) value {
	get := getter(args[1])
	separator := r.str(args[0])
	var b strings.Builder
	next := r.iterate(v)
	for i := 0; ; i++ {
		e, ok := next()
		if !ok {
			break
		}
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(r.str(get(r, e)))
		r.step(1)
		if b.Len() > maxTextBytes {
			break
		}
	}
	r.text(b.Len())
	return b.String()
}

// sorted takes several attributes, with commas between.
func sorted(r *render, v value, args []value) value {
	paths := []value{args[2]}
	if s, ok := textOf(args[2]); ok {
		paths = paths[:0]
		for path := range strings.SplitSeq(s, ",") {
			if len(paths) == maxPathParts {
				overLimit("attributes to sort by", maxPathParts)
			}
			paths = append(paths, path)
		}
	}
	keys := make([]func(value) value, len(paths))
	for i, path := range paths {
		keys[i] = r.sortKey(args[1], path, nil)
	}
	return &list{items: r.sortBy(r.collect(v), r.truth(args[0]), func(e value) value {
		key := &list{items: make([]value, len(keys))}
		for i, k := range keys {
			key.items[i] = k(e)
		}
		return key
	})}
}

func dictSorted(r *render, v value, args []value) value {
	at, ok := map[string]int{"key": 0, "value": 1}[r.str(args[1])]
	if !ok {
		fail("FilterArgumentError", `You can only sort by either "key" or "value"`)
	}
	d, ok := v.(*dict)
	if !ok {
		if u, ok := v.(*undefined); ok {
			return u.fail()
		}
		return fail("AttributeError", "'%s' object has no attribute 'items'", typeName(v))
	}
	key := r.sortKey(args[0], nil, nil)
	return &list{items: r.sortBy(d.pairs(r), r.truth(args[2]), func(pair value) value {
		return key(pair.(*list).items[at])
	})}
}

func unique(r *render, v value, args []value) value {
	return lazily(v, func(r *render) *stream {
		key := r.sortKey(args[0], args[1], nil)
		seen := map[value]bool{}
		return filtered(r, v, func(e value) bool {
			k := hashed(key(e))
			if seen[k] {
				return false
			}
			r.list(1)
			seen[k] = true
			return true
		})
	})
}

// grouped sorts by an attribute and puts what has the same into one group.
func grouped(r *render, v value, args []value) value {
	key := r.sortKey(args[2], args[0], args[1])
	get := getterOr(args[0], args[1])
	out := &list{}
	var group *list
	var last value
	for _, e := range r.sortBy(r.collect(v), false, key) {
		if k := key(e); group == nil || !r.equal(last, k, 0) {
			group, last = &list{}, k
			out.items = append(out.items, &list{items: []value{get(r, e), group}, tuple: true, group: true})
		}
		group.items = append(group.items, e)
	}
	return out
}

// extreme is min or max: the first of those that none is before.
func extreme(before string) func(r *render, v value, args []value) value {
	return func(r *render, v value, args []value) value {
		key := r.sortKey(args[0], args[1], nil)
		next := r.iterate(v)
		best, ok := next()
		if !ok {
			return &undefined{hint: "No aggregated item, sequence was empty."}
		}
		bestKey := key(best)
		for e, ok := next(); ok; e, ok = next() {
			if k := key(e); r.ordered(before, k, bestKey, 0) {
				best, bestKey = e, k
			}
		}
		return best
	}
}

// batched deals a list out to rows of the same length.
func batched(r *render, v value, args []value) value {
	return lazily(v, func(r *render) *stream {
		size, _ := intOf(args[0])
		var rows []value
		row := &list{}
		for _, e := range r.collect(v) {
			if int64(len(row.items)) == size {
				rows = append(rows, row)
				row = &list{}
			}
			r.list(1)
			row.items = append(row.items, e)
		}
		if len(row.items) > 0 {
			if more := size - int64(len(row.items)); args[1] != nil && more > 0 {
				r.list(product(1, more))
				row.items = append(row.items, slices.Repeat(args[1:2], int(more))...)
			}
			rows = append(rows, row)
		}
		return streamOf("generator", rows)
	})
}

// sliced deals a list out to so many columns.
func sliced(r *render, v value, args []value) value {
	return lazily(v, func(r *render) *stream {
		items := r.collect(v)
		columns := needInt(args[0])
		if columns == 0 {
			fail("ZeroDivisionError", "integer division or modulo by zero")
		}
		if columns < 0 {
			return emptyStream()
		}
		r.list(product(1, columns))
		each, extra := int64(len(items))/columns, int64(len(items))%columns
		rows := make([]value, 0, columns)
		at := int64(0)
		for i := range columns {
			n := each
			if i < extra {
				n++
			}
			row := slices.Clone(items[at : at+n])
			if args[1] != nil && i >= extra {
				row = append(row, args[1])
			}
			rows = append(rows, &list{items: row})
			at += n
		}
		return streamOf("generator", rows)
	})
}

// mapFilter applies a filter to each element, or takes an attribute of each.
// None and everything else that is false has no elements.
func mapFilter(r *render, v value, args arguments) value {
	return lazily(v, func(r *render) *stream {
		if !r.truth(v) {
			return emptyStream()
		}
		if len(args.positional) == 0 && args.keywords != nil && args.keywords.find("attribute") >= 0 {
			bound := (&signature{names: []string{"attribute", "default"}, defaults: []value{nil}}).bind("map", args)
			get := getterOr(bound[0], bound[1])
			return mapped(r, v, func(e value) value { return get(r, e) })
		}
		if len(args.positional) == 0 {
			fail("FilterArgumentError", "map requires a filter argument")
		}
		f := named(filters, "filter", args.positional[0])
		rest := arguments{args.positional[1:], args.keywords}
		return mapped(r, v, func(e value) value { return f.invoke(r, e, rest) })
	})
}

// selectFilter is select, reject, selectattr and rejectattr.
func selectFilter(byAttribute, want bool) func(r *render, v value, args arguments) value {
	return func(r *render, v value, args arguments) value {
		return lazily(v, func(r *render) *stream {
			if !r.truth(v) {
				return emptyStream()
			}
			get := func(_ *render, e value) value { return e }
			rest := args.positional
			if byAttribute {
				if len(rest) == 0 {
					fail("FilterArgumentError", "Missing parameter for attribute name")
				}
				get = getter(rest[0])
				rest = rest[1:]
			}
			if len(rest) == 0 {
				return filtered(r, v, func(e value) bool { return r.truth(get(r, e)) == want })
			}
			var t *method
			return filtered(r, v, func(e value) bool {
				subject := get(r, e)
				if t == nil {
					t = named(tests, "test", rest[0])
				}
				return r.truth(t.invoke(r, subject, arguments{rest[1:], args.keywords})) == want
			})
		})
	}
}

// named finds the filter or test that an argument names.
func named(table map[string]*method, what string, name value) *method {
	if s, ok := textOf(name); ok && table[s] != nil {
		return table[s]
	}
	text, _ := textOf(name)
	fail("TemplateRuntimeError", "No %s named '%s'.", what, text)
	return nil
}

// attributeParts splits "a.b.0" into keys and indexes.
func attributeParts(path value) []value {
	s, ok := textOf(path)
	if !ok {
		return []value{path}
	}
	var parts []value
	for part := range strings.SplitSeq(s, ".") {
		if len(parts) == maxPathParts {
			overLimit("names with dots between", maxPathParts)
		}
		if n, err := strconv.ParseUint(part, 10, 31); err == nil {
			parts = append(parts, int64(n))
		} else {
			parts = append(parts, part)
		}
	}
	return parts
}
