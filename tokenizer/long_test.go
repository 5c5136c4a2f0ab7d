package tokenizer

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// encodeInParts encodes text in parts of this size.
func encodeInParts(tok *Tokenizer, text string, partBytes int) []int32 {
	tok.testPartBytes = partBytes
	defer func() { tok.testPartBytes = 0 }()
	return tok.Encode(text, true)
}

// inOnePart is how it is without any of long.go.
func inOnePart(tok *Tokenizer, text string) []int32 { return encodeInParts(tok, text, 1<<40) }

// roughText has what makes splits hard to tell from the middle: runs of blanks,
// digits and line breaks, contractions, characters of several bytes, added tokens.
func roughText(random *rand.Rand, size int) string {
	parts := []string{
		"hello", " world", "the ", "  ", "     ", "\n", "\n\n\n", " \n \n", "'s", "'LL", "don't", "1", "12345678901234567890", " 3.14", "你好世界", "é", "e\u0301",
		"😀", "👩‍👩‍👧", "\t\t", "\u00a0", "\u2003", "▁", "▁▁▁", "Ġ", "<|end|>", "<tool>", "<|im_start|>", "<|eot_id|>", "</s>", "<bos>", "!?!?!?", "____", "()[]{}", "Straße", "x", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"\r\n", "/* */", "https://a.b/c?d=1", "\u0301\u0301", "ァイ", ">▁</", "><",
	}
	var b strings.Builder
	for b.Len() < size {
		part := parts[random.IntN(len(parts))]
		for range 1 << random.IntN(5) >> random.IntN(5) {
			b.WriteString(part)
		}
	}
	return b.String()
}

func checkParts(t *testing.T, tok *Tokenizer, text string, partBytes int) {
	t.Helper()
	want := inOnePart(tok, text)
	if got := encodeInParts(tok, text, partBytes); !slices.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Fatalf("%q in parts of %d bytes: %d ids, in one %d; the first other one is number %d", text, partBytes, len(got), len(want), at)
	}
}

// In parts a text becomes what it becomes as a whole, with every tokenizer.
func TestLongTextInParts(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, c := range smallCases(t) {
		tok, err := Parse(c.file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(c.Name, func(t *testing.T) {
			for i := range 60 {
				checkParts(t, tok, roughText(random, 20<<(i%6)), 4+i)
			}
		})
	}
}

func TestLongTextInPartsOfModels(t *testing.T) {
	eachModel(t, func(t *testing.T, tok *Tokenizer) {
		random := rand.New(rand.NewPCG(7, 8))
		for i := range 100 {
			checkParts(t, tok, roughText(random, 50<<(i%7)), 5+2*i)
		}
		corpus := testCorpus(t)
		whole := strings.Join(corpus.Texts, "\n")
		for _, text := range []string{corpus.Bench["mixed 100 kB"], whole[:min(len(whole), 300_000)], strings.Repeat("no digit or sign in this one ", 5000), strings.Repeat("1234567 ", 20_000)} {
			for _, part := range []int{100, 1000, usualPartBytes} {
				checkParts(t, tok, text, part)
			}
		}
	})
}

func FuzzLongText(f *testing.F) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 8 {
		f.Add(roughText(random, 200), uint8(random.IntN(50)))
	}
	var toks []*Tokenizer
	for _, c := range smallCases(f) {
		tok, err := Parse(c.file)
		if err != nil {
			f.Fatal(err)
		}
		toks = append(toks, tok)
	}
	f.Fuzz(func(t *testing.T, text string, part uint8) {
		for _, tok := range toks {
			checkParts(t, tok, text, int(part)+1)
		}
	})
}

// A text that takes too many steps back is given up where one goroutine gives it up.
func TestLongTextOfManySteps(t *testing.T) {
	const file = `{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(?:a|aa)+c|b"},"behavior":"Isolated","invert":false},` +
		`"decoder":{"type":"Fuse"},"model":{"type":"BPE","vocab":{"a":0,"b":1,"aa":2,"aab":3},"merges":["a a","aa b"]}}`
	tok, err := Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("b", 50) + strings.Repeat(strings.Repeat("a", 25)+"b", 20)
	checkParts(t, tok, text, 100)
	e := tok.encoder(nil)
	tok.testPartBytes = 100
	defer func() { tok.testPartBytes = 0 }()
	if e.longPiece([]byte(text), true, 0) {
		t.Error("the text does not take too many steps back")
	}
}

// What breaks in a helper breaks the goroutine that asked it, which is prepared for it.
func TestHelperPanics(t *testing.T) {
	tok := small(t, "byte level")
	defer func() {
		if r := recover(); r != "broken" {
			t.Errorf("recovered %v", r)
		}
		if n := helping.Load(); n != 0 {
			t.Errorf("%d helpers are left", n)
		}
	}()
	var all sync.WaitGroup
	all.Add(runtime.GOMAXPROCS(0))
	tok.encoder(nil).eachPart(runtime.GOMAXPROCS(0), func(*encoder, int) {
		all.Done()
		all.Wait() // each goroutine has one
		panic("broken")
	})
}

func TestEncodingEndsEarly(t *testing.T) {
	tok := small(t, "byte level")
	text := strings.Repeat("hello world <|end|> the 123 ", 20_000)
	got, err := tok.EncodeConversation(t.Context(), text, true, "")
	if err != nil || !slices.Equal(got, tok.Encode(text, true)) {
		t.Errorf("%d ids, %v", len(got), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, text := range []string{"hello", text, strings.Repeat("hello world ", 40_000)} {
		if ids, err := tok.EncodeConversation(ctx, text, true, ""); ids != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%d ids, %v after the end", len(ids), err)
		}
	}
	if n := helping.Load(); n != 0 {
		t.Errorf("%d helpers are left", n)
	}
}

// Many long texts at once: the helpers are few, and each text is whole.
func TestLongTextsAtOnce(t *testing.T) {
	tok := small(t, "byte level")
	random := rand.New(rand.NewPCG(11, 12))
	texts, want := make([]string, 8), make([][]int32, 8)
	for i := range texts {
		texts[i] = roughText(random, 200_000)
		want[i] = inOnePart(tok, texts[i])
	}
	var group sync.WaitGroup
	for i := range texts {
		group.Go(func() {
			for range 3 {
				if got := tok.Encode(texts[i], true); !slices.Equal(got, want[i]) {
					t.Error("the ids are others")
				}
			}
		})
	}
	group.Wait()
}
