package frame

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// walk reads any value with the Scanner's own methods.
func walk(s *Scanner) any {
	s.space()
	switch s.peek() {
	case '{':
		m := map[string]any{}
		for s.Object(); ; {
			key, ok := s.Key()
			if !ok {
				return m
			}
			name := string(key)
			m[name] = walk(s)
		}
	case '[':
		a := []any{}
		for s.Array(); s.Element(); {
			a = append(a, walk(s))
		}
		return a
	case '"':
		return string(Unquote(s.RawString()))
	case 't', 'f':
		return s.Bool()
	case 'n':
		s.Null()
		return nil
	}
	return s.Float()
}

// FuzzScanner: the Scanner accepts exactly what encoding/json accepts, with the
// same values, read or skipped.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{
		`{}`, `[]`, `null`, ` { "a" : [ 1 , -2.5e3 , true , null , "x\n\u00e9\ud83d\ude00" ] } `, `{"a":{"b":[[],{}]}}`,
		`{"a":1,}`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `01`, `-`, `1.`, `1e`, `1e400`, `"\x"`, `"\u12"`, "\"\x01\"", "\"\xff\"", `tru`, `[1 2]`, `{"a":1 "b":2}`,
		`{"k\u0065y":1,"key":2}`, `1 2`, ``, `[`, `{"token_ids":[12`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want any
		wantErr := json.Unmarshal(text, &want)
		if wantErr != nil && strings.Contains(wantErr.Error(), "cannot unmarshal number") {
			return // beyond float64: infinite here
		}
		var s Scanner
		s.Reset(text)
		got := walk(&s)
		err := s.End()
		if strings.Contains(string(text), "NaN") || strings.Contains(string(text), "Infinity") {
			return
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, encoding/json: %v", text, err, wantErr)
		}
		// Keys are compared, not shown, so their broken UTF-8 stays as it is.
		if err == nil && utf8.Valid(text) && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %#v, encoding/json: %#v", text, got, want)
		}
		s.Reset(text)
		s.Skip()
		if skipErr := s.End(); (skipErr == nil) != (err == nil) {
			t.Fatalf("%q: read: %v, skipped: %v", text, err, skipErr)
		}
	})
}

func TestInt(t *testing.T) {
	tests := map[string]int64{"0": 0, "-0": 0, "7": 7, "-12": -12, "2147483647": math.MaxInt32, " 5 ": 5}
	for text, want := range tests {
		var s Scanner
		s.Reset([]byte(text))
		if got := s.Int32(); got != int32(want) || s.End() != nil {
			t.Errorf("%q: %d, %v", text, got, s.err)
		}
	}
	for _, text := range []string{"1.0", "1e3", "2147483648", "-2147483649", "99999999999999999999", "NaN", `"1"`, "true", "null", "", "-"} {
		var s Scanner
		s.Reset([]byte(text))
		s.Int32()
		if err := s.End(); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q was taken for a 32-bit integer: %v", text, err)
		}
	}
}

func TestFloatsThatJSONLacks(t *testing.T) {
	var s Scanner
	s.Reset([]byte(`[NaN,-Infinity,Infinity,1e999]`))
	var got []float64
	for ok := s.Array(); ok && s.Element(); {
		got = append(got, s.Float())
	}
	if err := s.End(); err != nil || len(got) != 4 || !math.IsNaN(got[0]) || !math.IsInf(got[1], -1) || !math.IsInf(got[2], 1) || !math.IsInf(got[3], 1) {
		t.Errorf("%v, %v", got, err)
	}
}

// Every proper prefix of an object is an error, wherever it is cut.
func TestCut(t *testing.T) {
	text := `{"a":[12,345],"b":{"c":"x\u00e9"},"d":null,"e":-1.5e2,"f":true}`
	for i := range len(text) {
		var s Scanner
		s.Reset([]byte(text[:i]))
		walk(&s)
		if s.End() == nil {
			t.Errorf("%q was accepted", text[:i])
		}
	}
}

func TestDepth(t *testing.T) {
	for depth, ok := range map[int]bool{maxDepth: true, maxDepth + 1: false} {
		var s Scanner
		s.Reset([]byte(strings.Repeat("[", depth) + strings.Repeat("]", depth)))
		s.Skip()
		if (s.End() == nil) != ok {
			t.Errorf("depth %d: %v", depth, s.err)
		}
	}
}
