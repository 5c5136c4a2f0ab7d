package parser

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"baton/jsonbytes"
)

// pythonCalls reads Python calls with named arguments, in a list or a line each.
type pythonCalls struct {
	ends   []string // markers behind them
	strict bool     // there is no marker: the name must be known
	lines  bool     // without brackets around them

	state  pythonState
	word   []byte
	behind []byte // white space behind word
	name   string
	some   bool // the call has arguments
	value  pythonValue
	end    expect
}

type pythonState uint8

const (
	wantList pythonState = iota
	wantName
	inPythonName
	wantArgument
	inArgument
	inValue
	behindValue
	behindCall
	behindList
)

// finish gives out the value that is being read, as far as it was.
func (y *pythonCalls) finish(p *Parser) {
	if !p.open {
		return
	}
	p.scratch = p.scratch[:0]
	switch y.state {
	case inValue:
		p.scratch = y.value.appendCut(p.scratch)
	case inArgument:
		p.scratch = appendAllEscaped(append(p.scratch, `, "`...), y.word)
	}
	p.argue(p.scratch)
}

func (y *pythonCalls) next(p *Parser, c byte) verdict {
	switch y.state {
	case inValue:
		var v verdict
		p.scratch, v = y.value.next(p.scratch[:0], c)
		p.argue(p.scratch)
		switch v {
		case done:
			y.state = behindValue
			return more
		case more:
			return more
		}
		if !y.value.complete() {
			p.argue(y.value.appendCut(p.scratch[:0]))
			return y.abandon(p, c)
		}
		y.state = behindValue
		return y.next(p, c)
	case behindList:
		if len(y.end.got) == 0 && space(c) {
			return more
		}
		return y.end.end(c)
	}
	if wordByte(c) {
		return y.letter(p, c)
	}
	if space(c) {
		if y.behind = append(y.behind, c); len(y.behind) > maxBlank {
			return y.abandon(p, c)
		}
		return more
	}
	return y.mark(p, c)
}

// letter takes a byte of a name.
func (y *pythonCalls) letter(p *Parser, c byte) verdict {
	switch y.state {
	case wantName:
		p.after = false
		y.word, y.state = y.word[:0], inPythonName
	case behindCall:
		if !y.lines {
			return fail
		}
		p.after = false
		y.word, y.state = y.word[:0], inPythonName
	case wantArgument:
		y.word, y.state = y.word[:0], inArgument
	case inPythonName, inArgument:
		if len(y.behind) > 0 || len(y.word) >= MaxName {
			return y.abandon(p, c)
		}
	default:
		return y.abandon(p, c)
	}
	y.word, y.behind = append(y.word, c), y.behind[:0]
	return more
}

// mark takes a byte that separates names.
func (y *pythonCalls) mark(p *Parser, c byte) verdict {
	switch {
	case y.state == wantList && c == '[':
		y.state = wantName
		return more
	case y.state == inPythonName && c == '(':
		y.name, y.some, y.state = string(y.word), false, wantArgument
		return more
	case y.state == inArgument && c == '=':
		return y.argument(p)
	case y.state == behindValue && c == ',':
		y.state = wantArgument
		return more
	case (y.state == behindValue || y.state == wantArgument) && c == ')':
		return y.closeCall(p)
	case y.state == behindCall && c == ',':
		y.state = wantName
		return more
	case (y.state == behindCall || y.state == wantName && p.after) && c == ']' && !y.lines:
		if len(y.ends) == 0 {
			return done
		}
		p.drop()
		y.awaitEnd()
		return more
	case y.state == behindCall && y.lines:
		y.awaitEnd()
		return y.next(p, c)
	}
	return y.abandon(p, c)
}

func (y *pythonCalls) awaitEnd() {
	y.end, y.state = expect{markers: y.ends, got: y.end.got[:0]}, behindList
}

// argument begins the value of an argument, and the call with its first.
func (y *pythonCalls) argument(p *Parser) verdict {
	separator := ", "
	if !y.some {
		if !p.begin(y.name, "", y.strict) {
			return fail
		}
		separator = "{"
	}
	p.scratch = append(appendQuoted(append(p.scratch[:0], separator...), y.word), ": "...)
	p.argue(p.scratch)
	y.some, y.state = true, inValue
	y.value = pythonValue{stack: y.value.stack[:0], word: y.value.word[:0]}
	return more
}

