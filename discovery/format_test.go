package discovery

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

var testKinds = []string{"vllm", "llamacpp"}

func TestParseFile(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    []Target
	}{
		"YAML": {"- targets: ['10.0.0.1:8000', w2:8000]\n- targets:\n  - w3:8000\n  labels: {__scheme__: https, __kind__: vllm, kind: gpu, zone: a}\n",
			[]Target{{URL: "http://10.0.0.1:8000"}, {URL: "http://w2:8000"}, {URL: "https://w3:8000", Kind: "vllm"}}},
		"JSON": {"\t[\n\t{\"targets\": [\"W1:08000\"],\n\t\t\"labels\": {\"__kind__\": \"llamacpp\", \"a\": \"b\"}}\n]\n",
			[]Target{{URL: "http://w1:8000", Kind: "llamacpp"}}},
		"YAML in brackets":     {"[{targets: [w1:80]}] # one", []Target{{URL: "http://w1:80"}}},
		"IPv6":                 {`[{"targets": ["[2001:DB8::0001]:8000", "[fe80::1%eth0]:1"]}]`, []Target{{URL: "http://[2001:db8::1]:8000"}, {URL: "http://[fe80::1%25eth0]:1"}}},
		"URLs":                 {"- targets: ['https://w1:8443/', 'http://w1:80']\n", []Target{{URL: "https://w1:8443"}, {URL: "http://w1:80"}}},
		"named twice":          {"- targets: [w1:80, 'http://w1:80']\n- targets: [w1:80]\n", []Target{{URL: "http://w1:80"}}},
		"no workers":           {"[]", []Target{}},
		"no workers in groups": {"- targets: []\n", []Target{}},
		"a byte order mark":    {"\ufeff[]\r\n", []Target{}},
	} {
		got, err := parseFile([]byte(test.content), testKinds)
		if err != nil || got == nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// What is not clearly a list of workers is none: an empty set would drain them all.
func TestParseFileRefuses(t *testing.T) {
	many := "- targets: [" + strings.Repeat("w:1, ", 10)
	for i := range maxTargets {
		many += fmt.Sprintf("'x%d:1', ", i)
	}
	for content, want := range map[string]string{
		"":                                "the file is empty",
		" \n\n":                           "the file is empty",
		"# nothing\n":                     "the file says nothing",
		"null":                            "the file says nothing",
		"---\n":                           "the file says nothing",
		"{}":                              "no list of workers",
		"targets: [w1:80]":                "no list of workers",
		"- w1:80":                         "no list of workers",
		`[{"targets": ["w1:80"`:           "no list of workers",
		`[{"targets": ["w1:80"]}] x`:      "no list of workers",
		"- target: [w1:80]":               "field target not found",
		`[{"target": ["w1:80"]}]`:         "field target not found",
		"- labels: {a: b}":                "group 1 of the list has no targets",
		"- targets:":                      "group 1 of the list has no targets",
		"[null]":                          "group 1 of the list has no targets",
		"[]\n---\n[]\n":                   "more than one YAML document",
		"- targets: [w1]":                 `group 1 of the list: the target "w1" is not host:port`,
		"- targets: ['::1:80']":           "(an IPv6 address in brackets)",
		"- targets: ['w1:']":              "no valid port",
		"- targets: ['w1:0']":             "no valid port",
		"- targets: ['w1:65536']":         "no valid port",
		"- targets: [':80']":              "is not host:port",
		"- targets: ['[fe80::1%a b]:80']": "is not host:port",
		"- targets: ['w 1:80']":           "is not host:port",
		"- targets: ['w1:80/v1']":         "no valid port",
		"- targets: ['http://w1:80/v1']":  "no valid port",
		"- targets: ['ftp://w1:80']":      `the scheme "ftp"`,
		"- targets: ['u:secret@w1:80']":   "user name or password",
		"- {targets: ['w1:80'], labels: {__scheme__: gopher}}":                 `the scheme "gopher"`,
		"- {targets: ['http://w1:80'], labels: {__scheme__: https}}":           "another scheme than the label",
		"- {targets: ['w1:80'], labels: {__kind__: ollama}}":                   `the label __kind__ is "ollama"; it can be vllm, llamacpp`,
		"- targets: [w1:80]\n- {targets: ['w1:80'], labels: {__kind__: vllm}}": `named twice, as "" and as "vllm"`,
		many + "]": "more than 10000 workers",
	} {
		got, err := parseFile([]byte(content), testKinds)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "\n") || len(err.Error()) > 500 {
			t.Errorf("%.60q: %v, %v; want %q", content, got, err, want)
		}
	}
}

func TestTargetAddress(t *testing.T) {
	for url, want := range map[string]string{"http://w1:80": "w1:80", "https://[fe80::1%25eth0]:1": "[fe80::1%eth0]:1"} {
		if got := (Target{URL: url}).Address(); got != want {
			t.Errorf("%s: %s", url, got)
		}
	}
}

// No content makes the parser panic, or report what is no address.
func FuzzParseFile(f *testing.F) {
	f.Add("- targets: [w1:80]\n  labels: {__scheme__: https}")
	f.Add(`[{"targets": ["[::1]:80"], "labels": {"__kind__": "vllm"}}]`)
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, content string) {
		targets, err := parseFile([]byte(content), testKinds)
		if (err == nil) != (targets != nil) {
			t.Errorf("%v, %v", targets, err)
		}
		for _, target := range targets {
			if again, err := parseTarget(target.URL, ""); err != nil || again != target.URL {
				t.Errorf("%q is %q to itself, %v", target.URL, again, err)
			}
		}
	})
}
