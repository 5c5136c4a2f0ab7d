package parser

import "baton/jsonbytes"

// jsonText follows JSON text byte by byte, as far as is needed to know where it
// ends. It counts brackets and does not judge: a model's JSON is passed on as it is.
type jsonText struct {
	depth           int
	quoted, escaped bool
}

// scan takes a byte, and reports whether the outermost bracket was closed by it, or
// whether it cannot be JSON, because a marker or the end of a code block begins outside of
// strings.
func (j *jsonText) scan(c byte) (closed, foreign bool) {
	switch {
	case j.escaped:
		j.escaped = false
	case j.quoted:
		j.escaped = c == '\\'
		j.quoted = c != '"'
	case c == '"':
		j.quoted = true
	case c == '{' || c == '[':
		j.depth++
	case c == '}' || c == ']':
		j.depth--
		return j.depth <= 0, false
	case c == '<' || c == '`':
		return false, true
	}
	return false, false
}

// appendJSON appends a byte of JSON text. Control characters inside strings, which
// models write as they are, become the escapes that JSON asks for.
func (j *jsonText) appendJSON(dst []byte, c byte) []byte {
	if j.quoted && c < 0x20 {
		n := len(dst)
		dst = jsonbytes.AppendEscaped(dst, c)
		if j.escaped { // behind a backslash, which is given out already
			dst = append(dst[:n], dst[n+1:]...)
		}
		return dst
	}
	return append(dst, c)
}

// appendQuoted appends text as a JSON string.
func appendQuoted(dst []byte, text []byte) []byte {
	dst = appendAllEscaped(append(dst, '"'), text)
	return append(dst, '"')
}

func appendAllEscaped(dst []byte, text []byte) []byte {
	for _, c := range text {
		dst = jsonbytes.AppendEscaped(dst, c)
	}
	return dst
}

// flow passes a byte of the open call's arguments on. It closes the call at the
// arguments' end, and reports false if the byte belongs to what follows.
func (j *jsonText) flow(p *Parser, c byte) (closed, taken bool) {
	quoted := *j
	closed, foreign := j.scan(c)
	if foreign {
		p.close()
		p.held = append(p.held, c)
		return true, false
	}
	p.scratch = quoted.appendJSON(p.scratch[:0], c)
	p.argue(p.scratch)
	if closed {
		p.close()
	}
	return closed, true
}

// expect compares what is read with markers.
type expect struct {
	markers []string
	got     []byte
}

// next takes a byte, and returns the marker that is complete, or -1, and whether
// one still can be.
func (e *expect) next(c byte) (at int, possible bool) {
	e.got = append(e.got, c)
	for i, m := range e.markers {
		if len(e.got) <= len(m) && m[:len(e.got)] == string(e.got) {
			if len(e.got) == len(m) {
				e.got = e.got[:0]
				return i, true
			}
			possible = true
		}
	}
	return -1, possible
}

// end takes a byte where nothing but one of the markers may stand.
func (e *expect) end(c byte) verdict {
	at, possible := e.next(c)
	switch {
	case at >= 0:
		return done
	case !possible:
		return fail
	}
	return more
}

func endsWith(text []byte, end string) bool {
	return len(text) >= len(end) && string(text[len(text)-len(end):]) == end
}
