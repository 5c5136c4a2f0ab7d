package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// A Worker is one element of --worker.
type Worker struct {
	ID   string // host:port, with -N where that is not unique
	URL  string // scheme://host:port, nothing else
	Kind string // "" = ask the worker
}

// String writes the worker as --worker takes it.
func (w Worker) String() string {
	if w.Kind == "" {
		return w.URL
	}
	return w.Kind + "=" + w.URL
}

// The engines that this version speaks with.
const (
	KindVLLM     = "vllm"
	KindSGLang   = "sglang"
	KindTRTLLM   = "trtllm"
	KindLlamaCPP = "llamacpp"
)

var kinds = []string{KindVLLM, KindSGLang, KindTRTLLM, KindLlamaCPP}

// parseWorker appends the worker that text names, as [KIND=]URL, to before.
//
// Its errors never show a part of the URL that may be a secret.
func parseWorker(before []Worker, text string) ([]Worker, error) {
	w := Worker{}
	address := strings.TrimSpace(text)
	if strings.Contains(address, "@") {
		return nil, fmt.Errorf("the address holds a user name or password, which would end up in logs; write http://host:port only")
	}
	if kind, rest, ok := strings.Cut(address, "="); ok && !strings.ContainsAny(kind, ":/?") {
		if err := checkKind(kind); err != nil {
			return nil, err
		}
		w.Kind, address = kind, rest
	}
	if strings.ContainsAny(upTo(address, "?#"), ", \t\n") {
		return nil, fmt.Errorf("%q is more than one address; repeat --worker, or separate them with commas in DYN_WORKER", upTo(address, "?#"))
	}
	scheme, host, port, err := parseWorkerURL(address)
	if err != nil {
		return nil, err
	}
	w.ID = net.JoinHostPort(host, port)
	w.URL = scheme + "://" + strings.ReplaceAll(w.ID, "%", "%25")
	same := 0
	for _, b := range before {
		if b.URL == w.URL {
			return nil, fmt.Errorf("%s is named twice", w.URL)
		}
		if strings.TrimPrefix(strings.TrimPrefix(b.URL, "https://"), "http://") == strings.ReplaceAll(w.ID, "%", "%25") {
			same++
		}
	}
	if same > 0 {
		w.ID += "-" + strconv.Itoa(same+1)
	}
	return append(before, w), nil
}

func checkKind(kind string) error {
	if slices.Contains(kinds, kind) {
		return nil
	}
	return fmt.Errorf("%q is no kind of worker; write [KIND=]http://host:port, where KIND is %s", kind, orList(kinds))
}

// parseWorkerURL takes an address apart into its canonical pieces. The port is
// always there. Messages show nothing that follows a ?, which may be a secret.
func parseWorkerURL(address string) (scheme, host, port string, err error) {
	if address == "" {
		return "", "", "", fmt.Errorf("the address is empty; write http://host:port")
	}
	if !strings.Contains(address, "://") {
		return "", "", "", fmt.Errorf("%q has no scheme; write http://host:port", upTo(address, "?#"))
	}
	u, parseErr := url.Parse(address)
	shown := upTo(address, "?#")
	if parseErr != nil {
		return "", "", "", fmt.Errorf("%q is no address; write http://host:port (an IPv6 address in brackets)", shown)
	}
	host = strings.ToLower(u.Hostname())
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "", "", fmt.Errorf("%q has the scheme %s; write http://host:port or https://host:port", shown, u.Scheme)
	case host == "" || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == '/' || unicode.IsControl(r) }):
		return "", "", "", fmt.Errorf("%q names no host; write http://host:port", shown)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", "", "", fmt.Errorf("%q is followed by a query or fragment; write http://host:port only", shown)
	case u.Path != "" && u.Path != "/":
		return "", "", "", fmt.Errorf("%q ends in the path %s; a worker is named by http://host:port only", shown, u.Path)
	}
	if strings.Contains(host, ":") {
		ip, ipErr := netip.ParseAddr(host)
		if ipErr != nil {
			return "", "", "", fmt.Errorf("%q is no address; write http://host:port (an IPv6 address in brackets)", shown)
		}
		host = ip.String()
	}
	port = u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	n, portErr := strconv.ParseUint(port, 10, 16)
	if portErr != nil || n == 0 {
		return "", "", "", fmt.Errorf("%q has no valid port; ports go from 1 to 65535", shown)
	}
	return u.Scheme, host, strconv.FormatUint(n, 10), nil
}

func upTo(s, stops string) string {
	if i := strings.IndexAny(s, stops); i >= 0 {
		return s[:i]
	}
	return s
}