func (y *pythonCalls) closeCall(p *Parser) verdict {
	if !y.some {
		if !p.begin(y.name, "", y.strict) {
			return fail
		}
		p.argue([]byte("{"))
	}
	p.argue([]byte{'}'})
	p.close()
	y.state = behindCall
	return more
}

// abandon ends a call that is no Python at c. What it has of arguments is whole if
// the last one is; the beginning of a name is text.
func (y *pythonCalls) abandon(p *Parser, c byte) verdict {
	if !p.open {
		return fail
	}
	if y.state != inValue {
		p.argue([]byte{'}'})
	}
	p.close()
	if y.state == inArgument {
		p.held = append(append(append(p.held, y.word...), y.behind...), c)
	}
	return fail
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-' || c >= 0x80
}

const hexDigits = "0123456789abcdef"

// pythonValue translates a Python literal to JSON, byte by byte.
type pythonValue struct {
	stack []byte // the containers that are open: [ ( { with a key to come, : with a value to come
	word  []byte // a number, True, None
	ready bool   // a value was read, a separator is to come
	comma bool   // a comma was read, which JSON has only between values

	quote  byte
	escape int  // digits that are to come, of an escape sequence; -1: its letter
	code   rune // of the escape sequence
	json   bool // the escape sequence is JSON's too, and was passed on
	wide   bool // it has eight digits
}

// complete reports whether all that was read is a value.
func (v *pythonValue) complete() bool { return v.ready && len(v.stack) == 0 }

// next appends what c means. It says fail if c does not belong to the value.
func (v *pythonValue) next(dst []byte, c byte) ([]byte, verdict) {
	if v.quote != 0 {
		return v.inString(dst, c)
	}
	if len(v.word) > 0 {
		if (wordByte(c) || c == '+') && len(v.word) < MaxName {
			v.word = append(v.word, c)
			return dst, more
		}
		dst = v.appendWord(dst)
	}
	if len(v.stack) == 0 && v.ready {
		return dst, fail
	}
	if space(c) {
		return dst, more
	}
	if v.ready {
		return v.separate(dst, c)
	}
	switch {
	case c == '"' || c == '\'':
		dst = append(v.separator(dst), '"')
		v.quote = c
	case c == '[' || c == '(' || c == '{':
		if len(v.stack) >= maxDepth || v.atKey() {
			return dst, fail
		}
		open := c
		if c == '(' {
			open = '['
		}
		dst = append(v.separator(dst), open)
		v.stack = append(v.stack, c)
	case wordByte(c) || c == '+':
		dst = v.separator(dst)
		v.word = append(v.word, c)
	default:
		return v.separate(dst, c)
	}
	return dst, more
}

func (v *pythonValue) atKey() bool {
	return len(v.stack) > 0 && v.stack[len(v.stack)-1] == '{'
}

func (v *pythonValue) separator(dst []byte) []byte {
	if v.comma {
		dst = append(dst, ", "...)
	}
	v.comma = false
	return dst
}

// separate takes what stands between values.
func (v *pythonValue) separate(dst []byte, c byte) ([]byte, verdict) {
	top := len(v.stack) - 1
	if top < 0 {
		return dst, fail
	}
	in := v.stack[top]
	switch {
	case c == ',' && v.ready && in != '{':
		if in == ':' {
			v.stack[top] = '{'
		}
		v.ready, v.comma = false, true
		return dst, more
	case c == ':' && v.ready && in == '{':
		v.stack[top], v.ready = ':', false
		return append(dst, ": "...), more
	case c == ']' && in == '[' || c == ')' && in == '(':
		dst = append(dst, ']')
	case c == '}' && (in == ':' && v.ready || in == '{' && !v.ready):
		dst = append(dst, '}')
	default:
		return dst, fail
	}
	v.stack = v.stack[:top]
	v.ready, v.comma = true, false
	if top == 0 {
		return dst, done
	}
	return dst, more
}

