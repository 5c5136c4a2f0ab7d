package config

import (
	"errors"
	"fmt"
	"testing"
)

func TestOrigins(t *testing.T) {
	for text, want := range map[string]Origin{
		"*":                           "*",
		"https://Chat.example.org":    "https://chat.example.org",
		" http://localhost:3000 ":     "http://localhost:3000",
		"HTTPS://h:443":               "https://h",
		"http://h:443":                "http://h:443",
		"http://[::1]:80":             "http://[::1]",
		"http://[::1]:3000":           "http://[::1]:3000",
		"chrome-extension://abcdefgh": "chrome-extension://abcdefgh",
	} {
		if got, err := parseOrigin(nil, text); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	const allowed = `--cors-origin must be * or an origin as browsers name it, scheme://host or scheme://host:port, not `
	for text, want := range map[string]string{
		"":                          allowed + `""`,
		"null":                      allowed + `"null"`,
		"example.org":               allowed + `"example.org"`,
		"localhost:3000":            allowed + `"localhost:3000"`,
		"https://*.example.org":     allowed + `"https://*.example.org"`,
		"https://u:p@h":             allowed + `"https://u:p@h"`,
		"https://bücher.example":    allowed + `"https://bücher.example"`,
		"https://h\nx":              allowed + `"https://h\nx"`,
		"https://chat.example.org/": `--cors-origin: "https://chat.example.org/" goes on after the host; an origin is scheme://host or scheme://host:port only`,
		"https://h?x":               `--cors-origin: "https://h?x" goes on after the host; an origin is scheme://host or scheme://host:port only`,
	} {
		_, err := LoadServe([]string{aWorker, "--cors-origin", text}, env(nil))
		if err == nil || err.Error() != want {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, want)
		}
	}
}

// The settings of security reach their fields, from the reference frontend's variables too.
func TestSecurity(t *testing.T) {
	c, err := LoadServe([]string{aWorker, "--tls-client-ca-cert-path", "ca", "--api-key-file=k", "--worker-api-key-file", "w"},
		env(map[string]string{"DYN_TLS_CERT_PATH": "c", "DYN_TLS_KEY_PATH": "p", "DYN_CORS_ORIGIN": "https://a, http://b:1,https://a"}))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(c.TLSCertPath, c.TLSKeyPath, c.TLSClientCAPath, c.APIKeyFile, c.WorkerAPIKeyFile, c.CORSOrigins)
	if got != "cpcakw[https://a http://b:1]" {
		t.Error(got)
	}
}

func TestTLSFilesNeedEachOther(t *testing.T) {
	for _, test := range []struct {
		want string
		args []string
	}{
		{"--tls-cert-path needs --tls-key-path, the private key of that certificate", []string{"--tls-cert-path=c"}},
		{"--tls-cert-path needs --tls-key-path, the private key of that certificate", []string{"--tls-cert-path=c", "--tls-client-ca-cert-path=a"}},
		{"--tls-key-path needs --tls-cert-path, the certificate of that key", []string{"--tls-key-path=k"}},
		{"--tls-client-ca-cert-path needs --tls-cert-path and --tls-key-path: clients show their certificates over TLS only", []string{"--tls-client-ca-cert-path=a"}},
	} {
		_, err := LoadServe(append(test.args, aWorker), env(nil))
		if _, ok := errors.AsType[*UsageError](err); !ok || err.Error() != test.want {
			t.Errorf("%q:\ngot  %v\nwant %s", test.args, err, test.want)
		}
	}
}
