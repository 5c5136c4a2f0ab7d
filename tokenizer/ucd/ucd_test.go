package ucd

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// The generated file is current when it says what the recording says.
func TestTablesAreCurrent(t *testing.T) {
	data, err := os.ReadFile("unicode.txt")
	if err != nil {
		t.Fatal(err)
	}
	lowered := map[rune][]rune{}
	names := 0
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if fields[0] == "lower" {
			from, to, _ := strings.Cut(fields[1], "=")
			for c := range strings.SplitSeq(to, ",") {
				lowered[hex(t, from)] = append(lowered[hex(t, from)], hex(t, c))
			}
			continue
		}
		names++
		var want Set
		for _, r := range fields[1:] {
			lo, hi, two := strings.Cut(r, "-")
			if !two {
				hi = lo
			}
			want = append(want, Range{hex(t, lo), hex(t, hi)})
		}
		if got, ok := Named(fields[0]); !ok || !slices.Equal(got, want) {
			t.Errorf("%s in tables.go is not what unicode.txt records: run go generate", fields[0])
		}
	}
	if names != len(sets) {
		t.Errorf("tables.go has %d sets, unicode.txt %d: run go generate", len(sets), names)
	}
	for r := rune(0); r <= MaxRune; r++ {
		want := lowered[r]
		if want == nil {
			want = []rune{r}
		}
		if got := ToLower(nil, r); !slices.Equal(got, want) {
			t.Fatalf("ToLower(%U) = %U, recorded %U", r, got, want)
		}
	}
}

func hex(t *testing.T, s string) rune {
	t.Helper()
	n, err := strconv.ParseInt(s, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	return rune(n)
}

func TestTableAgreesWithItsSet(t *testing.T) {
	for _, name := range []string{"L", "Han", RegexWord, "C"} {
		set := MustNamed(name)
		table, not := set.Table(), set.Not().Table()
		for r := rune(0); r <= MaxRune; r++ {
			if table.Has(r) != set.Contains(r) || not.Has(r) == table.Has(r) || r < 0x80 && table.HasByte(byte(r)) != table.Has(r) {
				t.Fatalf("%s: table and set disagree on %U", name, r)
			}
		}
	}
}

func TestSetAlgebra(t *testing.T) {
	a, b := Of(Range{'a', 'f'}, Range{'x', 'z'}, Range{'c', 'h'}), Runes('h', 'i', 'x')
	if want := (Set{{'a', 'h'}, {'x', 'z'}}); !slices.Equal(a, want) {
		t.Errorf("Of = %v, want %v", a, want)
	}
	if want := (Set{{'h', 'h'}, {'x', 'x'}}); !slices.Equal(a.And(b), want) {
		t.Errorf("And = %v, want %v", a.And(b), want)
	}
	if want := (Set{{'a', 'i'}, {'x', 'z'}}); !slices.Equal(a.Union(b), want) {
		t.Errorf("Union = %v, want %v", a.Union(b), want)
	}
	if !slices.Equal(a.Not().Not(), a) {
		t.Errorf("Not twice = %v, want %v", a.Not().Not(), a)
	}
	if got := Set(nil).Not(); !slices.Equal(got, Set{{0, MaxRune}}) {
		t.Errorf("not nothing = %v", got)
	}
}

// A recording that lost a category would still be current; Go's own tables tell.
func TestCategoriesAreNearlyThoseOfGo(t *testing.T) {
	for name, table := range map[string]*unicode.RangeTable{"L": unicode.L, "M": unicode.M, "N": unicode.N, "P": unicode.P, "S": unicode.S, "Z": unicode.Z} {
		set, other := MustNamed(name).Table(), 0
		for r := rune(0); r <= MaxRune; r++ {
			if set.Has(r) != unicode.Is(table, r) {
				other++
			}
		}
		if other > 6000 {
			t.Errorf("%s differs from Go's table in %d code points", name, other)
		}
	}
}
