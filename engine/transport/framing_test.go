package transport

import (
	"errors"
	"strings"
	"testing"
)

// However the bytes are cut, the same body comes out, and the same verdict.
func TestFraming(t *testing.T) {
	long := strings.Repeat("x", maxChunkLineBytes)
	tests := map[string]struct {
		wire   string
		body   string
		done   bool
		beyond int
		bad    bool
	}{
		"two chunks":                {"3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n", "abc0123456789", true, 0, false},
		"extensions":                {"1;a=b\r\na\r\n1 ;c\r\nb\r\n0;d\r\n\r\n", "ab", true, 0, false},
		"trailer":                   {"1\r\na\r\n0\r\nX: y\r\nZ: w\r\n\r\n", "a", true, 0, false},
		"more behind it":            {"1\r\na\r\n0\r\n\r\nHTTP", "a", true, 4, false},
		"not at its end":            {"5\r\nabc", "abc", false, 0, false},
		"CR and LF inside":          {"4\r\n\r\n\r\n\r\n0\r\n\r\n", "\r\n\r\n", true, 0, false},
		"no size":                   {"1\r\na\r\n\r\n", "a", false, 0, true},
		"size that is no number":    {"1\r\na\r\nzz\r\n", "a", false, 0, true},
		"negative size":             {"-1\r\na", "", false, 0, true},
		"largest size":              {"ffffffffffffffff\r\nab", "ab", false, 0, false},
		"size beyond 64 bits":       {"1ffffffffffffffff\r\nab", "", false, 0, true},
		"bare LF behind a size":     {"1\na\r\n", "", false, 0, true},
		"bare LF in an extension":   {"1;x\na\r\n", "", false, 0, true},
		"no CR behind the data":     {"1\r\nab\r\n", "a", false, 0, true},
		"no LF behind the data":     {"1\r\na\r\r", "a", false, 0, true},
		"bare LF in a trailer":      {"0\r\nX: y\n\r\n", "", false, 0, true},
		"bare LF for a trailer":     {"0\r\n\n", "", false, 0, true},
		"CR within a trailer":       {"0\r\nX: y\rz\r\n\r\n", "", false, 0, true},
		"an answer for a trailer":   {"0\r\nHTTP/1.1 200 OK\r\n\r\n", "", false, 0, true},
		"folded trailer":            {"0\r\nX: y\r\n z\r\n\r\n", "", false, 0, true},
		"extension without an end":  {"1;" + long, "", false, 0, true},
		"trailer without an end":    {"0\r\nX: " + long, "", false, 0, true},
		"long extensions, one byte": {strings.Repeat("1;"+long[:1000]+"\r\na\r\n", 1000), "", false, 0, true},
	}
	for name, test := range tests {
		for _, size := range []int{1, 2, 3, 7, len(test.wire)} {
			f := framing{form: chunked}
			var body strings.Builder
			var err error
			done, beyond := false, 0
			for wire := test.wire; wire != "" && err == nil; {
				if done {
					beyond += len(wire)
					break
				}
				piece := []byte(wire[:min(size, len(wire))])
				wire = wire[len(piece):]
				var n, more int
				n, more, done, err = f.decode(piece)
				beyond += more
				body.Write(piece[:n])
			}
			if (err != nil) != test.bad || err != nil && !errors.Is(err, errChunk) || done != test.done || beyond != test.beyond {
				t.Errorf("%s, in pieces of %d: done %v, %d bytes beyond, error %v", name, size, done, beyond, err)
			}
			if got := body.String(); got != test.body && test.body != "" {
				t.Errorf("%s, in pieces of %d: %q, want %q", name, size, got, test.body)
			}
		}
	}
}

// Small chunks alone are no attack: engines send one per token.
func TestSmallChunksAreFine(t *testing.T) {
	f := framing{form: chunked}
	for range 100_000 {
		if n, _, _, err := f.decode([]byte("2\r\n\n\n\r\n")); n != 2 || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
}

func FuzzFraming(f *testing.F) {
	f.Add("3\r\nabc\r\n0\r\n\r\n", 2)
	f.Add("1;x\r\na\r\n0\r\nX: y\r\n\r\nmore", 5)
	f.Fuzz(func(t *testing.T, wire string, size int) {
		decode := func(size int) (body string, done bool, bad bool) {
			f := framing{form: chunked}
			for rest := wire; rest != ""; {
				piece := []byte(rest[:min(size, len(rest))])
				rest = rest[len(piece):]
				n, _, done, err := f.decode(piece)
				if body += string(piece[:n]); done || err != nil {
					return body, done, err != nil
				}
			}
			return body, false, false
		}
		body1, done1, bad1 := decode(max(len(wire), 1))
		body2, done2, bad2 := decode(max(size%64, 1))
		if body1 != body2 || done1 != done2 || bad1 != bad2 {
			t.Errorf("cut: %q %v %v; whole: %q %v %v", body2, done2, bad2, body1, done1, bad1)
		}
	})
}
