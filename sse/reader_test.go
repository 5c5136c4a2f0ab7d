package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReader(t *testing.T) {
	tests := []struct {
		name, stream string
		want         []string // "name|data"
		err          error
	}{
		{"nothing", "", nil, io.EOF},
		{"one", "data: a\n\n", []string{"|a"}, io.EOF},
		{"no space", "data:a\n\n", []string{"|a"}, io.EOF},
		{"only one space goes", "data:  a\n\n", []string{"| a"}, io.EOF},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}, io.EOF},
		{"mixed line ends", "data: a\r\n\ndata: b\n\r\n", []string{"|a", "|b"}, io.EOF},
		{"a lone CR is data", "data: a\rb\n\n", []string{"|a\rb"}, io.EOF},
		{"several data lines", "data: a\ndata: b\ndata:\n\n", []string{"|a\nb\n"}, io.EOF},
		{"empty data", "data\n\ndata:\n\n", []string{"|", "|"}, io.EOF},
		{"comments, id, retry", ": ping\n:\n\nid: 1\nretry: 5\ndata: a\n: x\nid: 2\n\n:\n\n", []string{"|a"}, io.EOF},
		{"unknown fields", "foo: 1\nbar\ndata: a\n\n", []string{"|a"}, io.EOF},
		{"name", "event: error\ndata: a\n\ndata: b\n\n", []string{"error|a", "|b"}, io.EOF},
		{"a name without data is no event", "event: x\n\ndata: a\n\n", []string{"|a"}, io.EOF},
		{"old llama.cpp error", "data: a\n\nerror: {\"code\":500}\n\n", []string{"|a", `error|{"code":500}`}, io.EOF},
		{"byte order mark", "\ufeffdata: a\n\n\ufeffdata: b\n\n", []string{"|a"}, io.EOF},
		{"end inside a line", "data: a\n\ndata: b", []string{"|a"}, io.ErrUnexpectedEOF},
		{"end before the blank line", "data: a\n\ndata: b\n", []string{"|a"}, io.ErrUnexpectedEOF},
		{"end inside the blank line", "data: a\n\ndata: b\n\r", []string{"|a"}, io.ErrUnexpectedEOF},
		{"end inside a name", "event: b\n", nil, io.ErrUnexpectedEOF},
		{"end after a comment", "data: a\n\n: ping\n", []string{"|a"}, io.EOF},
		{"more blank lines", "\n\ndata: a\n\n\n\ndata: b\n\n\n", []string{"|a", "|b"}, io.EOF},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for name, src := range map[string]io.Reader{
				"whole":        strings.NewReader(test.stream),
				"byte by byte": iotest.OneByteReader(strings.NewReader(test.stream)),
				"with error":   iotest.DataErrReader(strings.NewReader(test.stream)),
			} {
				got, err := readAll(NewReader(src))
				if !reflect.DeepEqual(got, test.want) || err != test.err {
					t.Errorf("%s: got %q, %v; want %q, %v", name, got, err, test.want, test.err)
				}
			}
		})
	}
}

func TestReaderKeepsUnderlyingError(t *testing.T) {
	boom := errors.New("boom")
	r := NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(boom)))
	got, err := readAll(r)
	if len(got) != 1 || err != boom {
		t.Errorf("got %q, %v; want one event and the reader's own error", got, err)
	}
	if _, err := r.Next(); err != boom {
		t.Errorf("a second call returned %v; errors are final", err)
	}
}

func TestReaderLimits(t *testing.T) {
	const limit = 10
	tests := []struct {
		stream string
		ok     bool
	}{
		{"data:45678\n\n", true},
		{": 34567890\ndata: a\n\n", true},
		{": 345678901\ndata: a\n\n", false},
		{": 34567890123456789", false},
		{"data:1234\ndata:1234\n\n", true},
		{"data:1234\ndata:1234\ndata:12\n\n", false},
	}
	for _, test := range tests {
		for name, src := range map[string]io.Reader{
			"whole":        strings.NewReader(test.stream),
			"byte by byte": iotest.OneByteReader(strings.NewReader(test.stream)),
		} {
			r := NewReader(src)
			r.LimitEvent(limit)
			_, err := readAll(r)
			if got := !errors.Is(err, ErrTooLong); got != test.ok {
				t.Errorf("%s %q: err %v, want too long: %v", name, test.stream, err, !test.ok)
			}
		}
	}
}

