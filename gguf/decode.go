package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Limits of a header. Those in use stay below 32 MB.
const (
	// MaxHeaderBytes is how much of a file is read at most.
	MaxHeaderBytes = 128 << 20
	// MaxEntries is how many metadata entries a file may have.
	MaxEntries = 64 << 10
	// MaxKeyBytes is the length of a name, from the format's specification.
	MaxKeyBytes = 65535
	// MaxTexts is how many texts one list may hold. The longest in use, of
	// merges, have some 600,000.
	MaxTexts = 4 << 20
	// maxArrayDepth is how deep lists of lists may nest.
	maxArrayDepth = 4
)

// kind is the type of a value, numbered as in the file, but one higher, so
// that the zero kind means "not there".
type kind uint32

const (
	kindUint8 kind = iota + 1
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
	kindEnd
)

// width is how many bytes a value of a fixed size has, 0 for the others.
func (k kind) width() int {
	switch k {
	case kindUint8, kindInt8, kindBool:
		return 1
	case kindUint16, kindInt16:
		return 2
	case kindUint32, kindInt32, kindFloat32:
		return 4
	case kindUint64, kindInt64, kindFloat64:
		return 8
	}
	return 0
}

func (k kind) isSigned() bool {
	return k == kindInt8 || k == kindInt16 || k == kindInt32 || k == kindInt64
}

func (k kind) isInteger() bool {
	return k.isSigned() || k == kindUint8 || k == kindUint16 || k == kindUint32 || k == kindUint64
}

// bits reads a number of fixed size; signed ones are widened with their sign.
func (k kind) bits(order binary.ByteOrder, b []byte) uint64 {
	switch k {
	case kindInt8:
		return uint64(int8(b[0]))
	case kindInt16:
		return uint64(int16(order.Uint16(b)))
	case kindInt32:
		return uint64(int32(order.Uint32(b)))
	}
	switch k.width() {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(order.Uint16(b))
	case 4:
		return uint64(order.Uint32(b))
	default:
		return order.Uint64(b)
	}
}

// A value is one metadata entry. Lists of numbers stay as they are in the file
// until somebody asks; lists of lists are not kept.
type value struct {
	kind  kind
	bits  uint64
	text  string
	of    kind // the elements of a list
	texts []string
	raw   []byte
	order binary.ByteOrder
}

type decoder struct {
	in    *bufio.Reader
	order binary.ByteOrder
	left  int64 // bytes that may still be read
	small [8]byte
}

var errTooLarge = fmt.Errorf("the header is larger than the limit of %d bytes", MaxHeaderBytes)

func (d *decoder) file() (*File, error) {
	var magic [4]byte
	if err := d.read(magic[:]); err != nil || string(magic[:]) != "GGUF" {
		return nil, errors.New("this is not a .gguf file")
	}
	d.order = binary.LittleEndian
	version, err := d.number(kindUint32)
	if err != nil {
		return nil, err
	}
	if version&0xFFFF == 0 { // written on a big-endian machine
		d.order = binary.BigEndian
		version = version >> 24 & 0xFF
	}
	if version != 2 && version != 3 {
		return nil, fmt.Errorf("version %d of the format is not supported, only 2 and 3", version)
	}
	tensors, err := d.number(kindUint64)
	if err != nil {
		return nil, err
	}
	entries, err := d.number(kindUint64)
	if err != nil {
		return nil, err
	}
	if entries > MaxEntries {
		return nil, fmt.Errorf("%d metadata entries are above the limit of %d", entries, MaxEntries)
	}
	f := &File{Version: uint32(version), TensorCount: tensors, values: map[string]value{}}
	for range entries {
		key, err := d.text(MaxKeyBytes)
		if err != nil {
			return nil, fmt.Errorf("metadata name %d: %w", len(f.values), err)
		}
		v, err := d.value()
		if err != nil {
			return nil, fmt.Errorf("metadata %.100q: %w", key, err)
		}
		f.values[key] = v
	}
	return f, nil
}

// read fills b.
func (d *decoder) read(b []byte) error {
	if d.left -= int64(len(b)); d.left < 0 {
		return errTooLarge
	}
	_, err := io.ReadFull(d.in, b)
	return err
}

func (d *decoder) number(k kind) (uint64, error) {
	b := d.small[:k.width()]
	if err := d.read(b); err != nil {
		return 0, err
	}
	return k.bits(d.order, b), nil
}

// length reads a count of things that have at least size bytes each.
func (d *decoder) length(size int64) (int64, error) {
	n, err := d.number(kindUint64)
	if err != nil {
		return 0, err
	}
	if n > uint64(d.left/size) {
		return 0, fmt.Errorf("a length of %d: %w", n, errTooLarge)
	}
	return int64(n), nil
}

// bytes reads n bytes. Memory is taken as they come, not as they are announced.
func (d *decoder) bytes(n int64) ([]byte, error) {
	const step = 1 << 20
	var out []byte
	for n > 0 {
		k := min(n, step)
		out = append(out, make([]byte, k)...)
		if err := d.read(out[int64(len(out))-k:]); err != nil {
			return nil, err
		}
		n -= k
	}
	return out, nil
}

func (d *decoder) text(most int64) (string, error) {
	n, err := d.length(1)
	if err != nil {
		return "", err
	}
	if n > most {
		return "", fmt.Errorf("a length of %d is above the limit of %d", n, most)
	}
	b, err := d.bytes(n)
	return string(b), err
}

func (d *decoder) kind() (kind, error) {
	n, err := d.number(kindUint32)
	if k := kind(n) + 1; err != nil || n < uint64(kindEnd)-1 {
		return k, err
	}
	return 0, fmt.Errorf("unknown type %d", n)
}

func (d *decoder) value() (value, error) {
	k, err := d.kind()
	if err != nil {
		return value{}, err
	}
	switch k {
	case kindString:
		text, err := d.text(MaxHeaderBytes)
		return value{kind: k, text: text}, err
	case kindArray:
		return d.array(0)
	}
	bits, err := d.number(k)
	return value{kind: k, bits: bits}, err
}

func (d *decoder) array(depth int) (value, error) {
	of, err := d.kind()
	if err != nil {
		return value{}, err
	}
	v := value{kind: kindArray, of: of, order: d.order}
	switch {
	case of == kindString:
		v.texts, err = d.texts()
	case of == kindArray:
		if depth >= maxArrayDepth {
			return v, fmt.Errorf("lists nested deeper than %d", maxArrayDepth)
		}
		n, err := d.length(12) // a type and a length at least
		if err != nil {
			return v, err
		}
		for range n {
			if _, err := d.array(depth + 1); err != nil {
				return v, err
			}
		}
	default:
		n, err := d.length(int64(of.width()))
		if err != nil {
			return v, err
		}
		v.raw, err = d.bytes(n * int64(of.width()))
		return v, err
	}
	return v, err
}

// texts reads a list of texts; they share one string.
func (d *decoder) texts() ([]string, error) {
	n, err := d.length(8)
	if err != nil {
		return nil, err
	}
	if n > MaxTexts {
		return nil, fmt.Errorf("%d texts in a list are above the limit of %d", n, MaxTexts)
	}
	var all strings.Builder
	var ends []int
	for range n {
		size, err := d.length(1)
		if err != nil {
			return nil, err
		}
		b, err := d.bytes(size)
		if err != nil {
			return nil, err
		}
		all.Write(b)
		ends = append(ends, all.Len())
	}
	joined, from := all.String(), 0
	out := make([]string, len(ends))
	for i, end := range ends {
		out[i] = joined[from:end]
		from = end
	}
	return out, nil
}
