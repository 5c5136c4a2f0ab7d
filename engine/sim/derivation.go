package sim

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// A derivation draws texts of a grammar in the notations of the engines, as far as
// they have it in common: rules "name ::= alternatives" (EBNF, GBNF) or "name: alternatives"
// (Lark), of literals, classes of characters, /expressions/, names and groups, each
// perhaps with ?, *, + or {m,n}. The first of root, start and the first rule is where
// it begins.
type derivation struct {
	writer
	rules map[string][]string // the tokens of each rule's right side
	depth int
}

var (
	ruleHead     = regexp.MustCompile(`(?m)^\s*[?!]?([A-Za-z_][\w-]*)\s*(?:\.\d+)?\s*(?:::=|:)`)
	grammarToken = regexp.MustCompile(`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|/(?:\\.|[^/\\])+/|\[(?:\\.|[^\]\\])*\]|[A-Za-z_][\w-]*|\{\d+(?:,\d*)?\}|[?*+|()]|\S`)
	lineComment  = regexp.MustCompile(`(?m)^\s*(?:#|//).*$`)
)

// maxDerivation bounds how deep rules may call each other.
const maxDerivation = 40

// deriving draws a text of a grammar; false if it is not understood.
func deriving(source string, d *draw) (string, bool) {
	source = lineComment.ReplaceAllString(source, "")
	g := derivation{rules: map[string][]string{}, writer: writer{d: d}}
	heads := ruleHead.FindAllStringSubmatchIndex(source, -1)
	start := ""
	for i, head := range heads {
		end := len(source)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		name := source[head[2]:head[3]]
		g.rules[name] = grammarToken.FindAllString(source[head[1]:end], -1)
		if i == 0 || name == "root" || name == "start" {
			start = name
		}
	}
	ok := g.rule(start)
	return g.text.String(), ok
}

func (g *derivation) rule(name string) bool {
	body, ok := g.rules[name]
	if !ok || g.depth == maxDerivation {
		return false
	}
	g.depth++
	defer func() { g.depth-- }()
	return g.alternatives(body)
}

// alternatives draws one of those that bars part, and writes it.
func (g *derivation) alternatives(body []string) bool {
	var all [][]string
	depth, from := 0, 0
	for i, token := range body {
		switch token {
		case "(":
			depth++
		case ")":
			depth--
		case "|":
			if depth == 0 {
				all, from = append(all, body[from:i]), i+1
			}
		}
	}
	all = append(all, body[from:])
	if g.depth > maxDerivation/2 { // what is nested so deep comes to an end by what is shortest
		slices.SortStableFunc(all, func(a, b []string) int { return len(a) - len(b) })
		return g.sequence(all[0])
	}
	return g.sequence(all[g.d.below(len(all))])
}

func (g *derivation) sequence(tokens []string) bool {
	for i := 0; i < len(tokens); {
		end := i + 1
		if tokens[i] == "(" {
			for depth := 1; depth > 0; end++ {
				if end == len(tokens) {
					return false
				}
				switch tokens[end] {
				case "(":
					depth++
				case ")":
					depth--
				}
			}
		}
		item, times := tokens[i:end], 1
		if end < len(tokens) && strings.ContainsAny(tokens[end][:1], "?*+{") {
			var ok bool
			if times, ok = g.times(tokens[end]); !ok {
				return false
			}
			end++
		}
		for range times {
			if !g.item(item) {
				return false
			}
		}
		i = end
	}
	return true
}

// times draws how often what stands before a quantifier comes.
func (g *derivation) times(quantifier string) (int, bool) {
	re, err := syntax.Parse("a"+quantifier, syntax.Perl)
	if err != nil {
		return 0, false
	}
	w := writer{d: g.d}
	ok := w.match(re)
	return w.text.Len(), ok
}

func (g *derivation) item(item []string) bool {
	token := item[0]
	if g.steps++; g.steps > maxSteps {
		return false
	}
	inner := ""
	if len(token) > 1 {
		inner = token[1 : len(token)-1]
	}
	switch token[0] {
	case '(':
		return g.alternatives(item[1 : len(item)-1])
	case '"', '\'':
		return len(token) > 1 && g.matching(quoteLiteral(inner))
	case '/':
		return g.matching(inner)
	case '[':
		return g.matching(token)
	}
	return g.rule(token)
}

// quoteLiteral is the expression of a literal, whose escapes are those of an expression.
func quoteLiteral(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			b.WriteString(text[i : i+2])
			i++
			continue
		}
		b.WriteString(regexp.QuoteMeta(text[i : i+1]))
	}
	return b.String()
}
