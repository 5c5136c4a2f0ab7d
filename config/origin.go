package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// An Origin is where a browser's page comes from, as the Origin header says it:
// scheme://host, with the port if it is not the scheme's own. AnyOrigin stands
// for every one.
type Origin string

// AnyOrigin is the Origin that stands for all.
const AnyOrigin Origin = "*"

// String writes the origin as --cors-origin takes it.
func (o Origin) String() string { return string(o) }

// parseOrigin appends an origin in the form that browsers send. One that is there
// already is left out.
func parseOrigin(before []Origin, text string) ([]Origin, error) {
	o := AnyOrigin
	if text = strings.TrimSpace(text); text != string(AnyOrigin) {
		var err error
		if o, err = canonicalOrigin(text); err != nil {
			return nil, err
		}
	}
	if slices.Contains(before, o) {
		return before, nil
	}
	return append(before, o), nil
}

func canonicalOrigin(text string) (Origin, error) {
	u, err := url.Parse(text)
	switch {
	case len(text) > maxNameBytes || err != nil || u.Scheme == "" || u.Hostname() == "" || u.User != nil || strings.Contains(u.Host, "*"):
		return "", errNotAllowed
	case u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("%q goes on after the host; an origin is scheme://host or scheme://host:port only", text)
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return "", errNotAllowed // browsers send other letters as xn--…
		}
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" && port != map[string]string{"http": "80", "https": "443"}[u.Scheme] {
		host = net.JoinHostPort(strings.Trim(host, "[]"), port)
	}
	return Origin(u.Scheme + "://" + host), nil
}
