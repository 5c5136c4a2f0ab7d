package frame

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// read reads an array of numbers of which g knows the beginning.
func read(text string, g *Growing) (ids []int32, resumed bool, err error) {
	var s Scanner
	s.Reset([]byte(text))
	if s.Array() {
		resumed = s.Resume(g)
		for s.Element() {
			ids = append(ids, s.Int32())
		}
		s.Remember(g)
	}
	return ids, resumed, s.End()
}

func TestGrowing(t *testing.T) {
	type step struct {
		text    string
		want    []int32 // that are read
		resumed bool
	}
	for name, steps := range map[string][]step{
		"grows":            {{"[]", nil, true}, {"[5]", []int32{5}, true}, {"[5,6,7]", []int32{6, 7}, true}, {"[5,6,7]", nil, true}, {"[5,6,7,8]", []int32{8}, true}},
		"with spaces":      {{"[ 5, 6 ]", []int32{5, 6}, true}, {"[ 5, 6, 7 ]", []int32{7}, true}, {"[5, 6, 7 ,8]", []int32{8}, true}},
		"a longer number":  {{"[5,6]", []int32{5, 6}, true}, {"[5,66]", []int32{5, 66}, false}},
		"another number":   {{"[5,6]", []int32{5, 6}, true}, {"[5,7,8]", []int32{5, 7, 8}, false}, {"[5,7,8,9]", []int32{9}, true}},
		"shorter":          {{"[5,6]", []int32{5, 6}, true}, {"[5]", []int32{5}, false}},
		"empty afterwards": {{"[5,6]", []int32{5, 6}, true}, {"[]", nil, false}},
	} {
		var g Growing
		for i, step := range steps {
			got, resumed, err := read(step.text, &g)
			if err != nil || resumed != step.resumed || !slices.Equal(got, step.want) {
				t.Errorf("%s: %d: %q: %v, %v, %v; want %v, %v", name, i, step.text, got, resumed, err, step.want, step.resumed)
			}
		}
	}
}

// What is jumped over was checked before; what follows it is checked now.
func TestGrowingChecksTheRest(t *testing.T) {
	for _, text := range []string{"[5,6", "[5,6,", "[5,6,]", "[5,6 7]", "[5,6}", "[5,6]]", "[5,6,7", "[5,6,-]"} {
		var g Growing
		if _, _, err := read("[5,6]", &g); err != nil {
			t.Fatal(err)
		}
		if ids, resumed, err := read(text, &g); err == nil {
			t.Errorf("%q: %v, resumed %v, and no error", text, ids, resumed)
		}
	}
}

// However an array goes on, resuming and reading it whole give the same.
func FuzzGrowing(f *testing.F) {
	f.Add("[1,2]", "[1,2,3]")
	f.Add("[1, 2]", "[1,22]")
	f.Add("[[1,null],[2,null]]", "[[1,null],[2,null],[3,null]]")
	f.Fuzz(func(t *testing.T, before, now string) {
		elements := func(text string, g *Growing) (all []string, resumed bool, err error) {
			var s Scanner
			s.Reset([]byte(text))
			if s.Array() {
				resumed = s.Resume(g)
				for s.Element() {
					all = append(all, string(s.Raw()))
				}
				s.Remember(g)
			}
			return all, resumed, s.End()
		}
		var g, fresh Growing
		known, _, err := elements(before, &g)
		if err != nil {
			return
		}
		whole, _, wantErr := elements(now, &fresh)
		rest, resumed, gotErr := elements(now, &g)
		if resumed {
			rest = append(known, rest...)
		}
		if (gotErr == nil) != (wantErr == nil) || gotErr == nil && !slices.Equal(rest, whole) {
			t.Errorf("%q after %q: %q, %v; read whole: %q, %v", now, before, rest, gotErr, whole, wantErr)
		}
	})
}

func BenchmarkGrowing(b *testing.B) {
	var text strings.Builder
	text.WriteString("[11111")
	for i := range 2000 {
		fmt.Fprintf(&text, ",%d", 10000+i)
	}
	before, now := []byte(text.String()+"]"), []byte(text.String()+",7]")
	var known Growing
	if _, _, err := read(string(before), &known); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		var s Scanner
		g := known
		s.Reset(now)
		if !s.Array() || !s.Resume(&g) || !s.Element() || s.Int32() != 7 || s.Element() {
			b.Fatal("not resumed")
		}
		s.Remember(&g)
	}
}
