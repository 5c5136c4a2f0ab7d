package sim

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// encodeJSON encodes as the engines do: no escapes for HTML, no line end. The
// values are our own and always encode.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("sim: encode JSON: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// event is a server-sent event with v as its data.
func event(v any) []byte {
	data := append([]byte("data: "), encodeJSON(v)...)
	return append(data, "\n\n"...)
}

// A float is a number that is written with a decimal point always, as C++ and
// Python write theirs.
type float float64

// MarshalJSON implements json.Marshaler.
func (f float) MarshalJSON() ([]byte, error) {
	s := strconv.FormatFloat(float64(f), 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return []byte(s), nil
}

// single is a number that an engine holds in single precision.
func single(f float64) float { return float(float32(f)) }

// orDefault is a value that may be absent or null, which mean the same to the
// engines.
func orDefault[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
