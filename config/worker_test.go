package config

import (
	"strings"
	"testing"
)

func TestParseWorker(t *testing.T) {
	for text, want := range map[string]Worker{
		"http://10.0.0.1:8000":          {ID: "10.0.0.1:8000", URL: "http://10.0.0.1:8000"},
		"vllm=http://Gpu-1:8000/":       {ID: "gpu-1:8000", URL: "http://gpu-1:8000", Kind: "vllm"},
		"llamacpp=https://h":            {ID: "h:443", URL: "https://h:443", Kind: "llamacpp"},
		" http://h:080 ":                {ID: "h:80", URL: "http://h:80"},
		"http://[::1]:8000":             {ID: "[::1]:8000", URL: "http://[::1]:8000"},
		"http://[0:0:0:0:0:0:0:1]:8000": {ID: "[::1]:8000", URL: "http://[::1]:8000"},
		"http://[fe80::1%25eth0]:8000":  {ID: "[fe80::1%eth0]:8000", URL: "http://[fe80::1%25eth0]:8000"},
	} {
		got, err := parseWorker(nil, text)
		if err != nil || got[0] != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}

func TestWorkerIDsAreUnique(t *testing.T) {
	var ws []Worker
	var err error
	for _, text := range []string{"http://h:1", "http://h:2", "https://h:1"} {
		if ws, err = parseWorker(ws, text); err != nil {
			t.Fatal(err)
		}
	}
	if ws[0].ID != "h:1" || ws[1].ID != "h:2" || ws[2].ID != "h:1-2" {
		t.Errorf("got %+v", ws)
	}
	for _, same := range []string{"http://h:1", "vllm=http://H:01/", "llamacpp=http://h:1"} {
		if _, err := parseWorker(ws, same); err == nil || err.Error() != "http://h:1 is named twice" {
			t.Errorf("%s: %v", same, err)
		}
	}
}

func TestWrongWorkers(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "the address is empty; write http://host:port",
		"10.0.0.1:8000":               `"10.0.0.1:8000" has no scheme; write http://host:port`,
		"localhost:8000":              `"localhost:8000" has no scheme; write http://host:port`,
		"ftp://h:1":                   `"ftp://h:1" has the scheme ftp; write http://host:port or https://host:port`,
		"http://":                     `"http://" names no host; write http://host:port`,
		"http://:8000":                `"http://:8000" names no host; write http://host:port`,
		"http://h:8000/v1":            `"http://h:8000/v1" ends in the path /v1; a worker is named by http://host:port only`,
		"http://h:8000?key=s3cret":    `"http://h:8000" is followed by a query or fragment; write http://host:port only`,
		"http://h:8000#x":             `"http://h:8000" is followed by a query or fragment; write http://host:port only`,
		"http://h:0":                  `"http://h:0" has no valid port; ports go from 1 to 65535`,
		"http://h:99999":              `"http://h:99999" has no valid port; ports go from 1 to 65535`,
		"http://[::g]:80":             `"http://[::g]:80" is no address; write http://host:port (an IPv6 address in brackets)`,
		"http://u:s3cret@h:80":        "the address holds a user name or password, which would end up in logs; write http://host:port only",
		"http://s3cret%zz@h:80":       "the address holds a user name or password, which would end up in logs; write http://host:port only",
		"vllm=":                       "the address is empty; write http://host:port",
		"ollama=http://h:1":           `"ollama" is no kind of worker; write [KIND=]http://host:port, where KIND is vllm, sglang, trtllm or llamacpp`,
		"http://h:1,http://h:2":       `"http://h:1,http://h:2" is more than one address; repeat --worker, or separate them with commas in DYN_WORKER`,
		"http://h name:1":             `"http://h name:1" is more than one address; repeat --worker, or separate them with commas in DYN_WORKER`,
		"http://[::1:8000":            `"http://[::1:8000" is no address; write http://host:port (an IPv6 address in brackets)`,
		"http://h:8000/%zz?k=s3cret":  `"http://h:8000/%zz" is no address; write http://host:port (an IPv6 address in brackets)`,
		"vllm=u:s3cret@http://h:8000": "the address holds a user name or password, which would end up in logs; write http://host:port only",
	} {
		_, err := parseWorker(nil, text)
		if err == nil || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the message shows the secret: %v", text, err)
		}
	}
}

func TestNamed(t *testing.T) {
	parse := func(add func([]Named, string) ([]Named, error), texts ...string) ([]Named, error) {
		var ns []Named
		var err error
		for _, text := range texts {
			if ns, err = add(ns, text); err != nil {
				return nil, err
			}
		}
		return ns, nil
	}
	ns, err := parse(parseModelPath, "./a=b", "Qwen/Qwen3=/models/q", "x=hub/id")
	if err != nil || ns[0] != (Named{"", "./a=b"}) || ns[1] != (Named{"Qwen/Qwen3", "/models/q"}) || ns[2] != (Named{"x", "hub/id"}) {
		t.Errorf("%v, %v", ns, err)
	}
	ns, err = parse(parseServedName, "/m/a.gguf=m", "other")
	if err != nil || ns[0] != (Named{"/m/a.gguf", "m"}) || ns[1] != (Named{"", "other"}) {
		t.Errorf("%v, %v", ns, err)
	}
	if ns, err = parse(parseServedName, "a=m", "b=m"); err != nil || len(ns) != 2 {
		t.Errorf("two workers' names for one public name: %v, %v", ns, err)
	}
	for want, texts := range map[string][]string{
		`"=x" is incomplete; write [NAME=]PATH`:                                  {"=x"},
		`"x=" is incomplete; write [NAME=]PATH`:                                  {"x="},
		`"" is incomplete; write [NAME=]PATH`:                                    {""},
		`"a" and "b" are both given without a name before them; write NAME=PATH`: {"a", "b"},
		`"n" is given twice, as "a" and as "b"`:                                  {"n=a", "n=b"},
		`"a\nb" holds a control character`:                                       {"a\nb"},
		"the value is longer than 4096 bytes":                                    {strings.Repeat("x", 5000)},
	} {
		if _, err := parse(parseModelPath, texts...); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", texts, err, want)
		}
	}
	for host, want := range map[string]string{"0.0.0.0": "0.0.0.0", "[::]": "::", "::1": "::1", "gpu-1": "gpu-1"} {
		if got, err := parseHost(host); err != nil || got != want {
			t.Errorf("parseHost(%q) = %q, %v", host, got, err)
		}
	}
	for _, host := range []string{"", "[]", "http://h", "h:80", "a b"} {
		if got, err := parseHost(host); err == nil {
			t.Errorf("parseHost(%q) = %q", host, got)
		}
	}
}

// What is accepted is canonical, and what is refused is never repeated where it
// may hold a secret.
func FuzzParseWorker(f *testing.F) {
	for _, seed := range []string{"http://h:1", "vllm=https://[::1]:2/", "http://u:p@h:1", "h:1", "http://h/%zz?x#y", "llamacpp=http://H"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ws, err := parseWorker(nil, text)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x00") {
				t.Errorf("%q: not one line: %q", text, err)
			}
			if i := strings.LastIndexByte(text, '@'); i > 8 && strings.Contains(err.Error(), text[:i]) {
				t.Errorf("%q: shown in %q", text, err)
			}
			return
		}
		again, err := parseWorker(nil, ws[0].String())
		if err != nil || again[0] != ws[0] {
			t.Errorf("%q: %+v reads back as %+v, %v", text, ws, again, err)
		}
		if strings.ContainsAny(ws[0].URL, "@?# ") {
			t.Errorf("%q: address %q", text, ws[0].URL)
		}
	})
}
