package pattern

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// split returns the matches and what lies between them, without empty parts.
func split(p *Pattern, text string) []string {
	var m Matcher
	m.Reset(p, []byte(text))
	parts := []string{}
	from := 0
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	for {
		start, end, ok := m.Next()
		if !ok {
			break
		}
		add(text[from:start])
		add(text[start:end])
		from = end
	}
	add(text[from:])
	return parts
}

// What the reference's engine does with the same expressions and texts was
// recorded by test/models/record-small.mjs.
func TestSplitsAsTheReferenceDoes(t *testing.T) {
	data, err := os.ReadFile("testdata/splits.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Expression string
		Invalid    bool
		Splits     [][]string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		p, err := Compile(c.Expression)
		if c.Invalid {
			if err == nil {
				t.Errorf("%q compiles, but not in the reference", c.Expression)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range c.Splits {
			if got := split(p, s[0]); !slices.Equal(got, s[1:]) {
				t.Errorf("%q splits %q into %q, the reference into %q", c.Expression, s[0], got, s[1:])
			}
		}
	}
}

func TestWhatIsNotSupportedIsAnError(t *testing.T) {
	for _, expr := range []string{
		"(", ")", "a)", "(?", "(?<name>a)", "(?#c)", `(a)\1`, `\k<a>`, "[", "[a", "[[:alpha:]]", "[b-a]", `[a-\d]`, `\`, `a\`, `\p`, `\pL`, `\p{L`,
		`\p{}`, `\p{Nonsense}`, `\x`, `\x4`, `\x{110000}`, `\x{zz}`, `\xff`, `\u12`, "a{3,2}", "a{99999}", "*a", "a|+", "(?=a)*", "^*", "(?:a*)*", "(?:a*)+", "(?:|a){2,}",
		"(?<=ab)c", "(?<=a*)c", `\Q`, `\X`, `\R`, "a{2}?", "(?i:straße)", "(?i:Ss)", "(?i:fi)", "\xff", strings.Repeat("(", 200), strings.Repeat("(?:a?", 90) + strings.Repeat(")*", 90),
		strings.Repeat("a", maxExpressionBytes+1), "(?:(?:(?:a{1,999}b){999}){999})",
	} {
		if p, err := Compile(expr); err == nil {
			t.Errorf("%.60q compiles to %d instructions", expr, len(p.code))
		}
	}
}

func TestExpressionThatIsTooBigSaysSo(t *testing.T) {
	if _, err := Compile("(?:ab){900}(?:cd){900}"); !errors.Is(err, errTooBig) {
		t.Errorf("the error is %v, want %v", err, errTooBig)
	}
}

// Expressions that could take hours or gigabytes to compile.
func TestHostileExpressionsCompileFast(t *testing.T) {
	var classes strings.Builder
	for r := range rune(1000) {
		classes.WriteString("[a" + string('一'+r) + "]")
	}
	start := time.Now()
	for _, expr := range []string{
		"(?:(?:(?:(?:){9999}){9999}){9999}){9999}",
		strings.Repeat("(?:a?|b?|c?|d?)", 100),
		"(?i:" + strings.Repeat(`[\P{L}a]`, 1500) + ")",
		strings.Repeat(`\P{L}?`, 1900),
		"(?:" + strings.Repeat("a?|", 1500) + "){1000}",
		classes.String(),
	} {
		Compile(expr)
	}
	if d := time.Since(start); d > 60*time.Second {
		t.Errorf("took %v", d)
	}
	if _, err := Compile(classes.String()); !errors.Is(err, errTooManyTables) {
		t.Errorf("a thousand classes: %v", err)
	}
}

// An expression that would take exponential time gives up in bounded time, and
// what is left of the text is one piece.
func TestHostileExpressionEnds(t *testing.T) {
	p, err := Compile(`(?:a+)+b`)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	text := strings.Repeat("a", 60)
	if got := split(p, text); len(got) != 1 {
		t.Errorf("splits into %d parts", len(got))
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("took %v", d)
	}
}

// A text of a million repeats of a group must not use the goroutine's stack.
func TestLongGroupRepeat(t *testing.T) {
	p, err := Compile(`(?:ab|cd)+x|(?:ab|cd)+`)
	if err != nil {
		t.Fatal(err)
	}
	if got := split(p, strings.Repeat("abcd", 500_000)); len(got) != 1 {
		t.Errorf("splits into %d parts, want 1", len(got))
	}
}

func TestMatcherAllocatesNothing(t *testing.T) {
	p, err := Compile(`(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("It's  a text, with 12345 words\n\n  and more.")
	var m Matcher
	if n := testing.AllocsPerRun(100, func() {
		m.Reset(p, text)
		for {
			if _, _, ok := m.Next(); !ok {
				return
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations a text", n)
	}
}

func FuzzCompileAndSplit(f *testing.F) {
	for _, expr := range []string{`a|b*`, `[^\s\p{L}]+`, `(?i:'s)|\p{N}{1,3}`, `[a&&[^b]]`, `(?=(\d{3})+(?!\d))`, `(?>a+)b`} {
		f.Add(expr, "a text 123 's")
	}
	f.Fuzz(func(t *testing.T, expr, text string) {
		if len(expr) > 60 || len(text) > 60 || !utf8.ValidString(text) {
			return
		}
		p, err := Compile(expr)
		if err != nil {
			return
		}
		if got := strings.Join(split(p, text), ""); got != text {
			t.Errorf("%q splits %q into parts that are %q", expr, text, got)
		}
	})
}