func (v *pythonValue) inString(dst []byte, c byte) ([]byte, verdict) {
	switch {
	case v.escape == -1:
		return v.openEscape(dst, c), more
	case v.escape > 0:
		digit := strings.IndexByte(hexDigits, c|0x20)
		if digit < 0 || c < '0' {
			return dst, fail
		}
		v.escape--
		v.code = v.code<<4 | rune(digit)
		if v.json {
			dst = append(dst, c)
		} else if v.escape == 0 {
			if !utf8.ValidRune(v.code) {
				v.code = utf8.RuneError
			}
			for _, b := range utf8.AppendRune(nil, v.code) {
				dst = jsonbytes.AppendEscaped(dst, b)
			}
		}
	case c == '\\':
		v.escape = -1
	case c == v.quote:
		v.quote, v.ready = 0, true
		dst = append(dst, '"')
		if len(v.stack) == 0 {
			return dst, done
		}
	default:
		dst = jsonbytes.AppendEscaped(dst, c)
	}
	return dst, more
}

func (v *pythonValue) openEscape(dst []byte, c byte) []byte {
	v.escape, v.code, v.json, v.wide = 0, 0, false, c == 'U'
	switch c {
	case 'n', 't', 'r', 'b', 'f', '\\', '"':
		return append(dst, '\\', c)
	case '\'', '/':
		return append(dst, c)
	case '\n':
		return dst
	case 'u':
		v.escape, v.json = 4, true
		return append(dst, '\\', 'u')
	case 'x':
		v.escape = 2
	case 'U':
		v.escape = 8
	default: // Python keeps the backslash of what is no escape
		return jsonbytes.AppendEscaped(append(dst, '\\', '\\'), c)
	}
	return dst
}

// appendWord appends what a word means. One that is no literal is a string.
func (v *pythonValue) appendWord(dst []byte) []byte {
	word := string(v.word)
	v.word, v.ready = v.word[:0], true
	switch word {
	case "True":
		word = "true"
	case "False":
		word = "false"
	case "None":
		word = "null"
	case "true", "false", "null":
	default:
		number, isNumber := jsonNumber(word)
		if !isNumber {
			return appendQuoted(dst, []byte(word))
		}
		word = number
	}
	if v.atKey() {
		return appendQuoted(dst, []byte(word))
	}
	return append(dst, word...)
}

// appendCut appends what was read and not given out, of a value that is cut off.
func (v *pythonValue) appendCut(dst []byte) []byte {
	switch {
	case len(v.word) > 0:
		return v.appendWord(dst)
	case v.escape == -1:
		return append(dst, '\\', '\\')
	case v.escape > 0 && !v.json:
		letter, digits := byte('x'), 2
		if v.wide {
			letter, digits = 'U', 8
		}
		dst = append(dst, '\\', '\\', letter)
		for digits -= v.escape; digits > 0; digits-- {
			dst = append(dst, hexDigits[v.code>>(4*(digits-1))&15])
		}
	}
	return dst
}

// jsonNumber returns the JSON form of a number as Python or a person writes it.
func jsonNumber(word string) (string, bool) {
	if word == "" || !strings.ContainsAny(word, "0123456789") || strings.ContainsAny(word, "pP") {
		return "", false
	}
	if json.Valid([]byte(word)) {
		return word, word[0] == '-' || word[0] >= '0' && word[0] <= '9'
	}
	if n, err := strconv.ParseInt(word, 0, 64); err == nil {
		return strconv.FormatInt(n, 10), true
	}
	if f, err := strconv.ParseFloat(word, 64); err == nil {
		if number, err := json.Marshal(f); err == nil {
			return string(number), true
		}
	}
	return "", false
}

// pythonToJSON translates a whole literal, and reports whether it is one.
func pythonToJSON(text []byte) ([]byte, bool) {
	var v pythonValue
	var dst []byte
	for i, c := range text {
		var verdict verdict
		dst, verdict = v.next(dst, c)
		if verdict == fail || verdict == done && i < len(text)-1 {
			return nil, false
		}
	}
	if len(v.word) > 0 {
		return nil, false
	}
	return dst, v.complete() && json.Valid(dst)
}
