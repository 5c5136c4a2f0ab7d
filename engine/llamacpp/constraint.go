package llamacpp

import (
	"encoding/json"
	"fmt"
	"strings"

	"baton/engine"
)

// A constraint is one by llama.cpp's names. Of both fields the grammar wins.
type constraint struct {
	Grammar    string          `json:"grammar,omitempty"`
	JSONSchema json.RawMessage `json:"json_schema,omitempty"`
}

func constraintOf(c *engine.Constraint) constraint {
	switch {
	case c == nil:
		return constraint{}
	case c.JSONObject:
		return constraint{JSONSchema: engine.AnyObject}
	case c.Choice != nil:
		return constraint{Grammar: alternatives(c.Choice)}
	}
	return constraint{Grammar: c.Grammar, JSONSchema: c.JSONSchema}
}

// alternatives is a grammar of exactly these texts. Characters are written by
// number, but for letters and digits: nothing in a text can be read as notation.
func alternatives(choice []string) string {
	var b strings.Builder
	b.WriteString("root ::= ")
	for i, text := range choice {
		if i > 0 {
			b.WriteString(" | ")
		}
		b.WriteByte('"')
		for _, r := range text {
			if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
				b.WriteRune(r)
				continue
			}
			fmt.Fprintf(&b, `\U%08X`, r)
		}
		b.WriteByte('"')
	}
	return b.String()
}

// unenforced are the keywords of a schema that the server lets go without a word.
var unenforced = []string{"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies", "$dynamicRef",
	"multipleOf", "uniqueItems", "contains", "minContains", "maxContains",
	"patternProperties", "propertyNames", "minProperties", "maxProperties",
	"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", // of numbers that need not be integers
}
