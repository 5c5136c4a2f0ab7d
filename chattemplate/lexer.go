package chattemplate

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenEOF tokenKind = iota
	tokenData
	tokenBlockBegin // {%
	tokenBlockEnd   // %}
	tokenVarBegin   // {{
	tokenVarEnd     // }}
	tokenName
	tokenString
	tokenNumber
	tokenOp
)

type token struct {
	kind  tokenKind
	text  string // of a string, its value
	value value  // of a number
	line  int
}

// lex cuts a template into tokens.
//
// It follows Jinja's lexer as transformers sets it up: trim_blocks (the newline
// after a block is part of the block), lstrip_blocks (so is the indentation
// before it), and no newline at the end of the file. Most of a template's
// correctness is decided here, in who owns which white space.
func lex(source string) []token {
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	source = strings.TrimSuffix(source, "\n")
	lx := &lexer{src: source, line: 1, lineStart: true}
	for lx.pos < len(lx.src) {
		lx.next()
	}
	return append(lx.tokens, token{kind: tokenEOF, line: lx.line})
}

type lexer struct {
	src    string
	pos    int
	tokens []token

	line    int // the line of src[counted]
	counted int
	// lineStart says that what was read so far ended with a newline, so that
	// white space which follows is an indentation.
	lineStart bool
}

// next reads text up to the next tag, and the tag.
func (lx *lexer) next() {
	tag := lx.findTag()
	if tag < 0 {
		lx.data(lx.src[lx.pos:])
		lx.pos = len(lx.src)
		return
	}
	text := lx.src[lx.pos:tag]
	kind := lx.src[tag+1]
	sign, inside := lx.sign(tag + 2)
	lx.data(lx.stripped(text, sign, kind == '{'))
	switch kind {
	case '#':
		lx.pos = inside
		lx.comment()
	case '%':
		if body, ok := lx.rawBegin(inside); ok {
			lx.pos = body
			lx.raw()
			return
		}
		lx.emit(token{kind: tokenBlockBegin, text: "{%"})
		lx.pos = inside
		lx.inside("%}", tokenBlockEnd)
	case '{':
		lx.emit(token{kind: tokenVarBegin, text: "{{"})
		lx.pos = inside
		lx.inside("}}", tokenVarEnd)
	}
}

// findTag returns where the next {{, {% or {# begins, or -1.
func (lx *lexer) findTag() int {
	for i := lx.pos; ; i++ {
		j := strings.IndexByte(lx.src[i:], '{')
		if j < 0 || i+j+1 >= len(lx.src) {
			return -1
		}
		i += j
		switch lx.src[i+1] {
		case '{', '%', '#':
			return i
		}
	}
}

// sign reads the - or + that may follow an opening delimiter.
func (lx *lexer) sign(at int) (byte, int) {
	if at < len(lx.src) && (lx.src[at] == '-' || lx.src[at] == '+') {
		return lx.src[at], at + 1
	}
	return 0, at
}

// stripped removes from text what the tag behind it claims.
func (lx *lexer) stripped(text string, sign byte, variable bool) string {
	if sign == '-' {
		return strings.TrimRightFunc(text, isSpace)
	}
	if sign == '+' || variable {
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || lx.lineStart) && strings.TrimLeftFunc(text[line:], isSpace) == "" {
		return text[:line]
	}
	return text
}

// end reads a closing delimiter with its white space, if it is there. Blocks and
// comments own the newline after them; a variable does not.
func (lx *lexer) end(delimiter string) bool {
	rest := lx.src[lx.pos:]
	owns := delimiter != "}}"
	switch {
	case strings.HasPrefix(rest, "-") && strings.HasPrefix(rest[1:], delimiter):
		lx.pos += 1 + len(delimiter)
		lx.skipSpace()
	case owns && strings.HasPrefix(rest, "+") && strings.HasPrefix(rest[1:], delimiter):
		lx.pos += 1 + len(delimiter)
	case strings.HasPrefix(rest, delimiter):
		lx.pos += len(delimiter)
		if owns && lx.pos < len(lx.src) && lx.src[lx.pos] == '\n' {
			lx.pos++
		}
	default:
		return false
	}
	lx.lineStart = lx.src[lx.pos-1] == '\n'
	return true
}

func (lx *lexer) comment() {
	i := strings.Index(lx.src[lx.pos:], "#}")
	if i < 0 {
		lx.unclosed("comment tag")
		return
	}
	if i > 0 && (lx.src[lx.pos+i-1] == '-' || lx.src[lx.pos+i-1] == '+') {
		i--
	}
	lx.pos += i
	lx.end("#}")
}