func TestReaderNoProgress(t *testing.T) {
	if _, err := NewReader(stuck{}).Next(); err != io.ErrNoProgress {
		t.Errorf("got %v, want io.ErrNoProgress", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// A large event must not leave a large buffer behind.
func TestReaderShrinks(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	r := NewReader(strings.NewReader("data: " + large + "\n\ndata: a\n\ndata: b\n\n"))
	if e, err := r.Next(); err != nil || len(e.Data) != len(large) {
		t.Fatalf("large event: %d bytes, %v", len(e.Data), err)
	}
	for _, want := range []string{"a", "b"} {
		if e, err := r.Next(); err != nil || string(e.Data) != want {
			t.Fatalf("got %q, %v; want %q", e.Data, err, want)
		}
	}
	if kept := len(r.buf) + cap(r.data); kept > keepBytes {
		t.Errorf("%d bytes are kept after a large event", kept)
	}
}

func TestReaderDoesNotAllocate(t *testing.T) {
	r := NewReader(forever("event: e\ndata: {\"a\":1}\n\n"))
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per event", n)
	}
}

// forever reads as an endless repetition of itself.
type forever string

func (f forever) Read(p []byte) (int, error) {
	n := 0
	for n+len(f) <= len(p) {
		n += copy(p[n:], f)
	}
	if n == 0 {
		return 0, fmt.Errorf("room for %d bytes only", len(p))
	}
	return n, nil
}

// FuzzReader: any chunking of the same bytes gives the same events and the same
// end, and Buffered tells exactly whether the next event needs a read.
func FuzzReader(f *testing.F) {
	for _, s := range []string{
		"data: a\n\n", "data:a\r\n\r\n: c\nevent: x\ndata: b\n", "error: {}\n\ndata: \n\n\n:", "\ufeffdata: a\n\n",
		"data: a\ndata: b\n\ndata: c\n\n:\n\n", "event: x\n\ndata\n\n\r\n",
	} {
		f.Add([]byte(s), uint64(1))
		f.Add([]byte(s), uint64(0xfedcba9876543210))
	}
	f.Fuzz(func(t *testing.T, stream []byte, cuts uint64) {
		want, wantErr := readAll(NewReader(bytes.NewReader(stream)))

		src := &chunks{rest: stream, cuts: cuts}
		r := NewReader(src)
		var got []string
		var gotErr error
		for {
			buffered, reads := r.Buffered(), src.reads
			e, err := r.Next()
			if err == nil && buffered != (src.reads == reads) {
				t.Fatalf("Buffered said %v, Next made %d reads", buffered, src.reads-reads)
			}
			if err != nil {
				if buffered {
					t.Fatalf("Buffered promised an event, Next said %v", err)
				}
				gotErr = err
				break
			}
			got = append(got, string(e.Name)+"|"+string(e.Data))
		}
		if !reflect.DeepEqual(got, want) || gotErr != wantErr {
			t.Fatalf("chunked: %q, %v\nwhole:   %q, %v", got, gotErr, want, wantErr)
		}
	})
}

// chunks reads as rest, in pieces whose lengths come from cuts.
type chunks struct {
	rest  []byte
	cuts  uint64
	reads int
}

func (c *chunks) Read(p []byte) (int, error) {
	c.reads++
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := min(1+int(c.cuts%7), len(c.rest), len(p))
	c.cuts = c.cuts>>3 | c.cuts<<61
	copy(p, c.rest[:n])
	c.rest = c.rest[n:]
	return n, nil
}

func readAll(r *Reader) ([]string, error) {
	var events []string
	for {
		e, err := r.Next()
		if err != nil {
			return events, err
		}
		events = append(events, string(e.Name)+"|"+string(e.Data))
	}
}

func BenchmarkReader(b *testing.B) {
	r := NewReader(forever(`data: {"index":0,"content":" of","tokens":[282],"stop":false,"id_slot":-1,"tokens_predicted":1,"tokens_evaluated":2}` + "\n\n"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}
