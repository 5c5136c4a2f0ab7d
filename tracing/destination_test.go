package tracing

import (
	"bytes"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// certificateFile writes a certificate as PEM.
func certificateFile(t *testing.T, der []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTracesURL(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		want string // "" = errNoEndpoint
	}{
		"all signals":      {map[string]string{envEndpoint: "http://c:4318"}, "http://c:4318/v1/traces"},
		"with a path":      {map[string]string{envEndpoint: " https://c/otlp/ "}, "https://c/otlp/v1/traces"},
		"with a query":     {map[string]string{envEndpoint: "https://c/otlp?k=v"}, "https://c/otlp/v1/traces?k=v"},
		"traces as it is":  {map[string]string{envEndpoint: "http://c:4318", envTracesEndpoint: "http://t:1/x/"}, "http://t:1/x/"},
		"no scheme":        {map[string]string{envEndpoint: "c:4318"}, ""},
		"another scheme":   {map[string]string{envEndpoint: "grpc://c:4317"}, ""},
		"no host":          {map[string]string{envEndpoint: "http://:4318"}, ""},
		"unreadable":       {map[string]string{envEndpoint: "http://u:hunter2@c:port"}, ""},
		"traces go before": {map[string]string{envEndpoint: "http://c:4318", envTracesEndpoint: "t:1"}, ""},
	} {
		got, err := tracesURL(func(k string) string { return test.env[k] })
		if got != test.want || (test.want == "") != errors.Is(err, errNoEndpoint) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestParseHeaders(t *testing.T) {
	for list, want := range map[string]struct {
		headers []header
		err     string // part of it
	}{
		"a=1":               {[]header{{"a", "1"}}, ""},
		" a = 1 ,, b=x%20y": {[]header{{"a", "1"}, {"b", "x y"}}, ""},
		"a=b=c+d":           {[]header{{"a", "b=c+d"}}, ""},
		"a=,b":              {[]header{{"a", ""}}, "entry 2 has no ="},
		"=hunter2,a=1":      {[]header{{"a", "1"}}, "entry 1 is not that of a header"},
		"a b=hunter2":       {nil, "entry 1 is not that of a header"},
		"a=hunter2%0d%0ax":  {nil, "the value of entry 1 (a)"},
		"a=hunter2%zz":      {nil, "the value of entry 1 (a)"},
	} {
		headers, err := parseHeaders(list)
		if !slices.Equal(headers, want.headers) || (err != nil) != (want.err != "") {
			t.Errorf("%q: %v, %v", list, headers, err)
		}
		if err != nil && (!strings.Contains(err.Error(), want.err) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%q: %v", list, err)
		}
	}
}

// What cannot be read is a warning and has its default; the variable for traces
// goes before the one for all signals.
func TestReadDestination(t *testing.T) {
	const general, traces = "OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"
	for name, test := range map[string]struct {
		env     map[string]string
		timeout time.Duration
		gzip    bool
		warns   string // the variable
	}{
		"defaults":        {nil, 10 * time.Second, false, ""},
		"general":         {map[string]string{general + "TIMEOUT": "2500", general + "COMPRESSION": "gzip"}, 2500 * time.Millisecond, true, ""},
		"traces":          {map[string]string{general + "TIMEOUT": "1", traces + "TIMEOUT": "7", general + "COMPRESSION": "gzip", traces + "COMPRESSION": "none"}, 7 * time.Millisecond, false, ""},
		"no bound":        {map[string]string{general + "TIMEOUT": "0"}, 0, false, ""},
		"long":            {map[string]string{general + "TIMEOUT": "2000000000"}, maxExport, false, ""},
		"no number":       {map[string]string{traces + "TIMEOUT": "10s"}, 10 * time.Second, false, traces + "TIMEOUT"},
		"negative":        {map[string]string{general + "TIMEOUT": "-1"}, 10 * time.Second, false, general + "TIMEOUT"},
		"another packing": {map[string]string{general + "COMPRESSION": "zstd"}, 10 * time.Second, false, general + "COMPRESSION"},
		"bad headers":     {map[string]string{traces + "HEADERS": "x"}, 10 * time.Second, false, traces + "HEADERS"},
	} {
		var out bytes.Buffer
		to, err := readDestination(func(k string) string {
			if k == envEndpoint {
				return "http://c:4318"
			}
			return test.env[k]
		}, slog.New(slog.NewTextHandler(&out, nil)))
		if err != nil {
			t.Fatal(name, err)
		}
		if to.timeout != test.timeout || to.gzip != test.gzip || to.tls != nil || (out.Len() > 0) != (test.warns != "") || !strings.Contains(out.String(), test.warns) {
			t.Errorf("%s: %+v, log %q", name, to, out.String())
		}
	}
}

// An endpoint that is none turns traces off; files that cannot be read are told.
func TestNewOfABadEnvironment(t *testing.T) {
	t.Setenv(envTracesEndpoint, "")
	t.Setenv(envEndpoint, "c:4318")
	var out bytes.Buffer
	tracer, err := New(t.Context(), "v", slog.New(slog.NewTextHandler(&out, nil)))
	if tracer != nil || err != nil || !strings.Contains(out.String(), "traces are off") {
		t.Errorf("%v, %v, log %q", tracer, err, out.String())
	}
	t.Setenv(envEndpoint, "https://c:4318")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for variable, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_CERTIFICATE": empty, "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": empty + ".not", "OTEL_EXPORTER_OTLP_CLIENT_KEY": empty,
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			if tracer, err := New(t.Context(), "v", slog.New(slog.DiscardHandler)); tracer != nil || err == nil || !strings.Contains(err.Error(), variable) {
				t.Errorf("%v, %v", tracer, err)
			}
		})
	}
}
