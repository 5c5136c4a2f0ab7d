package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The values of Discovery.
const (
	DiscoverStatic = "static"
	DiscoverFile   = "file"
	DiscoverDNS    = "dns"
	DiscoverSRV    = "srv"
)

// minDiscoveryInterval keeps name servers alive.
const minDiscoveryInterval = 100 * time.Millisecond

// A DiscoveryName is one element of --discovery-name.
type DiscoveryName struct {
	Kind   string // "" = ask the workers
	Scheme string // http or https
	Host   string
	Port   string // "" = the records say it
}

// String writes the name as --discovery-name takes it.
func (n DiscoveryName) String() string {
	text := n.Host
	if n.Port != "" {
		text = net.JoinHostPort(n.Host, n.Port)
	}
	if n.Scheme != "http" {
		text = n.Scheme + "://" + text
	}
	if n.Kind != "" {
		text = n.Kind + "=" + text
	}
	return text
}

// A FileName is one element of a list of files.
type FileName string

// String writes the name as flags take it.
func (f FileName) String() string { return string(f) }

// Kinds returns the engines that this version speaks with.
func Kinds() []string { return slices.Clone(kinds) }

// discoverySettings declares where workers come from besides --worker.
func (c *Serve) discoverySettings() []*setting {
	source := choice(&c.Discovery, DiscoverStatic, []string{DiscoverStatic, DiscoverFile, DiscoverDNS, DiscoverSRV}, "discovery",
		"where workers come from besides those of --worker, which stay: static = from nowhere else, file = from --discovery-file, dns = the addresses of --discovery-name, srv = its SRV records", nil)
	source.operand = "SOURCE"
	return []*setting{
		source,
		list(&c.DiscoveryFiles, parseDiscoveryFile, "discovery-file", "FILE",
			"workers in the shape of Prometheus' file_sd, JSON or YAML, for --discovery file; read again on change",
			"the path of a file"),
		list(&c.DiscoveryNames, parseDiscoveryName, "discovery-name", "[KIND=][SCHEME://]NAME[:PORT]",
			"with --discovery dns NAME:PORT, each address of NAME is a worker; with --discovery srv the NAME of SRV records, which say the ports; SCHEME is http unless it is given",
			"[KIND=][SCHEME://]NAME[:PORT], where KIND is "+orList(kinds)+" and SCHEME http or https"),
		duration(&c.DiscoveryInterval, 5*time.Second, "discovery-interval",
			"time between two look-ups of --discovery-name, at least "+minDiscoveryInterval.String()),
	}
}

// checkDiscovery returns the *UsageError of settings that do not go together.
func (c *Serve) checkDiscovery() error {
	byName := c.Discovery == DiscoverDNS || c.Discovery == DiscoverSRV
	switch {
	case c.Discovery == DiscoverStatic && len(c.Workers) == 0 && len(c.DiscoveryFiles) == 0 && len(c.DiscoveryNames) == 0:
		return usage("--worker is missing: name at least one worker, for example --worker http://127.0.0.1:8000, or choose a --discovery")
	case len(c.DiscoveryFiles) > 0 && c.Discovery != DiscoverFile:
		return usage("--discovery-file needs --discovery file, not %s", c.Discovery)
	case len(c.DiscoveryNames) > 0 && !byName:
		return usage("--discovery-name needs --discovery dns or --discovery srv, not %s", c.Discovery)
	case c.Discovery == DiscoverFile && len(c.DiscoveryFiles) == 0:
		return usage("--discovery file needs --discovery-file, the list of the workers")
	case byName && len(c.DiscoveryNames) == 0:
		return usage("--discovery %s needs --discovery-name, the name that is looked up", c.Discovery)
	case byName && c.DiscoveryInterval < minDiscoveryInterval:
		return usage("--discovery-interval must be at least %v, not %v", minDiscoveryInterval, c.DiscoveryInterval)
	}
	for _, n := range c.DiscoveryNames {
		if c.Discovery == DiscoverDNS && n.Port == "" {
			return usage("--discovery-name %v has no port; with --discovery dns write NAME:PORT", n)
		}
		if c.Discovery == DiscoverSRV && n.Port != "" {
			return usage("--discovery-name %v has a port; with --discovery srv write NAME only, because the records say the ports", n)
		}
	}
	return nil
}

func parseDiscoveryFile(before []FileName, text string) ([]FileName, error) {
	if text == "" || len(text) > maxNameBytes {
		return nil, errNotAllowed
	}
	if slices.Contains(before, FileName(text)) {
		return nil, fmt.Errorf("%q is given twice", text)
	}
	return append(before, FileName(text)), nil
}

// parseDiscoveryName appends the name that text is, as [KIND=][SCHEME://]NAME[:PORT],
// to before.
func parseDiscoveryName(before []DiscoveryName, text string) ([]DiscoveryName, error) {
	n := DiscoveryName{Scheme: "http", Host: strings.TrimSpace(text)}
	if strings.Contains(text, "@") {
		return nil, fmt.Errorf("the name holds a user name or password, which would end up in logs; write NAME or NAME:PORT only")
	}
	if kind, rest, ok := strings.Cut(n.Host, "="); ok {
		if err := checkKind(kind); err != nil {
			return nil, err
		}
		n.Kind, n.Host = kind, rest
	}
	if scheme, rest, ok := strings.Cut(n.Host, "://"); ok {
		if scheme != "http" && scheme != "https" {
			return nil, fmt.Errorf("%q has the scheme %s; it can be http or https", text, scheme)
		}
		n.Scheme, n.Host = scheme, rest
	}
	if host, port, ok := strings.Cut(n.Host, ":"); ok {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil || number == 0 {
			return nil, fmt.Errorf("%q has no valid port; ports go from 1 to 65535", text)
		}
		n.Host, n.Port = host, strconv.FormatUint(number, 10)
	}
	n.Host = strings.ToLower(n.Host)
	if n.Host == "" || len(n.Host) > maxHostBytes || strings.ContainsFunc(n.Host, notInHost) {
		return nil, fmt.Errorf("%q is no name to look up; write NAME:PORT, or NAME for SRV records", text)
	}
	for _, b := range before {
		if b.Host == n.Host && b.Port == n.Port {
			return nil, fmt.Errorf("%v is given twice", n)
		}
	}
	return append(before, n), nil
}

// maxHostBytes is what the domain name system allows, with a dot at the end.
const maxHostBytes = 254

func notInHost(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '.' && r != '-' && r != '_'
}
