package gguf_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"baton/gguf"
	"baton/gguf/gguftest"
)

var entries = []gguftest.Entry{
	{Key: "general.architecture", Value: "llama"},
	{Key: "llama.context_length", Value: uint32(8192)},
	{Key: "big", Value: uint64(1 << 40)},
	{Key: "negative", Value: int32(-3)},
	{Key: "float", Value: float32(0.5)},
	{Key: "tokenizer.ggml.add_bos_token", Value: true},
	{Key: "no", Value: false},
	{Key: "tokenizer.ggml.tokens", Value: []string{"a", "", "Ġb"}},
	{Key: "tokenizer.ggml.token_type", Value: []int32{1, 3, -1}},
	{Key: "tokenizer.ggml.scores", Value: []float32{0, -1.5, 2}},
}

func TestRead(t *testing.T) {
	for name, order := range map[string]binary.AppendByteOrder{"little endian": binary.LittleEndian, "big endian": binary.BigEndian} {
		t.Run(name, func(t *testing.T) {
			f, err := gguf.Read(bytes.NewReader(append(gguftest.HeaderOrdered(order, entries...), "tensors and weights"...)))
			if err != nil {
				t.Fatal(err)
			}
			check(t, f)
		})
	}
}

func check(t *testing.T, f *gguf.File) {
	t.Helper()
	if f.Version != 3 || len(f.Keys()) != len(entries) || f.Keys()[0] != "big" {
		t.Errorf("version %d, keys %q", f.Version, f.Keys())
	}
	if s, ok := f.String("general.architecture"); s != "llama" || !ok {
		t.Errorf("String = %q, %v", s, ok)
	}
	for key, want := range map[string]uint64{"llama.context_length": 8192, "big": 1 << 40} {
		if n, ok := f.Uint(key); n != want || !ok {
			t.Errorf("Uint(%s) = %d, %v", key, n, ok)
		}
	}
	for _, key := range []string{"negative", "float", "no", "general.architecture", "absent", "tokenizer.ggml.tokens"} {
		if n, ok := f.Uint(key); n != 0 || ok {
			t.Errorf("Uint(%s) = %d, %v", key, n, ok)
		}
	}
	for key, want := range map[string]float64{"negative": -3, "float": 0.5, "big": 1 << 40} {
		if n, ok := f.Float(key); n != want || !ok {
			t.Errorf("Float(%s) = %v, %v", key, n, ok)
		}
	}
	if _, ok := f.Float("general.architecture"); ok {
		t.Error("a text is a number")
	}
	if v, ok := f.Bool("tokenizer.ggml.add_bos_token"); !v || !ok {
		t.Errorf("Bool = %v, %v", v, ok)
	}
	if v, ok := f.Bool("no"); v || !ok {
		t.Errorf("Bool(no) = %v, %v", v, ok)
	}
	if v, ok := f.Bool("absent"); v || ok {
		t.Errorf("Bool(absent) = %v, %v", v, ok)
	}
	if l, ok := f.Strings("tokenizer.ggml.tokens"); !ok || !slices.Equal(l, []string{"a", "", "Ġb"}) {
		t.Errorf("Strings = %q, %v", l, ok)
	}
	if l, ok := f.Ints("tokenizer.ggml.token_type"); !ok || !slices.Equal(l, []int64{1, 3, -1}) {
		t.Errorf("Ints = %v, %v", l, ok)
	}
	if l, ok := f.Floats("tokenizer.ggml.scores"); !ok || !slices.Equal(l, []float64{0, -1.5, 2}) {
		t.Errorf("Floats = %v, %v", l, ok)
	}
	if l, ok := f.Floats("tokenizer.ggml.token_type"); !ok || l[2] != -1 {
		t.Errorf("Floats of integers = %v, %v", l, ok)
	}
	if _, ok := f.Ints("tokenizer.ggml.scores"); ok {
		t.Error("floats are integers")
	}
	if _, ok := f.Strings("absent"); ok {
		t.Error("a list that is absent is there")
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, gguftest.Header(entries...), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	check(t, f)
	if _, err := gguf.Open(path + ".absent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opening nothing: %v", err)
	}
}

// Wherever a header is cut off, the error says that the file ends too early.
func TestTruncated(t *testing.T) {
	whole := gguftest.Header(entries...)
	for n := range whole {
		_, err := gguf.Read(bytes.NewReader(whole[:n]))
		if err == nil {
			t.Fatalf("%d of %d bytes are a whole header", n, len(whole))
		}
		if n >= 4 && !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "not a .gguf file") {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
}

func TestHostile(t *testing.T) {
	le := binary.LittleEndian
	head := func(version uint32, entries uint64) []byte {
		return le.AppendUint64(le.AppendUint64(le.AppendUint32([]byte("GGUF"), version), 0), entries)
	}
	key := func(b []byte) []byte { return append(le.AppendUint64(b, 1), 'k') }
	nested := key(head(3, 1))
	for range 10 {
		nested = le.AppendUint64(le.AppendUint32(le.AppendUint32(nested, 9), 9), 1)
	}
	for name, data := range map[string][]byte{
		"nothing":              nil,
		"another format":       []byte("PK\x03\x04 and more of it"),
		"version 1":            head(1, 1),
		"version 99":           head(99, 1),
		"too many entries":     head(3, gguf.MaxEntries+1),
		"a huge name":          le.AppendUint64(head(3, 1), 1<<60),
		"a long name":          append(le.AppendUint64(head(3, 1), gguf.MaxKeyBytes+1), make([]byte, gguf.MaxKeyBytes+1)...),
		"an unknown type":      le.AppendUint32(key(head(3, 1)), 77),
		"a huge text":          le.AppendUint64(le.AppendUint32(key(head(3, 1)), 8), 1<<62),
		"a huge list":          le.AppendUint64(le.AppendUint32(le.AppendUint32(key(head(3, 1)), 9), 4), 1<<61),
		"a huge list of texts": le.AppendUint64(le.AppendUint32(le.AppendUint32(key(head(3, 1)), 9), 8), 1<<40),
		"lists of lists":       nested,
	} {
		if _, err := gguf.Read(bytes.NewReader(data)); err == nil {
			t.Errorf("%s is read without an error", name)
		}
	}
}

// gguf.MaxEntries + 1 is one entry too many.

// A file that announces a gigabyte must not take it before it comes.
func TestAnnouncedLengthTakesNoMemory(t *testing.T) {
	le := binary.LittleEndian
	data := le.AppendUint64(le.AppendUint64(le.AppendUint32([]byte("GGUF"), 3), 0), 1)
	data = append(le.AppendUint64(data, 1), 'k')
	data = le.AppendUint64(le.AppendUint32(data, 8), gguf.MaxHeaderBytes-100)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := gguf.Read(bytes.NewReader(data)); err == nil {
		t.Error("read without an error")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 16<<20 {
		t.Errorf("%d bytes are taken for a text that does not come", got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(gguftest.Header(entries...))
	f.Add(gguftest.HeaderOrdered(binary.BigEndian, entries[:3]...))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := gguf.Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, k := range file.Keys() {
			file.String(k)
			file.Uint(k)
			file.Float(k)
			file.Bool(k)
			file.Strings(k)
			file.Ints(k)
			file.Floats(k)
		}
	})
}
