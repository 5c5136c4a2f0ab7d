package server

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// headSize returns the length of the head that b begins with, its blank line
// included; 0 = there is no whole one.
func headSize(b []byte) int {
	if i := bytes.Index(b, []byte("\r\n\r\n")); i >= 0 {
		return i + 4
	}
	return 0
}

// mayBePlain reports whether b, with more behind it, can be the head of a plain
// request. It tells apart other protocols, and lines without a carriage return.
func mayBePlain(b []byte) bool {
	begins := func(method string) bool { return strings.HasPrefix(method, string(b[:min(len(b), len(method))])) }
	return (begins("POST /") || begins("GET /")) && bytes.Count(b, []byte("\n")) == bytes.Count(b, []byte("\r\n"))
}

// plainRequest reads the head of a request if it is as most clients of the API send
// one; nil = there is something else about it, which net/http is to judge: another
// method or version, a query, a body of unknown length, a line that is not quite
// what RFC 9112 has. It refuses nothing, so it need not know what is allowed.
func plainRequest(head string) *http.Request {
	line, rest, _ := strings.Cut(head, "\r\n")
	method, line, _ := strings.Cut(line, " ")
	path, version, _ := strings.Cut(line, " ")
	if version != "HTTP/1.1" || method != http.MethodPost && method != http.MethodGet || !isPlainPath(path) {
		return nil
	}
	header := plainHeader(rest)
	host, length := header["Host"], header["Content-Length"]
	if len(host) != 1 || host[0] == "" || !consistsOf(host[0], inHost) || len(length) > 1 || (len(length) == 1) != (method == http.MethodPost) {
		return nil
	}
	delete(header, "Host")
	r := &http.Request{
		Method: method, URL: &url.URL{Path: path}, RequestURI: path, Host: host[0], Header: header,
		Proto: version, ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
	}
	for _, name := range [...]string{"Transfer-Encoding", "Trailer", "Expect", "Upgrade"} {
		if header[name] != nil {
			return nil
		}
	}
	if method == http.MethodPost {
		n, err := strconv.ParseUint(length[0], 10, 31)
		if err != nil || n > maxPlainBodyBytes {
			return nil
		}
		r.ContentLength = int64(n)
	}
	switch connection := header["Connection"]; {
	case len(connection) == 0:
	case len(connection) > 1:
		return nil
	case strings.EqualFold(connection[0], "close"):
		r.Close = true
	case !strings.EqualFold(connection[0], "keep-alive"):
		return nil
	}
	return r
}

// plainHeader reads header lines up to the blank one; nil = one of them is unusual.
func plainHeader(lines string) http.Header {
	header := make(http.Header, 8)
	values := make([]string, strings.Count(lines, "\n")) // one memory for all lists of one
	for {
		line, rest, _ := strings.Cut(lines, "\r\n")
		if line == "" {
			return header
		}
		name, value, ok := strings.Cut(line, ":")
		value = strings.Trim(value, " \t")
		if !ok || name == "" || !consistsOf(name, inName) || !consistsOf(value, inValue) {
			return nil
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if header[name] != nil {
			header[name] = append(header[name], value)
		} else {
			values[0] = value
			header[name], values = values[:1:1], values[1:]
		}
		lines = rest
	}
}

// isPlainPath reports whether s is a path that means what it says: no query, no
// escapes, no dots, no double slash.
func isPlainPath(s string) bool {
	return strings.HasPrefix(s, "/") && !strings.Contains(s, "//") && consistsOf(s, inPath)
}

// What the parts of a head may consist of: bits of plainBytes.
const (
	inPath = 1 << iota
	inHost
	inName
	inValue
)

var plainBytes = func() (of [256]uint8) {
	for c := range of {
		switch c := byte(c); {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			of[c] = inPath | inHost | inName | inValue
		case c == '/':
			of[c] = inPath | inValue
		case c == '.', c == ':', c == '[', c == ']':
			of[c] = inHost | inValue
		case ' ' <= c && c <= '~', c == '\t':
			of[c] = inValue
		}
	}
	return of
}()

func consistsOf(s string, part uint8) bool {
	for i := range len(s) {
		if plainBytes[s[i]]&part == 0 {
			return false
		}
	}
	return true
}
