package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDiscovery(t *testing.T) {
	for _, test := range []struct {
		args  string
		env   map[string]string
		files []FileName
		names []DiscoveryName
	}{
		{args: "--discovery file --discovery-file a.json --discovery-file b.yaml --worker http://w:1", files: []FileName{"a.json", "b.yaml"}},
		{env: map[string]string{"DYN_DISCOVERY": "file", "DYN_DISCOVERY_FILE": "a.json, b.yaml"}, files: []FileName{"a.json", "b.yaml"}},
		{args: "--discovery dns --discovery-name Workers.default.svc:08000 --discovery-name vllm=https://other.:1 --discovery-name workers.default.svc:8001",
			names: []DiscoveryName{{"", "http", "workers.default.svc", "8000"}, {"vllm", "https", "other.", "1"}, {"", "http", "workers.default.svc", "8001"}}},
		{args: "--discovery srv --discovery-name _http._tcp.workers", names: []DiscoveryName{{"", "http", "_http._tcp.workers", ""}}},
	} {
		c, err := LoadServe(strings.Fields(test.args), env(test.env))
		if err != nil || !reflect.DeepEqual(c.DiscoveryFiles, test.files) || !reflect.DeepEqual(c.DiscoveryNames, test.names) || c.DiscoveryInterval != 5*time.Second {
			t.Errorf("%s: %v, %+v", test.args, err, c)
			continue
		}
		for _, n := range c.DiscoveryNames {
			if again, err := parseDiscoveryName(nil, n.String()); err != nil || again[0] != n {
				t.Errorf("%v is %v to itself, %v", n, again, err)
			}
		}
	}
}

func TestDiscoverySentences(t *testing.T) {
	for args, want := range map[string]string{
		"":                                     "--worker is missing: name at least one worker, for example --worker http://127.0.0.1:8000, or choose a --discovery",
		"--discovery kubernetes":               `--discovery must be static, file, dns or srv, not "kubernetes"`,
		"--discovery file":                     "--discovery file needs --discovery-file, the list of the workers",
		"--discovery dns":                      "--discovery dns needs --discovery-name, the name that is looked up",
		"--discovery-file a":                   "--discovery-file needs --discovery file, not static",
		"--discovery-name a:1":                 "--discovery-name needs --discovery dns or --discovery srv, not static",
		"--discovery dns --discovery-name a":   "--discovery-name a has no port; with --discovery dns write NAME:PORT",
		"--discovery srv --discovery-name a:1": "--discovery-name a:1 has a port; with --discovery srv write NAME only, because the records say the ports",
		"--discovery dns --discovery-name a:1 --discovery-file b":           "--discovery-file needs --discovery file, not dns",
		"--discovery dns --discovery-name a:1 --discovery-interval 0":       "--discovery-interval must be at least 100ms, not 0s",
		"--discovery dns --discovery-name a:1,b:1":                          `--discovery-name: "a:1,b:1" has no valid port; ports go from 1 to 65535`,
		"--discovery dns --discovery-name a:1 --discovery-name https://a:1": "--discovery-name: https://a:1 is given twice",
		"--discovery dns --discovery-name ftp://a:1":                        `--discovery-name: "ftp://a:1" has the scheme ftp; it can be http or https`,
		"--discovery dns --discovery-name http://a:1/v1":                    `--discovery-name: "http://a:1/v1" has no valid port; ports go from 1 to 65535`,
		"--discovery dns --discovery-name http://a/v1":                      `--discovery-name: "http://a/v1" is no name to look up; write NAME:PORT, or NAME for SRV records`,
		"--discovery dns --discovery-name u:secret@a:1":                     "--discovery-name: the name holds a user name or password, which would end up in logs; write NAME or NAME:PORT only",
		"--discovery dns --discovery-name ollama=a:1":                       `--discovery-name: "ollama" is no kind of worker; write [KIND=]http://host:port, where KIND is ` + orList(kinds),
		"--discovery file --discovery-file a --discovery-file a":            `--discovery-file: "a" is given twice`,
	} {
		_, err := LoadServe(strings.Fields(args), env(nil))
		if _, ok := errors.AsType[*UsageError](err); !ok || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", args, err, want)
		}
	}
}
