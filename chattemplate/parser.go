package chattemplate

import (
	"fmt"
	"slices"
)

// The parser turns tokens straight into closures: there is no syntax tree
// between, since a template is compiled once and only ever run.
type (
	// A statement writes to the output. Its signal ends the loop around it.
	statement func(r *render) signal
	block     []statement

	// A node is an expression.
	node struct {
		eval   func(r *render) value
		height int   // operators on the longest way down
		call   *call // set where the node is a call, for {% call %}
	}
)

type signal uint8

const (
	goOn signal = iota
	breakLoop
	continueLoop
)

type parser struct {
	tokens []token
	pos    int

	slots map[string]int // the number of each name that the template uses
	names []string

	depth     int            // blocks around the current one
	exprDepth int            // brackets around the current expression
	loops     int            // loops of this function around the current statement
	reads     map[string]int // how often each special name of macros was read

	// pending are names of filters and tests that do not exist. Jinja refuses
	// them at once, but for those in branches that may never be taken.
	pending []unknownName
	blocks  map[string]bool

	scope   *symbols // of the current statement
	scopes  []*symbols
	targets []int // the names of the target that was parsed last
}

type unknownName struct {
	line    int
	message string
}

func newParser(source string) *parser {
	return &parser{
		tokens: lex(source),
		slots:  map[string]int{},
		reads:  map[string]int{},
		blocks: map[string]bool{},
	}
}

// template parses everything.
func (p *parser) template() (block, *symbols) {
	root, leave := p.openScope(nil)
	defer leave()
	b := p.body()
	p.settle(0)
	p.resolveSymbols()
	return b, root
}

// body parses statements up to one of the tags in ends, whose name it leaves as
// the current token. Without ends it parses up to the end of the template.
func (p *parser) body(ends ...string) block {
	if p.depth++; p.depth > maxBlockDepth {
		overLimit("blocks inside blocks", maxBlockDepth)
	}
	defer func() { p.depth-- }()
	var out block
	for {
		t := p.peek()
		switch t.kind {
		case tokenEOF:
			if len(ends) > 0 {
				p.fail("unexpected end of template, looking for %v", ends)
			}
			return out
		case tokenData:
			p.pos++
			out = append(out, writeText(t.text))
		case tokenVarBegin:
			p.pos++
			out = append(out, write(p.tuple(true)))
			if p.peek().kind != tokenVarEnd {
				p.fail("expected end of print statement, got %q", p.peek().text)
			}
			p.pos++
		case tokenBlockBegin:
			p.pos++
			if p.peek().kind == tokenName && slices.Contains(ends, p.peek().text) {
				return out
			}
			out = append(out, p.statement())
			p.blockEnd()
		default:
			p.fail("unexpected %q", t.text)
		}
	}
}

// bodyTo parses "%} ... {% end", without the end of that last tag.
func (p *parser) bodyTo(end string) block {
	p.blockBegins()
	b := p.body(end)
	p.pos++
	return b
}

func writeText(text string) statement {
	return func(r *render) signal {
		r.write(text)
		return goOn
	}
}

func write(n node) statement {
	return func(r *render) signal {
		switch v := n.eval(r).(type) {
		case string:
			r.write(v)
		default:
			r.write(r.str(v))
		}
		return goOn
	}
}

func (b block) run(r *render) signal {
	r.steps -= len(b)
	if r.steps < 0 {
		r.step(0)
	}
	for _, s := range b {
		if sig := s(r); sig != goOn {
			return sig
		}
	}
	return goOn
}

func (p *parser) peek() *token { return &p.tokens[p.pos] }

// after is the token behind the current one.
func (p *parser) after() *token { return &p.tokens[min(p.pos+1, len(p.tokens)-1)] }

func (t *token) isOp(op string) bool     { return t.kind == tokenOp && t.text == op }
func (t *token) isName(name string) bool { return t.kind == tokenName && t.text == name }

func (p *parser) skipOp(op string) bool {
	if p.peek().isOp(op) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.peek().isName(name) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expectOp(op string) {
	if !p.skipOp(op) {
		p.fail("expected %q, got %q", op, p.peek().text)
	}
}

func (p *parser) expectName() string {
	t := p.peek()
	if t.kind != tokenName {
		p.fail("expected a name, got %q", t.text)
	}
	p.pos++
	return t.text
}

// blockBegins reads the end of an opening tag, before which Python's colon is
// allowed.
func (p *parser) blockBegins() {
	p.skipOp(":")
	p.blockEnd()
}

func (p *parser) blockEnd() {
	if p.peek().kind != tokenBlockEnd {
		p.fail("expected end of statement block, got %q", p.peek().text)
	}
	p.pos++
}

func (p *parser) fail(format string, args ...any) {
	panic(failure{&SyntaxError{Line: p.peek().line, Message: fmt.Sprintf(format, args...)}})
}

// slot numbers a name.
func (p *parser) slot(name string) int {
	i, ok := p.slots[name]
	if !ok {
		i = len(p.names)
		p.slots[name] = i
		p.names = append(p.names, name)
	}
	return i
}

// settle refuses the unknown filters and tests that were read since mark.
func (p *parser) settle(mark int) {
	if len(p.pending) > mark {
		u := p.pending[mark]
		panic(failure{&SyntaxError{Line: u.line, Message: u.message}})
	}
}

// enter guards the parser's recursion into brackets.
func (p *parser) enter() {
	if p.exprDepth++; p.exprDepth > maxExprDepth {
		overLimit("brackets inside brackets", maxExprDepth)
	}
}

func (p *parser) leave() { p.exprDepth-- }

// built makes a node that stands on others. Chains such as a + b + c grow in
// height with every operator, and rendering recurses as deep as they are high.
func built(eval func(r *render) value, on ...node) node {
	n := node{eval: eval}
	for _, x := range on {
		n.height = max(n.height, x.height)
	}
	if n.height++; n.height > maxExprHeight {
		overLimit("operators on top of each other", maxExprHeight)
	}
	return n
}
