package discovery

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A group is an element of the list that a file holds. Prometheus, configuration,
// file_sd_config: "a list of static configs".
type group struct {
	Targets []string          `json:"targets" yaml:"targets"`
	Labels  map[string]string `json:"labels" yaml:"labels"`
}

// The labels that mean something here. All others are for whoever else reads the file.
const (
	schemeLabel = "__scheme__" // Prometheus' name
	kindLabel   = "__kind__"
)

// parseFile returns the targets that a file names; none if it says clearly that
// there are none. kinds are those that a label may state.
func parseFile(content []byte, kinds []string) ([]Target, error) {
	groups, err := parseGroups(content)
	if err != nil {
		return nil, err
	}
	targets := []Target{}
	stated := make(map[string]string) // kinds by URL
	for i, g := range groups {
		if g.Targets == nil {
			return nil, fmt.Errorf("group %d of the list has no targets; write targets: [] for none", i+1)
		}
		kind := g.Labels[kindLabel]
		if kind != "" && !slices.Contains(kinds, kind) {
			return nil, fmt.Errorf("group %d of the list: the label %s is %q; it can be %s", i+1, kindLabel, kind, strings.Join(kinds, ", "))
		}
		for _, text := range g.Targets {
			url, err := parseTarget(text, g.Labels[schemeLabel])
			if err != nil {
				return nil, fmt.Errorf("group %d of the list: %w", i+1, err)
			}
			before, twice := stated[url]
			if twice && before != kind {
				return nil, fmt.Errorf("group %d of the list: %s is named twice, as %q and as %q", i+1, url, before, kind)
			}
			if twice {
				continue
			}
			if len(targets) == maxTargets {
				return nil, fmt.Errorf("there are more than %d workers in the file", maxTargets)
			}
			stated[url] = kind
			targets = append(targets, Target{URL: url, Kind: kind})
		}
	}
	return targets, nil
}

// parseGroups reads JSON or YAML. A key that it does not know is an error: a
// misspelt one would otherwise look like a file without workers.
func parseGroups(content []byte) ([]group, error) {
	content = bytes.TrimSpace(bytes.TrimPrefix(content, []byte("\ufeff"))) // some editors write one
	if len(content) == 0 {
		return nil, errors.New("the file is empty; write [] for no workers")
	}
	var groups []group
	if content[0] == '[' { // YAML forbids tabs that JSON allows
		dec := json.NewDecoder(bytes.NewReader(content))
		dec.DisallowUnknownFields()
		if dec.Decode(&groups) == nil && dec.Decode(new(json.RawMessage)) == io.EOF {
			return groups, nil
		}
		groups = nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(content))
	dec.KnownFields(true)
	err := dec.Decode(&groups)
	if err == nil {
		if err = dec.Decode(new(yaml.Node)); err == nil {
			return nil, errors.New("the file has more than one YAML document")
		}
	}
	if err != io.EOF {
		return nil, fmt.Errorf("this is no list of workers as Prometheus' file_sd has it: %s", oneLine(strings.TrimPrefix(err.Error(), "yaml: ")))
	}
	if groups == nil {
		return nil, errors.New("the file says nothing; write [] for no workers")
	}
	return groups, nil
}

// maxMessageBytes bounds what a parser says of a file.
const maxMessageBytes = 300

// ourTypes are the words of a parser that mean something to its programmer only.
var ourTypes = strings.NewReplacer(" into []discovery.group", "", " into discovery.group", "", " in type discovery.group", "")

// oneLine is a parser's message, which may be long, as a part of a sentence.
func oneLine(message string) string {
	message = ourTypes.Replace(message)
	message = strings.Join(strings.Fields(message), " ")
	if len(message) > maxMessageBytes {
		return message[:maxMessageBytes] + "…"
	}
	return message
}

// parseTarget returns the URL of a target, which is host:port or the URL itself.
func parseTarget(text, scheme string) (url string, err error) {
	if strings.Contains(text, "@") {
		return "", errors.New("a target holds a user name or password, which would end up in logs; write host:port only")
	}
	address := text
	if own, rest, ok := strings.Cut(text, "://"); ok {
		if scheme != "" && scheme != own {
			return "", fmt.Errorf("the target %q has another scheme than the label %s, %q", text, schemeLabel, scheme)
		}
		scheme, address = own, strings.ReplaceAll(strings.TrimSuffix(rest, "/"), "%25", "%")
	}
	switch scheme {
	case "":
		scheme = "http"
	case "http", "https":
	default:
		return "", fmt.Errorf("the target %q has the scheme %q; it can be http or https", text, scheme)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("the target %q is not host:port (an IPv6 address in brackets)", text)
	}
	return targetURL(scheme, host, port)
}

// maxHostBytes is what the domain name system allows.
const maxHostBytes = 253

// targetURL makes the URL of a worker in the one form in which all sources write it.
func targetURL(scheme, host, port string) (string, error) {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", fmt.Errorf("the target %q has no valid port; ports go from 1 to 65535", net.JoinHostPort(host, port))
	}
	if ip, err := netip.ParseAddr(host); err == nil && !strings.ContainsFunc(ip.Zone(), notInHost) {
		host = ip.Unmap().String()
	} else if host == "" || len(host) > maxHostBytes || strings.ContainsFunc(host, notInHost) {
		return "", fmt.Errorf("the target %q is not host:port (an IPv6 address in brackets)", net.JoinHostPort(host, port))
	}
	address := net.JoinHostPort(strings.ToLower(host), strconv.FormatUint(n, 10))
	return scheme + "://" + strings.ReplaceAll(address, "%", "%25"), nil
}

func notInHost(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
}
