package preprocess

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"baton/engine"
	"baton/openai"
)

// A merged schema is made of several that were whole by themselves. A reference is
// made from the root, which is another one then, so their definitions become those of
// the whole, and the references are changed to where they stand:
//
//   - #/$defs/NAME and #/definitions/NAME stay names, to which a number is added if
//     another schema defines something else under one of them;
//   - any other path, such as that of a schema that refers to itself (#), leads into a
//     copy of the schema among the definitions.
type merged struct {
	schema      schema // what was found out of all
	definitions map[string]definition
	schemas     int // that were added
}

// A definition is a part of a schema as it was, and as it stands in the merged one.
type definition struct{ raw, moved []byte }

// The members of a schema that hold what it refers to.
const (
	defsKey        = "$defs"
	definitionsKey = "definitions"
)

// add checks a schema, takes its definitions over, and returns what is left of it.
func (m *merged) add(v *value) ([]byte, *openai.Error) {
	m.schema.collect, m.schema.references = true, nil
	if err := m.schema.check(v, 0); err != nil {
		return nil, err
	}
	if m.definitions == nil {
		m.definitions = make(map[string]definition)
	}
	m.schemas++
	p := mergedPart{suffixes: make(map[string]string)}
	for _, key := range []string{defsKey, definitionsKey} {
		if list, ok := v.member(key); ok && list.isObject() {
			p.suffixes[key] = ""
		}
	}
	p.referred = slices.ContainsFunc(m.schema.references, func(r value) bool { return p.listOf(&r) == nil })
	for _, key := range []string{defsKey, definitionsKey} {
		if list, ok := v.member(key); ok && list.isObject() {
			p.suffixes[key] = m.reserve(&list, !p.referred)
		}
	}
	p.whole = "schema-" + strconv.Itoa(m.schemas)
	for _, taken := m.definitions[p.whole]; taken; _, taken = m.definitions[p.whole] {
		p.whole += "-"
	}
	for i := range m.schema.references {
		p.move(&m.schema.references[i])
	}
	for key, suffix := range p.suffixes {
		list, _ := v.member(key)
		for name, d := range list.members() {
			m.definitions[name+suffix] = definition{raw: d.raw(), moved: p.moved(d)}
		}
	}
	left := p.without(v)
	if p.referred {
		m.definitions[p.whole] = definition{raw: v.raw(), moved: left}
	}
	return left, nil
}

// reserve takes names for a list of definitions, and returns what is added to each of
// them so that none is that of something else. Names of the same may be shared.
func (m *merged) reserve(list *value, share bool) string {
	suffix := ""
	for i := m.schemas; !m.allows(list, suffix, share); i++ {
		suffix = "-" + strconv.Itoa(i)
	}
	for name, d := range list.members() {
		m.definitions[name+suffix] = definition{raw: d.raw()}
	}
	return suffix
}

func (m *merged) allows(list *value, suffix string, share bool) bool {
	for name, d := range list.members() {
		other, taken := m.definitions[name+suffix]
		if taken && !(share && bytes.Equal(other.raw, d.raw())) {
			return false
		}
	}
	return true
}

// constraint ends a schema whose closing brace was left out.
func (m *merged) constraint(open []byte) (*engine.Constraint, *openai.Error) {
	if len(m.definitions) > 0 {
		moved := make(map[string]json.RawMessage, len(m.definitions))
		for name, d := range m.definitions {
			moved[name] = d.moved
		}
		encoded, _ := json.Marshal(moved) // JSON in a map always encodes
		open = append(append(open, `,"`+defsKey+`":`...), encoded...)
	}
	whole := append(open, '}')
	if len(whole) > maxGrammarBytes {
		return nil, openai.InvalidRequest("tools", "Invalid value for 'tools': where calls are enforced their schemas may have at most %d bytes together.", maxGrammarBytes)
	}
	return &engine.Constraint{JSONSchema: whole, Keywords: m.schema.keywords}, nil
}

// A mergedPart is a schema on its way into a merged one.
type mergedPart struct {
	suffixes map[string]string // of the names in its lists of definitions, by the lists' keys
	whole    string            // the definition that it is itself
	referred bool              // there is a reference to that

	references []movedReference // in the order in which they stand
}

type movedReference struct {
	value
	to []byte // a JSON string
}

// listOf returns the elements of a reference's path if that leads into a list of
// definitions: nothing, the list, the name, and perhaps what follows.
func (p *mergedPart) listOf(reference *value) []string {
	path := strings.SplitN(unquote(reference.raw()), "/", 4)
	if len(path) < 3 {
		return nil
	}
	if _, ok := p.suffixes[path[1]]; !ok {
		return nil
	}
	return path
}

// move finds out where a reference leads in the merged schema.
func (p *mergedPart) move(reference *value) {
	path := p.listOf(reference)
	if path == nil {
		path = []string{"#", defsKey, p.whole + unquote(reference.raw())[1:]}
	} else {
		path[1], path[2] = defsKey, path[2]+p.suffixes[path[1]]
	}
	p.references = append(p.references, movedReference{*reference, appendQuoted(nil, strings.Join(path, "/"))})
}

// moved returns a part of the schema with its references changed.
func (p *mergedPart) moved(part *value) []byte {
	e := editor{data: part.data, done: part.start}
	first, _ := slices.BinarySearchFunc(p.references, part.start, func(r movedReference, start int) int { return r.start - start })
	for i := first; i < len(p.references) && p.references[i].end <= part.end; i++ {
		e.replace(&p.references[i].value, p.references[i].to)
	}
	return bytes.Clone(e.finish(part))
}

// without returns the schema without what belongs to the root alone: definitions, and
// from where its references would be made.
func (p *mergedPart) without(v *value) []byte {
	out := []byte{'{'}
	for key, m := range v.members() {
		switch key {
		case "$id", "$schema":
			continue
		case defsKey, definitionsKey:
			if m.isObject() {
				continue
			}
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(appendQuoted(out, key), ':')
		out = append(out, p.moved(m)...)
	}
	return append(out, '}')
}
