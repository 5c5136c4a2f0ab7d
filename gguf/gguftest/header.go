// Package gguftest writes .gguf headers for tests.
package gguftest

import (
	"encoding/binary"
	"fmt"
)

// An Entry is one metadata entry. Value is a string, bool, uint32, int32,
// float32, uint64, []string, []byte, []int32 or []float32.
type Entry struct {
	Key   string
	Value any
}

// Header returns a file of version 3, little endian, with the entries and no tensor.
func Header(entries ...Entry) []byte { return HeaderOrdered(binary.LittleEndian, entries...) }

// HeaderOrdered is like [Header] in the given byte order.
func HeaderOrdered(order binary.AppendByteOrder, entries ...Entry) []byte {
	out := order.AppendUint32([]byte("GGUF"), 3)
	out = order.AppendUint64(out, 0)
	out = order.AppendUint64(out, uint64(len(entries)))
	for _, e := range entries {
		out = appendText(out, order, e.Key)
		out = appendValue(out, order, e.Value)
	}
	return out
}

func appendText(out []byte, order binary.AppendByteOrder, text string) []byte {
	return append(order.AppendUint64(out, uint64(len(text))), text...)
}

// The numbers of the types are those of the GGUF specification.
func appendValue(out []byte, order binary.AppendByteOrder, value any) []byte {
	list := func(of uint32, n int) {
		out = order.AppendUint64(order.AppendUint32(order.AppendUint32(out, 9), of), uint64(n))
	}
	number := func(kind uint32, v any) {
		var err error
		if out, err = binary.Append(order.AppendUint32(out, kind), order.(binary.ByteOrder), v); err != nil {
			panic(err)
		}
	}
	switch v := value.(type) {
	case uint32:
		number(4, v)
	case int32:
		number(5, v)
	case float32:
		number(6, v)
	case bool:
		number(7, v)
	case uint64:
		number(10, v)
	case string:
		out = appendText(order.AppendUint32(out, 8), order, v)
	case []string:
		list(8, len(v))
		for _, s := range v {
			out = appendText(out, order, s)
		}
	case []byte:
		list(0, len(v))
		out = append(out, v...)
	case []int32:
		list(5, len(v))
		out, _ = binary.Append(out, order.(binary.ByteOrder), v)
	case []float32:
		list(6, len(v))
		out, _ = binary.Append(out, order.(binary.ByteOrder), v)
	default:
		panic(fmt.Sprintf("gguftest: no entry can hold a %T", value))
	}
	return out
}
