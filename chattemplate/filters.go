package chattemplate

// filters are Jinja's, but for those whose result is random or means nothing in
// a prompt (random, lipsum, pprint, urlize, wordwrap): these fail when reached.
//
// The parameters and their defaults are those of the Python functions, since
// templates may give them by name.
var filters map[string]*method

func init() { // not a literal: map and select look filters and tests up
	filters = map[string]*method{}
	for _, table := range []map[string]*method{textFilters(), sequenceFilters(), numberFilters()} {
		for name, f := range table {
			f.name = name
			filters[name] = f
		}
	}
	for alias, name := range map[string]string{"count": "length", "d": "default", "e": "escape"} {
		filters[alias] = filters[name]
	}
	for _, name := range []string{"random", "pprint", "urlize", "wordwrap"} {
		filters[name] = &method{name: name, raw: func(*render, value, arguments) value {
			return fail("NotImplementedError", "the filter %s is not supported in chat templates", name)
		}}
	}
}

// filter makes one that takes arguments.
func filter(takes signature, apply func(r *render, v value, args []value) value) *method {
	return &method{signature: takes, apply: apply}
}

// plain makes one that takes none.
func plain(apply func(r *render, v value) value) *method {
	return &method{apply: func(r *render, v value, _ []value) value { return apply(r, v) }}
}

// getter resolves the attribute argument of a filter: "a.b.0" or an index.
func getter(path value) func(r *render, v value) value {
	return getterOr(path, nil)
}

// getterOr gives the fallback for what is undefined, at every step.
func getterOr(path, fallback value) func(r *render, v value) value {
	if path == nil {
		return func(_ *render, v value) value { return v }
	}
	parts := attributeParts(path)
	return func(r *render, v value) value {
		for _, part := range parts {
			r.step(1)
			v = r.item(v, part)
			if _, ok := v.(*undefined); ok && fallback != nil {
				v = fallback
			}
		}
		return v
	}
}

// folded is how filters compare unless told to heed the case.
func folded(v value) value {
	if s, ok := textOf(v); ok {
		return toLower(s)
	}
	return v
}

// sortKey is getter, then folded.
func (r *render) sortKey(caseSensitive, path, fallback value) func(v value) value {
	get := getterOr(path, fallback)
	if r.truth(caseSensitive) {
		return func(v value) value { return get(r, v) }
	}
	return func(v value) value { return folded(get(r, v)) }
}
