package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// defaultTimeout bounds one attempt to send a batch, where OTEL_EXPORTER_OTLP_TIMEOUT
// does not.
const defaultTimeout = 10 * time.Second

// A destination is a collector and how to talk to it, as the environment says.
// https://opentelemetry.io/docs/specs/otel/protocol/exporter/
type destination struct {
	url     string // complete
	headers []header
	timeout time.Duration // of one attempt; 0 = maxExport alone bounds it
	gzip    bool
	tls     *tls.Config // nil = the system's certificates
}

// A header is sent with every request. Its value is often a key: it is in no error
// and no record.
type header struct{ name, value string }

// errNoEndpoint is a destination that is none.
var errNoEndpoint = errors.New("the endpoint is not a URL that begins with http:// or https:// and names a host")

// readDestination reads where to, if wanted said so. Files that the environment names
// and that cannot be read are an error: without them the connection would be another
// one than was asked for. Other values that cannot be read are warnings and have
// their defaults.
func readDestination(getenv func(string) string, log *slog.Logger) (*destination, error) {
	to := &destination{timeout: defaultTimeout}
	var err error
	if to.url, err = tracesURL(getenv); err != nil {
		return nil, err
	}
	if name, value := setting(getenv, "HEADERS"); value != "" {
		if to.headers, err = parseHeaders(value); err != nil {
			log.Warn("traces are sent without some headers", "variable", name, "err", err)
		}
	}
	if name, value := setting(getenv, "TIMEOUT"); value != "" {
		if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
			to.timeout = min(time.Duration(ms)*time.Millisecond, maxExport)
		} else {
			log.Warn(fmt.Sprintf("%s is not a number of milliseconds; it is %d", name, defaultTimeout.Milliseconds()), "value", value)
		}
	}
	switch name, value := setting(getenv, "COMPRESSION"); value {
	case "gzip":
		to.gzip = true
	case "", "none":
	default:
		log.Warn(fmt.Sprintf("traces are not compressed: %s may be gzip or none", name), "value", value)
	}
	to.tls, err = readTLS(getenv)
	return to, err
}

// setting is a variable of the exporter and its name: the one for traces if it is
// set, else the one for all signals.
func setting(getenv func(string) string, suffix string) (name, value string) {
	name = "OTEL_EXPORTER_OTLP_TRACES_" + suffix
	if value = strings.TrimSpace(getenv(name)); value == "" {
		name = "OTEL_EXPORTER_OTLP_" + suffix
		value = strings.TrimSpace(getenv(name))
	}
	return name, value
}

// tracesURL is the endpoint for traces as it is, or the one for all signals with
// the path of traces below it.
func tracesURL(getenv func(string) string) (string, error) {
	name, value := setting(getenv, "ENDPOINT")
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "", errNoEndpoint // url's own error quotes the endpoint, and a password in it
	}
	if name == envEndpoint {
		u = u.JoinPath("v1/traces")
	}
	return u.String(), nil
}

// parseHeaders reads a list "name=value,name=value" whose values are URL-encoded.
// It returns the headers that can be read; the error tells of the others.
func parseHeaders(list string) ([]header, error) {
	var headers []header
	var errs []error
	for i, entry := range strings.Split(list, ",") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		name, value, found := strings.Cut(entry, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		switch {
		case !found:
			errs = append(errs, fmt.Errorf("entry %d has no =", i+1))
		case !isToken(name):
			errs = append(errs, fmt.Errorf("the name of entry %d is not that of a header", i+1))
		case err != nil || strings.ContainsFunc(value, isControl):
			errs = append(errs, fmt.Errorf("the value of entry %d (%s) is not URL-encoded text", i+1, name))
		default:
			headers = append(headers, header{name, value})
		}
	}
	return headers, errors.Join(errs...)
}

// isToken reports whether a name may be a header's.
// https://www.rfc-editor.org/rfc/rfc9110#name-tokens
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// readTLS reads the certificate to trust, and our own if the collector wants one. It
// returns nil if the environment names neither.
func readTLS(getenv func(string) string) (*tls.Config, error) {
	caName, ca := setting(getenv, "CERTIFICATE")
	certName, cert := setting(getenv, "CLIENT_CERTIFICATE")
	keyName, key := setting(getenv, "CLIENT_KEY")
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	config := &tls.Config{}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", caName, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s: %s holds no certificate in PEM", caName, ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s and %s: %w", certName, keyName, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
