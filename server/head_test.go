package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

const plainHead = "POST /v1/chat/completions HTTP/1.1\r\nHost: x:8000\r\nuser-agent: openai/1.0 (linux)\r\nAccept: a\r\nContent-Length: 27\r\nAccept: b\r\n\r\n"

// What is not plain is left to net/http.
func TestPlainRequest(t *testing.T) {
	with := func(line string) string { return strings.Replace(plainHead, "Accept: a", line, 1) }
	tests := []struct {
		name, head string
		plain      bool
	}{
		{"usual", plainHead, true},
		{"a question", "GET /v1/models HTTP/1.1\r\nHost: [::1]:8000\r\n\r\n", true},
		{"no value", with("X-Empty:"), true},
		{"blanks around a value", with("X-Padded: \t y \t"), true},
		{"is to be closed", with("Connection: Close"), true},
		{"is to be kept", with("Connection: keep-alive"), true},
		{"an old version", strings.Replace(plainHead, "1.1", "1.0", 1), false},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\n", false},
		{"another method", "DELETE /v1/models HTTP/1.1\r\nHost: x\r\n\r\n", false},
		{"a question with a body", strings.Replace(plainHead, "POST", "GET", 1), false},
		{"a question with two lengths", strings.Replace(with("content-length: 27"), "POST", "GET", 1), false},
		{"no length", "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\r\n", false},
		{"a query", "GET /v1/models?x=y HTTP/1.1\r\nHost: x\r\n\r\n", false},
		{"an escape", "GET /v1/models/a%2Fb HTTP/1.1\r\nHost: x\r\n\r\n", false},
		{"a way up", "GET /v1/../health HTTP/1.1\r\nHost: x\r\n\r\n", false},
		{"an empty part", "GET //health HTTP/1.1\r\nHost: x\r\n\r\n", false},
		{"a whole URL", "GET http://x/health HTTP/1.1\r\nHost: x\r\n\r\n", false},
		{"one blank too many", "GET  /health HTTP/1.1\r\nHost: x\r\n\r\n", false},
		{"no host", "GET /health HTTP/1.1\r\n\r\n", false},
		{"two hosts", with("Host: y"), false},
		{"a strange host", "GET /health HTTP/1.1\r\nHost: x/y\r\n\r\n", false},
		{"two lengths", with("Content-Length: 27"), false},
		{"a length with a sign", strings.Replace(plainHead, "27", "+27", 1), false},
		{"a large body", strings.Replace(plainHead, "27", fmt.Sprint(maxPlainBodyBytes+1), 1), false},
		{"chunks", with("Transfer-Encoding: chunked"), false},
		{"a trailer", with("Trailer: X"), false},
		{"an expectation", with("Expect: 100-continue"), false},
		{"an upgrade", with("Upgrade: h2c"), false},
		{"several wishes for the connection", with("Connection: close, TE"), false},
		{"a line that goes on", with("Accept: a,\r\n b"), false},
		{"a blank before the colon", with("Accept : a"), false},
		{"no name", with(": a"), false},
		{"no colon", with("Accept"), false},
		{"a bare line feed", with("Accept: a\nX: y"), false},
		{"a zero", with("Accept: \x00"), false},
		{"another alphabet", with("Accept: é"), false},
	}
	for _, test := range tests {
		if size := headSize([]byte(test.head)); size != len(test.head) {
			t.Errorf("%s: the head has %d bytes", test.name, size)
		}
		if r := plainRequest(test.head); (r != nil) != test.plain {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// What we read ourselves net/http reads as well, and takes for the same.
func FuzzPlainRequest(f *testing.F) {
	f.Add(plainHead)
	f.Add("GET /v1/models HTTP/1.1\r\nHost: [::1]:8000\r\nConnection: close\r\n\r\n")
	f.Add("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nX: \t\r\n\r\n")
	f.Add("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 13\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		size := headSize([]byte(text))
		if size == 0 {
			return
		}
		got := plainRequest(text[:size])
		if got == nil {
			return
		}
		want, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(text[:size]), bytes.NewReader(make([]byte, got.ContentLength)))))
		if err != nil {
			t.Fatalf("%q: %v", text[:size], err)
		}
		if got.Header["Pragma"] != nil {
			delete(want.Header, "Cache-Control") // net/http adds one, and nobody here looks
			delete(got.Header, "Cache-Control")
		}
		maps.DeleteFunc(want.Header, func(name string, _ []string) bool { return name == "Connection" })
		maps.DeleteFunc(got.Header, func(name string, _ []string) bool { return name == "Connection" })
		for _, r := range []*http.Request{got, want} {
			r.Body, r.Pattern = nil, ""
		}
		if got.Method != want.Method || got.URL.String() != want.URL.String() || got.RequestURI != want.RequestURI || got.Proto != want.Proto ||
			got.ProtoMajor != want.ProtoMajor || got.ProtoMinor != want.ProtoMinor || got.Host != want.Host || got.Close != want.Close ||
			got.ContentLength != want.ContentLength || len(want.TransferEncoding) > 0 || !reflect.DeepEqual(got.Header, want.Header) {
			t.Fatalf("%q:\n%+v, not\n%+v", text[:size], got, want)
		}
	})
}

func BenchmarkPlainRequest(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if plainRequest(plainHead) == nil {
			b.Fatal("it is not plain")
		}
	}
}