// rawBegin recognises "raw %}" at the position and returns where its text begins.
func (lx *lexer) rawBegin(at int) (int, bool) {
	rest := strings.TrimLeftFunc(lx.src[at:], isSpace)
	rest, ok := strings.CutPrefix(rest, "raw")
	if !ok {
		return 0, false
	}
	rest = strings.TrimLeftFunc(rest, isSpace)
	if after, ok := strings.CutPrefix(rest, "-%}"); ok {
		return len(lx.src) - len(strings.TrimLeftFunc(after, isSpace)), true
	}
	after, ok := strings.CutPrefix(rest, "%}")
	return len(lx.src) - len(after), ok
}

// raw reads text that is not looked at, up to {% endraw %}.
func (lx *lexer) raw() {
	start := lx.pos
	lx.lineStart = lx.src[start-1] == '\n'
	for i := start; ; i += 2 {
		j := strings.Index(lx.src[i:], "{%")
		if j < 0 {
			lx.unclosed("raw directive")
			return
		}
		i += j
		sign, inside := lx.sign(i + 2)
		rest := strings.TrimLeftFunc(lx.src[inside:], isSpace)
		rest, ok := strings.CutPrefix(rest, "endraw")
		if !ok {
			continue
		}
		lx.pos = len(lx.src) - len(strings.TrimLeftFunc(rest, isSpace))
		lineStart := lx.lineStart
		if !lx.end("%}") {
			continue
		}
		after := lx.lineStart
		lx.lineStart = lineStart
		lx.data(lx.stripped(lx.src[start:i], sign, false))
		lx.lineStart = after
		return
	}
}

// unclosed complains of a missing end. Where the template ends right behind the
// beginning, Jinja does not notice.
func (lx *lexer) unclosed(what string) {
	if lx.pos < len(lx.src) {
		lx.fail("missing end of %s", what)
	}
}

// inside reads the tokens of a tag up to its closing delimiter.
func (lx *lexer) inside(delimiter string, end tokenKind) {
	var open []byte // brackets that wait to be closed: a "}}" in a dict is no end
	for {
		lx.skipSpace()
		if lx.pos >= len(lx.src) {
			return // the parser finds the end of the template
		}
		if len(open) == 0 && lx.end(delimiter) {
			lx.emit(token{kind: end, text: delimiter})
			return
		}
		c := lx.src[lx.pos]
		switch {
		case c == '"' || c == '\'':
			lx.string(c)
		case c >= '0' && c <= '9':
			lx.number()
		default:
			if name := lx.name(); name != "" {
				lx.emit(token{kind: tokenName, text: name})
				lx.pos += len(name)
				continue
			}
			op := lx.operator()
			open = lx.balance(open, op)
			lx.emit(token{kind: tokenOp, text: op})
			lx.pos += len(op)
		}
	}
}

func (lx *lexer) balance(open []byte, op string) []byte {
	switch op {
	case "(":
		return append(open, ')')
	case "[":
		return append(open, ']')
	case "{":
		return append(open, '}')
	case ")", "]", "}":
		if len(open) == 0 || open[len(open)-1] != op[0] {
			lx.fail("unexpected '%s'", op)
		}
		return open[:len(open)-1]
	}
	return open
}

func (lx *lexer) operator() string {
	rest := lx.src[lx.pos:]
	if len(rest) > 1 {
		switch rest[:2] {
		case "//", "**", "==", "!=", ">=", "<=":
			return rest[:2]
		}
	}
	if strings.IndexByte("+-/*%~[](){}<>=.:|,;", rest[0]) < 0 {
		r, _ := utf8.DecodeRuneInString(rest)
		lx.fail("unexpected char %q", r)
	}
	return rest[:1]
}

// name returns the identifier at the position, or "".
func (lx *lexer) name() string {
	rest := lx.src[lx.pos:]
	for i, r := range rest {
		if isNameStart(r) || i > 0 && isNamePart(r) {
			continue
		}
		return rest[:i]
	}
	return rest
}

func (lx *lexer) skipSpace() {
	for lx.pos < len(lx.src) {
		r, width := utf8.DecodeRuneInString(lx.src[lx.pos:])
		if !isSpace(r) {
			return
		}
		lx.pos += width
	}
}

func (lx *lexer) data(text string) {
	if text != "" {
		lx.emit(token{kind: tokenData, text: text})
	}
}

func (lx *lexer) emit(t token) {
	t.line = lx.lineAt(lx.pos)
	lx.tokens = append(lx.tokens, t)
}

// lineAt counts on from where it last was, so that a template is counted once.
func (lx *lexer) lineAt(pos int) int {
	if pos > lx.counted {
		lx.line += strings.Count(lx.src[lx.counted:pos], "\n")
		lx.counted = pos
	}
	return lx.line
}

func (lx *lexer) fail(format string, args ...any) {
	panic(failure{&SyntaxError{Line: lx.lineAt(lx.pos), Message: fmt.Sprintf(format, args...)}})
}
