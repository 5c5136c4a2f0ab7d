package gguf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
)

// A File is the metadata of one .gguf file. It is immutable and safe for
// concurrent use.
type File struct {
	// Version is the version of the container format.
	Version uint32
	// TensorCount is how many tensors follow the metadata; they are not read.
	TensorCount uint64

	values map[string]value
}

// Open reads the header of the file at path and closes it again.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	defer file.Close()
	f, err := Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Read reads a header from r, and no further than the metadata's end (apart
// from what buffering takes).
func Read(r io.Reader) (*File, error) {
	d := decoder{in: bufio.NewReaderSize(r, 256<<10), left: MaxHeaderBytes}
	f, err := d.file()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the file ends within its header: %w", io.ErrUnexpectedEOF)
	}
	if err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	return f, nil
}

// Keys returns the names of all metadata entries, sorted.
func (f *File) Keys() []string { return slices.Sorted(maps.Keys(f.values)) }

// String returns the text under key; false if there is none or it is not a text.
func (f *File) String(key string) (string, bool) {
	v := f.values[key]
	return v.text, v.kind == kindString
}

// Uint returns the number under key, whatever its width in the file; false if
// there is none, or it is negative or not an integer.
func (f *File) Uint(key string) (uint64, bool) {
	v := f.values[key]
	if !v.kind.isInteger() || v.kind.isSigned() && int64(v.bits) < 0 {
		return 0, false
	}
	return v.bits, true
}

// Float returns the number under key, integers included; false if there is none.
func (f *File) Float(key string) (float64, bool) {
	v := f.values[key]
	switch {
	case v.kind == kindFloat32:
		return float64(math.Float32frombits(uint32(v.bits))), true
	case v.kind == kindFloat64:
		return math.Float64frombits(v.bits), true
	case v.kind.isSigned():
		return float64(int64(v.bits)), true
	}
	return float64(v.bits), v.kind.isInteger()
}

// Bool returns the truth value under key; false, false if there is none.
func (f *File) Bool(key string) (value, ok bool) {
	v := f.values[key]
	return v.kind == kindBool && v.bits != 0, v.kind == kindBool
}

// Strings returns the list of texts under key. The list belongs to the File.
func (f *File) Strings(key string) ([]string, bool) {
	v := f.values[key]
	return v.texts, v.kind == kindArray && v.of == kindString
}

// Ints returns the list of integers under key in a new slice, widened to 64
// bits. Unsigned numbers above the range of int64 come out negative.
func (f *File) Ints(key string) ([]int64, bool) {
	v := f.values[key]
	if v.kind != kindArray || !v.of.isInteger() {
		return nil, false
	}
	width := v.of.width()
	out := make([]int64, len(v.raw)/width)
	for i := range out {
		out[i] = int64(v.of.bits(v.order, v.raw[i*width:]))
	}
	return out, true
}

// Bytes returns the list of 8-bit integers under key. It belongs to the File.
func (f *File) Bytes(key string) ([]byte, bool) {
	v := f.values[key]
	return v.raw, v.kind == kindArray && (v.of == kindUint8 || v.of == kindInt8)
}

// Floats returns the list of floating-point numbers, or integers, under key in a new slice.
func (f *File) Floats(key string) ([]float64, bool) {
	v := f.values[key]
	if ints, ok := f.Ints(key); ok {
		out := make([]float64, len(ints))
		for i, n := range ints {
			out[i] = float64(n)
		}
		return out, true
	}
	if v.kind != kindArray || v.of != kindFloat32 && v.of != kindFloat64 {
		return nil, false
	}
	width := v.of.width()
	out := make([]float64, len(v.raw)/width)
	for i := range out {
		bits := v.of.bits(v.order, v.raw[i*width:])
		if v.of == kindFloat32 {
			out[i] = float64(math.Float32frombits(uint32(bits)))
		} else {
			out[i] = math.Float64frombits(bits)
		}
	}
	return out, true
}
