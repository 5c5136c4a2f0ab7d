package config

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"unicode"
)

// Named is one element of a setting [NAME=]VALUE.
type Named struct {
	Name  string // "" = every one that is not named
	Value string
}

// String writes the element as the flag takes it.
func (n Named) String() string {
	if n.Name == "" {
		return n.Value
	}
	return n.Name + "=" + n.Value
}

// parseModelPath takes [NAME=]PATH. A path that holds a "=" is written with a
// beginning by which a path is known, such as "./".
func parseModelPath(before []Named, text string) ([]Named, error) {
	n := Named{Value: text}
	if name, path, ok := strings.Cut(text, "="); ok && !looksLikePath(text) {
		n = Named{name, path}
	}
	return addNamed(before, n, text, "NAME=PATH")
}

func looksLikePath(s string) bool {
	return strings.HasPrefix(s, ".") || strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") ||
		len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
}

// parseServedName takes [WORKERNAME=]NAME.
func parseServedName(before []Named, text string) ([]Named, error) {
	n := Named{Value: text}
	if own, public, ok := strings.Cut(text, "="); ok {
		n = Named{own, public}
	}
	return addNamed(before, n, text, "WORKERNAME=NAME")
}

// parseParser takes [NAME=]PARSER.
func parseParser(before []Named, text string) ([]Named, error) {
	n := Named{Value: text}
	if name, parser, ok := cutLast(text, "="); ok {
		n = Named{name, parser}
	}
	return addNamed(before, n, text, "NAME=PARSER")
}

// cutLast is strings.Cut at the last separator: names of models may hold one.
func cutLast(s, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(s, separator); at >= 0 {
		return s[:at], s[at+len(separator):], true
	}
	return s, "", false
}

// addNamed refuses what is incomplete or contradicts an element before it. text
// is the element as it was written, form how it should be.
func addNamed(before []Named, n Named, text, form string) ([]Named, error) {
	name, value, _ := strings.Cut(form, "=")
	switch {
	case len(text) > maxNameBytes:
		return nil, fmt.Errorf("the value is longer than %d bytes", maxNameBytes)
	case n.Value == "" || strings.HasPrefix(text, "="):
		return nil, fmt.Errorf("%q is incomplete; write [%s=]%s", text, name, value)
	case strings.ContainsFunc(text, unicode.IsControl):
		return nil, fmt.Errorf("%q holds a control character", text)
	}
	for _, b := range before {
		if b.Name != n.Name {
			continue
		}
		if n.Name == "" {
			return nil, fmt.Errorf("%q and %q are both given without a name before them; write %s", b.Value, n.Value, form)
		}
		return nil, fmt.Errorf("%q is given twice, as %q and as %q", n.Name, b.Value, n.Value)
	}
	return append(before, n), nil
}

// maxNameBytes bounds names and paths, which become metric labels and log lines.
const maxNameBytes = 4096

// parseHost takes an address to listen on; an IPv6 address may stand in brackets.
func parseHost(text string) (string, error) {
	host := text
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	}
	if host == "" || strings.ContainsAny(host, "/[] \t") || strings.Contains(host, ":") && net.ParseIP(upTo(host, "%")) == nil {
		return "", errNotAllowed
	}
	return host, nil
}

func joinHostPort(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}

func parseMetricsPrefix(text string) (string, error) {
	for i, r := range text {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return "", errNotAllowed
		}
	}
	if text == "" || len(text) > 100 {
		return "", errNotAllowed
	}
	return text, nil
}

func parseFileName(text string) (string, error) {
	if text == "" {
		return "", errNotAllowed
	}
	return text, nil
}
