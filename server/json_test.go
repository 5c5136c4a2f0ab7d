package server

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/backend"
	"baton/engine"
	"baton/openai"
	"baton/preprocess"
)

// checkString compares appendString with encoding/json, which escapes more but
// must read the same string back.
func checkString(t *testing.T, s string) {
	t.Helper()
	got := appendString([]byte("x"), s)[1:]
	if again := appendString(nil, []byte(s)); string(again) != string(got) {
		t.Errorf("%q: as string %s, as bytes %s", s, got, again)
	}
	var back, want string
	if err := json.Unmarshal(got, &back); err != nil {
		t.Fatalf("%q: %v in %s", s, err, got)
	}
	theirs, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(theirs, &want); err != nil {
		t.Fatal(err)
	}
	if back != want {
		t.Errorf("%q reads back as %q, want %q", s, back, want)
	}
	if utf8.ValidString(s) && back != s {
		t.Errorf("%q reads back as %q", s, back)
	}
	if !utf8.Valid(got) || strings.ContainsFunc(string(got), func(r rune) bool {
		return r < ' ' || r == '\u0085' || r == '\u2028' || r == '\u2029'
	}) {
		t.Errorf("%q: %q may be taken for several lines", s, got)
	}
}

func TestAppendString(t *testing.T) {
	for r := rune(0); r <= utf8.MaxRune; r++ { // surrogates become U+FFFD
		if r > 0x3000 && r%997 != 0 {
			continue
		}
		checkString(t, "a"+string(r)+"b")
	}
	pieces := []string{"plain", "\"", "\\", "\n", "\x00", "\x7f", "é", "\u2028", "\u0085", "😀", "\xff", "\xe2\x80", "\xed\xa0\x80", "<&>", "\xf0\x9f"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var b strings.Builder
		for range random.IntN(8) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		checkString(t, b.String())
	}
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\u2028\"\xff")
	f.Fuzz(checkString)
}

func TestAppendLogprobIsAlwaysJSON(t *testing.T) {
	for _, v := range []float64{0, -0.5, -1e-9, -123456789, -1e300, math.Inf(-1), math.NaN(), math.Inf(1)} {
		var back float64
		if err := json.Unmarshal(appendLogprob(nil, v), &back); err != nil {
			t.Fatalf("%v: %v", v, err)
		}
		want := v
		if math.IsNaN(v) || math.IsInf(v, 0) {
			want = engine.MissingLogprob
		}
		if back != want {
			t.Errorf("%v reads back as %v", v, back)
		}
	}
}

func TestEnvelope(t *testing.T) {
	got := string(appendEnvelope(nil, &openai.Error{Message: `no "x"`, Type: "t"}))
	if want := `{"error":{"message":"no \"x\"","type":"t","param":null,"code":null}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The chunk appender against encoding/json, over random deltas.
func TestChunksReadBack(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	words := []string{"", "a", " \"quoted\"", "\n", "ü\u2028", "😀"}
	for range 500 {
		chat := random.IntN(2) == 0
		ep := &completions
		if chat {
			ep = &chatCompletions
		}
		p := preparedFor(1)
		output := engine.OutputOptions{Logprobs: random.IntN(2) == 0, TopLogprobs: random.IntN(3)}
		p.Choices[0].Request.Tokens.Output = output
		p.ReturnTokenIDs, p.ContinuousUsage = random.IntN(2) == 0, random.IntN(2) == 0
		var enc encoder
		enc.init(ep, p, 0, chunkHead(ep, "id-1", 12, `m"1`))
		var sent, got strings.Builder
		var raw []byte
		for n := range 1 + random.IntN(6) {
			d := token(n+1, words[random.IntN(len(words))])
			if output.Logprobs && len(d.Text) > 0 {
				d.Logprobs = []backend.Logprob{{Token: d.Text, Logprob: -1}}
			}
			sent.Write(d.Text)
			enc.add(&d)
			raw = append(raw, enc.take()...)
		}
		d := finish(9)
		enc.add(&d)
		raw = append(raw, enc.take()...)
		s := readStrict(t, append(raw, doneEvent...), ep.streamObject)
		got.WriteString(s.text(0))
		if got.String() != sent.String() || s.chunks[0].Model != `m"1` || s.chunks[0].ID != "id-1" || s.finishReasons()[0] != "stop" {
			t.Fatalf("sent %q, read %q from %s", sent.String(), got.String(), raw)
		}
	}
}

func preparedFor(n int) *preprocess.Prepared {
	p := &preprocess.Prepared{Model: "m", PromptTokens: 3}
	for i := range n {
		p.Choices = append(p.Choices, preprocess.Choice{Request: &backend.Request{Tokens: &engine.Request{ID: fmt.Sprintf("r-%03d", i), TokenIDs: promptIDs}}})
	}
	return p
}

func TestChunkAppenderDoesNotAllocate(t *testing.T) {
	for name, p := range map[string]*preprocess.Prepared{"plain": preparedFor(1), "everything": func() *preprocess.Prepared {
		p := preparedFor(1)
		p.Choices[0].Request.Tokens.Output = engine.OutputOptions{Logprobs: true, TopLogprobs: 2}
		p.ReturnTokenIDs, p.ContinuousUsage = true, true
		return p
	}()} {
		for _, ep := range []*endpoint{&chatCompletions, &completions} {
			var enc encoder
			enc.init(ep, p, 0, chunkHead(ep, "chatcmpl-x", 12, "m"))
			d := token(1, "héllo \u2028\n")
			if p.Choices[0].Request.Tokens.Output.Logprobs {
				d.Logprobs = []backend.Logprob{{Token: []byte("\xe2\x80"), Logprob: -1, Top: []backend.TopLogprob{{Token: []byte("a"), Logprob: -.5}, {Token: []byte("b"), Logprob: -2}}}}
			}
			enc.add(&d) // the first chunk, and the buffers
			if n := testing.AllocsPerRun(100, func() { enc.take(); enc.add(&d) }); n != 0 {
				t.Errorf("%s, %s: %v allocations for a chunk", name, ep.label, n)
			}
		}
	}
}

func BenchmarkChunk(b *testing.B) {
	var enc encoder
	enc.init(&chatCompletions, preparedFor(1), 0, chunkHead(&chatCompletions, "chatcmpl-ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1790000000, "org/model"))
	d := token(1, " token")
	b.ReportAllocs()
	for b.Loop() {
		enc.add(&d)
		enc.take()
	}
}
