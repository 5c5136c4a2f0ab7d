package tokenizer

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func smallFile(tb testing.TB, name string) []byte {
	tb.Helper()
	for _, c := range smallCases(tb) {
		if c.Name == name {
			return c.file
		}
	}
	tb.Fatalf("no small tokenizer is named %q", name)
	return nil
}

func TestLoad(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "tokenizer.json")
	if err := os.WriteFile(path, smallFile(t, "byte level"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{folder, path} {
		tok, err := Load(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Encode("hello world", false); !slices.Equal(got, []int32{259, 264}) {
			t.Errorf("%s: %v", p, got)
		}
	}
	if _, err := Load(t.TempDir()); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(folder); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a broken file: the error %v does not name it", err)
	}
}

func TestVocabulary(t *testing.T) {
	for _, name := range []string{"byte level", "pieces", "flags", "bytes that are no token", "metaspace first", "no decoder", "normalized special tokens"} {
		tok := small(t, name)
		for id := int32(-1); int(id) <= tok.Size(); id++ {
			token, ok := tok.Token(id)
			if ok != (tok.Bytes(id) != nil) {
				t.Errorf("%s: id %d has a token: %v, but its bytes are %q", name, id, ok, tok.Bytes(id))
			}
			if !ok {
				if tok.IsSpecial(id) || tok.Decode([]int32{id}, false) != "" {
					t.Errorf("%s: the unknown id %d is special or has a text", name, id)
				}
				continue
			}
			if back, ok := tok.ID(token); !ok || back != id {
				if again, _ := tok.Token(back); again != token { // two ids may share a spelling
					t.Errorf("%s: token %q of id %d has the id %d, %v", name, token, id, back, ok)
				}
			}
		}
		if _, ok := tok.Token(int32(tok.Size()) - 1); !ok {
			t.Errorf("%s: the largest id, %d, is unused", name, tok.Size()-1)
		}
		if id, ok := tok.ID("no such token"); ok {
			t.Errorf("%s: what is no token has the id %d", name, id)
		}
	}
}

func TestBytes(t *testing.T) {
	bytes, pieces := small(t, "byte level"), small(t, "pieces")
	for _, c := range []struct {
		tok   *Tokenizer
		token string
		want  string
	}{
		{bytes, "Ġworld", " world"}, {bytes, "ä½", "\xe4\xbd"}, {bytes, "ð", "\xf0"}, {bytes, "<|end|>", "<|end|>"},
		{pieces, "▁hello", " hello"}, {pieces, "<0xE4>", "\xe4"}, {pieces, "é", "é"}, {pieces, "<s>", "<s>"},
	} {
		id, ok := c.tok.ID(c.token)
		if got := string(c.tok.Bytes(id)); !ok || got != c.want {
			t.Errorf("Bytes of %q = %q, want %q", c.token, got, c.want)
		}
	}
	if id, _ := bytes.ID("<|end|>"); !bytes.IsSpecial(id) {
		t.Error("<|end|> is not special")
	}
	if id, _ := bytes.ID("<tool>"); bytes.IsSpecial(id) {
		t.Error("<tool> is special")
	}
	for _, id := range []int32{-1, -1 << 31, 1 << 30} {
		if bytes.Bytes(id) != nil || bytes.IsSpecial(id) {
			t.Errorf("the id %d is not unknown", id)
		}
	}
}

// What is decided comes out at once, and nothing else does.
func TestDecoderHoldsBackWhatIsUndecided(t *testing.T) {
	step := func(name string, tokens []string, want []string) {
		t.Helper()
		tok := small(t, name)
		d := tok.NewDecoder(true)
		for i, token := range tokens {
			id, ok := tok.ID(token)
			if !ok {
				t.Fatalf("%s: no token %q", name, token)
			}
			if got := string(d.Append(nil, id)); got != want[i] {
				t.Errorf("%s: after %q comes %q, want %q", name, tokens[:i+1], got, want[i])
			}
		}
		if got := string(d.Flush(nil)); got != want[len(tokens)] {
			t.Errorf("%s: at the end of %q comes %q, want %q", name, tokens, got, want[len(tokens)])
		}
	}
	step("byte level", []string{"Ġworld", "ä½", "ł", "a"}, []string{" world", "", "你", "a", ""})
	step("byte level", []string{"ä½", "<|end|>", "ł"}, []string{"", "", "你", ""}) // a skipped token decides nothing
	step("byte level", []string{"ä½", "h"}, []string{"", "\uFFFDh", ""})
	step("byte level", []string{"ð", "Ł"}, []string{"", "", "\uFFFD"})
	step("byte level", []string{"ł", "ł"}, []string{"\uFFFD", "\uFFFD", ""})
	step("pieces", []string{"▁hello", "▁world"}, []string{"hello", " world", ""})
	step("pieces", []string{"▁", "▁hello"}, []string{"", " hello", ""})
	step("pieces", []string{"<0xE4>", "<0xBD>", "<0xA0>", "a"}, []string{"", "", "", "你a", ""})
	step("pieces", []string{"a", "<0xE4>", "<0xBD>"}, []string{"a", "", "", "\uFFFD\uFFFD"})
	step("pieces", []string{"<0x41>", "<0xFF>", "b"}, []string{"", "", "\uFFFD\uFFFDb", ""})
}

func TestDecoderCanBeUsedAgain(t *testing.T) {
	for _, c := range smallCases(t) {
		tok, err := Parse(c.file)
		if err != nil {
			t.Fatal(err)
		}
		d := tok.NewDecoder(false)
		for _, e := range c.Decoded {
			var got []byte
			for _, id := range e.IDs {
				got = d.Append(got, id)
			}
			if got = d.Flush(got); string(got) != e.Text {
				t.Errorf("%s: %v decodes to %q, want %q", c.Name, e.IDs, got, e.Text)
			}
		}
	}
}

func TestDecoderAllocatesNothing(t *testing.T) {
	for _, name := range []string{"byte level", "pieces"} {
		tok := small(t, name)
		ids := tok.Encode("hello world, 你好 and 😀 the end", false)
		d := tok.NewDecoder(true)
		text := make([]byte, 0, 1024)
		for _, id := range ids { // what is held back may grow once
			text = d.Append(text, id)
		}
		if n := testing.AllocsPerRun(100, func() {
			text = text[:0]
			for _, id := range ids {
				text = d.Append(text, id)
			}
			text = d.Flush(text)
		}); n != 0 {
			t.Errorf("%s: %v allocations for %d tokens", name, n, len(ids))
		}
	}
}

func TestAppendEncodeAllocatesLittle(t *testing.T) {
	tok := small(t, "byte level")
	text := strings.Repeat("hello world, 你好 and 😀 the end. ", 50)
	ids := tok.Encode(text, true)
	if n := testing.AllocsPerRun(20, func() { ids = tok.AppendEncode(ids[:0], text, true) }); n > 2 {
		t.Errorf("%v allocations for a text that was seen before", n)
	}
	if got := tok.AppendEncode([]int32{-1, -2}, "hello", false); !slices.Equal(got, []int32{-1, -2, 259}) {
		t.Errorf("AppendEncode gives %v", got)
	}
}

func TestEncodeFromManyGoroutines(t *testing.T) {
	for _, name := range []string{"byte level", "pieces", "split Contiguous", "digits"} {
		tok := small(t, name)
		texts := []string{"hello world", "你好 the 123", "aaaa bc abc", strings.Repeat("the hello ", 200)}
		want := make([][]int32, len(texts))
		for i, text := range texts {
			want[i] = small(t, name).Encode(text, true)
		}
		var group sync.WaitGroup
		for g := range 8 {
			group.Go(func() {
				for i := range 50 {
					k := (g + i) % len(texts)
					if got := tok.Encode(texts[k], true); !slices.Equal(got, want[k]) {
						t.Errorf("%s: %.20q is %v", name, texts[k], got)
						return
					}
				}
			})
		}
		group.Wait()
	}
}

// Bytes that are not UTF-8 count as the replacement character, one for each
// maximal part, as if the text had been repaired before.
func TestEncodeInvalidUTF8(t *testing.T) {
	tok := small(t, "byte level")
	for in, repaired := range map[string]string{"a\xffb": "a\uFFFDb", "\xe4\xbd": "\uFFFD", "\xe4\xbdx\xf0\x9f\x98": "\uFFFDx\uFFFD", "\xed\xa0\x80": "\uFFFD\uFFFD\uFFFD", "\xc0\xaf": "\uFFFD\uFFFD"} {
		if got, want := tok.Encode(in, false), tok.Encode(repaired, false); !slices.Equal(got, want) {
			t.Errorf("%q is %v, %q is %v", in, got, repaired, want)
		}
	}
}

// A word without any split must not cost the square of its length.
func TestLongWord(t *testing.T) {
	tok := small(t, "byte level without split")
	text := strings.Repeat("hello the world in abc ", 40_000) // about a megabyte
	if got := tok.Decode(tok.Encode(text, false), false); got != text {
		t.Error("the text does not come back")
	}
}

// A word that no honest client sends is cut and takes bounded memory.
func TestEndlessWord(t *testing.T) {
	for _, name := range []string{"byte level without split", "pieces"} {
		tok := small(t, name)
		text := strings.Repeat("éa", 2*maxWordBytes/3)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ids := tok.Encode(text, false)
		runtime.ReadMemStats(&after)
		if got := tok.Decode(ids, false); got != text {
			t.Errorf("%s: the text of %d bytes comes back with %d", name, len(text), len(got))
		}
		if got := (after.TotalAlloc - before.TotalAlloc) / uint64(len(text)); got > 80 {
			t.Errorf("%s: %d bytes are taken for each byte of the text", name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range smallCases(f) {
		if len(c.file) < 20_000 && strings.Contains("byte level flags pieces metaspace always strip three NFC digits", c.Name) {
			f.Add(c.file)
		}
	}
	for _, c := range hostileFiles {
		if len(c.file) < 2000 {
			f.Add([]byte(c.file))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Parse(data)
		if err != nil {
			return
		}
		for _, text := range []string{"hello world 123", "<|end|> ▁x \u0301é", "aaaaaaaaaaaa"} {
			ids := tok.Encode(text, true)
			for _, id := range ids {
				if id < 0 || int(id) >= tok.Size() {
					t.Fatalf("%q has the id %d, the vocabulary only %d", text, id, tok.Size())
				}
			}
			if got := tok.Decode(ids, true); !utf8.ValidString(got) {
				t.Fatalf("%v decodes to %q", ids, got)
			}
		}
	})
}

// Decoding id by id, in any portions, gives what decoding at once does, and
// every portion is valid text.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{228, 189, 160, 0, 1, 2, 255, 240, 159, 152, 128}, uint8(3))
	f.Add([]byte("hello world"), uint8(1))
	var toks []*Tokenizer
	for _, name := range []string{"byte level", "pieces", "strip three", "metaspace always", "metaspace first", "no decoder", "byte level decoder over pieces", "bytes, no decoder"} {
		toks = append(toks, small(f, name))
	}
	f.Fuzz(func(t *testing.T, data []byte, portion uint8) {
		for _, tok := range toks {
			ids := make([]int32, len(data))
			for i, b := range data {
				ids[i] = int32(b) + int32(i*7%50) // all of the vocabulary, and a little more
			}
			for _, skip := range []bool{false, true} {
				want := tok.Decode(ids, skip)
				d := tok.NewDecoder(skip)
				var got, part []byte
				for i, id := range ids {
					part = d.Append(part, id)
					if i%(int(portion)%5+1) == 0 {
						if !utf8.Valid(part) {
							t.Fatalf("%v: the portion %q is no text", ids, part)
						}
						got, part = append(got, part...), part[:0]
					}
				}
				got = append(got, d.Flush(part)...)
				if string(got) != want {
					t.Fatalf("%v: in portions %q, at once %q", ids, got, want)
				}
			}
		}
	})
}

// What a byte-level model encodes, it decodes to the same text.
func FuzzRoundTrip(f *testing.F) {
	for _, text := range []string{"hello world", "你好 é e\u0301 😀", "  \n\t the 123", "<|end|> <tool>"} {
		f.Add(text)
	}
	toks := []*Tokenizer{small(f, "byte level"), small(f, "byte level without split"), small(f, "ignore merges"), small(f, "single digits"), small(f, "steps behind the byte level"), small(f, "split by empty matches"), small(f, "split Contiguous")}
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range toks {
			if got, want := tok.Decode(tok.Encode(text, false), false), toValidUTF8(text); got != want {
				t.Fatalf("%q comes back as %q", want, got)
			}
		}
	})
}
