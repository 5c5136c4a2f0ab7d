package transport

import (
	"reflect"
	"strings"
	"testing"
)

func TestHeadSize(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "HTTP/1.1 200 OK\r\n": 0, "HTTP/1.1 200 OK\r\n\r": 0, "a\r\n\r\nb": 5, "a\n\nb": 3, "a\nb: c\n\r\nd": 9,
	} {
		if got := headSize([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestHeads(t *testing.T) {
	tests := map[string]struct {
		head  string
		error string // a part of it; "" = none
		want  framing
		keep  bool
	}{
		"chunked":                {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n", "", framing{form: chunked}, true},
		"counted":                {"HTTP/1.1 200\r\ncontent-length:  12 \r\n", "", framing{form: counted, left: 12}, true},
		"counted twice":          {"HTTP/1.1 200 OK\nContent-Length: 12\nContent-Length: 12\n", "", framing{form: counted, left: 12}, true},
		"until closed":           {"HTTP/1.1 200 OK\r\n", "", framing{form: untilClosed}, false},
		"connection is closed":   {"HTTP/1.1 200 OK\r\nConnection: a, Close\r\nContent-Length: 1\r\n", "", framing{form: counted, left: 1}, false},
		"HTTP/1.0":               {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n", "", framing{form: counted, left: 1}, false},
		"no content":             {"HTTP/1.1 204 No Content\r\n", "", framing{form: counted}, true},
		"no content, chunked":    {"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n", "", framing{form: counted}, false},
		"chunked, with a length": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n", "", framing{form: chunked}, false},
		"folded":                 {"HTTP/1.1 200 OK\r\nX: a\r\n  b\r\nContent-Length: 3\r\n", "", framing{form: counted, left: 3}, true},

		"other lengths":        {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n", "Content-Length", framing{}, false},
		"length with a sign":   {"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n", "Content-Length", framing{}, false},
		"length beyond bounds": {"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n", "Content-Length", framing{}, false},
		"empty length":         {"HTTP/1.1 200 OK\r\nContent-Length:\r\n", "Content-Length", framing{}, false},
		"gzip, chunked":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding", framing{}, false},
		"two codings":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding", framing{}, false},
		"CR within a line":     {"HTTP/1.1 200 OK\r\nX: a\rb\r\n", "header line", framing{}, false},
		"CR before its end":    {"HTTP/1.1 200 OK\r\nConnection: close\r\r\n", "header line", framing{}, false},
		"NUL":                  {"HTTP/1.1 200 OK\r\nX: a\x00b\r\n", "header line", framing{}, false},
		"CR in a folded line":  {"HTTP/1.1 200 OK\r\nX: a\r\n b\rc\r\n", "header line", framing{}, false},
		"no content, gzip":     {"HTTP/1.1 204 No Content\r\nTransfer-Encoding: gzip\r\n", "Transfer-Encoding", framing{}, false},
		"another protocol":     {"HTTP/1.1 101 Switching Protocols\r\n", "protocols", framing{}, false},
		"HTTP/2":               {"HTTP/2.0 200 OK\r\n", "status line", framing{}, false},
		"no version":           {"HTTP/1. 200 OK\r\n", "status line", framing{}, false},
		"strange version":      {"HTTP/1.x 200 OK\r\n", "version", framing{}, false},
		"four digits":          {"HTTP/1.1 2000 OK\r\n", "status line", framing{}, false},
		"no status":            {"HTTP/1.1 OK\r\n", "status line", framing{}, false},
		"status below 100":     {"HTTP/1.1 099 OK\r\n", "status line", framing{}, false},
		"blank in a name":      {"HTTP/1.1 200 OK\r\nContent-Length : 3\r\n", "header line", framing{}, false},
		"no colon":             {"HTTP/1.1 200 OK\r\nContent-Length\r\n", "header line", framing{}, false},
		"no name":              {"HTTP/1.1 200 OK\r\n: 3\r\n", "header line", framing{}, false},
		"folded first line":    {"HTTP/1.1 200 OK\r\n X: a\r\n", "header line", framing{}, false},
	}
	for name, test := range tests {
		h, err := parseHead(test.head + "\r\n")
		r := &Response{link: &Link{}}
		if err == nil {
			err = r.take(h)
		}
		if err != nil || test.error != "" {
			if err == nil || test.error == "" || !strings.Contains(err.Error(), test.error) {
				t.Errorf("%s: error %v, want one with %q", name, err, test.error)
			}
			continue
		}
		if r.framing != test.want || r.keep != test.keep {
			t.Errorf("%s: %+v, keep %v", name, r.framing, r.keep)
		}
	}
	h, err := parseHead("HTTP/1.1 200 OK\r\nx-a: 1\r\nB:\r\nX-A: 2\r\n\t3\r\n\r\n")
	if err != nil || !reflect.DeepEqual(map[string][]string(h.header), map[string][]string{"X-A": {"1", "2 3"}, "B": {""}}) {
		t.Errorf("%v, %v", h, err)
	}
}

func TestRequestHead(t *testing.T) {
	link, err := New(Options{URL: "http://[fe80::1%25eth0]:81/a%20b/"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := link.appendHead(nil, "POST", "/x?y=z", 3, []string{"A", "b", "C", ""})
	if want := "POST /a%20b/x?y=z HTTP/1.1\r\nHost: [fe80::1]:81\r\nUser-Agent: baton\r\nContent-Length: 3\r\nA: b\r\n\r\n"; err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	if link.address != "[fe80::1%eth0]:81" {
		t.Errorf("dials %q", link.address)
	}
	for _, path := range []string{"", "x", "/a b", "/a\r\nX: y", "/ä"} {
		if _, err := link.appendHead(nil, "GET", path, 0, nil); err == nil {
			t.Errorf("path %q is sent", path)
		}
	}
	for _, value := range []string{"a\r\nX: y", "a\n", "a\x00", "\x7f"} {
		if _, err := link.appendHead(nil, "GET", "/", 0, []string{"A", value}); err == nil || strings.Contains(err.Error(), value) {
			t.Errorf("value %q: %v", value, err)
		}
	}
	if _, err := New(Options{URL: "http://wörker:1"}); err == nil {
		t.Error("a name that is not ASCII was taken")
	}
	for url, address := range map[string]string{"http://h": "h:80", "https://h": "h:443"} {
		if link, _ := New(Options{URL: url}); link.address != address {
			t.Errorf("%s: dials %q", url, link.address)
		}
	}
}
