package sim

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"baton/engine"
)

// constrain makes the answer one that the constraint allows: a text that follows
// from the sequence before it, then the end id. As in the engines, the grammar is
// at its beginning when a generation begins, whatever the prompt ends with: a
// constrained answer that is continued shows it.
//
// Of a structural tag, and of what else is not understood, the text only shows which
// sort was asked for.
func (g *generation) constrain(c *engine.Constraint) {
	if c == nil || g.config.VocabSize != len(g.words.pieces) {
		return
	}
	d := draw(mix(g.chain + 2))
	text, understood := "", true
	switch {
	case c.JSONSchema != nil || c.JSONObject:
		source := c.JSONSchema
		if c.JSONObject {
			source = engine.AnyObject // as some clients say it
		}
		var schema any
		if json.Unmarshal(source, &schema) != nil {
			schema = true
		}
		text = string(encodeJSON(instance{root: schema, d: &d}.of(schema, 0)))
	case c.Choice != nil:
		text = c.Choice[d.below(len(c.Choice))]
	case c.Regex != "":
		text, understood = matching(c.Regex, &d)
	case c.Grammar != "":
		text, understood = deriving(c.Grammar, &d)
	default:
		understood = false
	}
	if !understood {
		text = string(c.Parameter()) + " " + strconv.Itoa(d.below(1000))
	}
	g.script = nil // a grammar leaves no room for anything before it
	for _, b := range []byte(text) {
		g.script = append(g.script, g.words.ids[string(b)])
	}
	if len(g.config.EOS) > 0 {
		g.script = append(g.script, g.config.EOS[0])
	}
}

// An instance is a value by a schema.
type instance struct {
	root any
	d    *draw
	odd  []string // characters that its texts may hold besides letters
}

// maxInstanceDepth is where what need not be there is left out.
const maxInstanceDepth = 8

func (in instance) of(schema any, depth int) any {
	s, ok := schema.(map[string]any)
	if !ok || depth > 2*maxInstanceDepth {
		return nil
	}
	if ref, ok := s["$ref"].(string); ok {
		return in.of(resolve(in.root, ref), depth+1)
	}
	if value, ok := s["const"]; ok {
		return value
	}
	for _, key := range []string{"enum", "anyOf", "oneOf", "allOf"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			one := list[in.d.below(len(list))]
			if key == "enum" {
				return one
			}
			return in.of(one, depth+1)
		}
	}
	kind, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok && len(list) > 0 {
		kind, _ = list[in.d.below(len(list))].(string)
	}
	if _, ok := s["properties"]; ok && kind == "" {
		kind = "object"
	}
	switch kind {
	case "object":
		return in.object(s, depth)
	case "array":
		least, _ := s["minItems"].(float64)
		list := []any{}
		for range max(int(least), 1+in.d.below(2)) {
			if most, ok := s["maxItems"].(float64); ok && len(list) >= int(most) || depth > maxInstanceDepth && len(list) >= int(least) {
				break
			}
			list = append(list, in.of(s["items"], depth+1))
		}
		return list
	case "integer", "number":
		return in.number(s)
	case "boolean":
		return in.d.one(2)
	case "null":
		return nil
	}
	return in.word()
}

// number draws a whole number within the bounds, near zero where they allow it.
func (in instance) number(s map[string]any) int {
	least, bounded := s["minimum"].(float64)
	most, ok := s["maximum"].(float64)
	if !ok {
		most = math.MaxInt64
	}
	if !bounded || least < 0 && most >= 0 {
		least = 0
	}
	span := 1000
	if most >= least {
		span = int(min(most-least, 999)) + 1
	}
	return int(least) + in.d.below(span)
}

func (in instance) object(s map[string]any, depth int) any {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names) // a map's order is random, the model must not be
	object := map[string]any{}
	if s["properties"] == nil && s["additionalProperties"] != false {
		object["n"], object["s"] = in.d.below(1000), in.word()
	}
	for _, name := range names {
		if depth <= maxInstanceDepth || slices.Contains(required, any(name)) {
			object[name] = in.of(properties[name], depth+1)
		}
	}
	return object
}

// word draws a text of letters, with one character now and then that JSON escapes or
// that is no ASCII, if that is wanted.
func (in instance) word() string {
	text := make([]byte, 3+in.d.below(6))
	for i := range text {
		text[i] = byte('a' + in.d.below(26))
	}
	if len(in.odd) > 0 && in.d.one(2) {
		at := in.d.below(len(text))
		return string(text[:at]) + in.odd[in.d.below(len(in.odd))] + string(text[at:])
	}
	return string(text)
}

// resolve finds what a reference such as #/$defs/A points to; nil = nothing.
func resolve(root any, ref string) any {
	for i, name := range strings.Split(ref, "/") {
		if i == 0 {
			continue // "#"
		}
		object, _ := root.(map[string]any)
		root = object[name]
	}
	return root
}
