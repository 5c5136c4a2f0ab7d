package tokenizer

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

var benchModels = []string{"qwen3", "llama3_1", "gemma3", "llama2", "deepseek_v3", "gptoss"}

// BenchmarkEncode measures encoding of a text that was seen before, so that
// the word cache is as warm as it is in service.
func BenchmarkEncode(b *testing.B) {
	for _, name := range benchModels {
		for _, text := range []string{"prose 1 kB", "mixed 1 kB", "prose 100 kB", "mixed 100 kB"} {
			b.Run(name+"/"+text, func(b *testing.B) {
				tok := benchTokenizer(b, name)
				content := testCorpus(b).Bench[text]
				ids := tok.Encode(content, false)
				b.SetBytes(int64(len(content)))
				b.ReportAllocs()
				for b.Loop() {
					ids = tok.AppendEncode(ids[:0], content, false)
				}
			})
		}
	}
}

// BenchmarkDecode measures the incremental decoder, one operation a token.
func BenchmarkDecode(b *testing.B) {
	for _, name := range benchModels {
		b.Run(name, func(b *testing.B) {
			tok := benchTokenizer(b, name)
			ids := tok.Encode(testCorpus(b).Bench["mixed 100 kB"], false)
			d := tok.NewDecoder(true)
			var text []byte
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				text = d.Append(text[:0], ids[i])
				if i++; i == len(ids) {
					i = 0
				}
			}
		})
	}
}

// BenchmarkLoad measures reading a file, and the memory that the tokenizer keeps.
func BenchmarkLoad(b *testing.B) {
	for _, name := range benchModels {
		b.Run(name, func(b *testing.B) {
			data := modelFile(b, name)
			path := filepath.Join(b.TempDir(), "tokenizer.json")
			if err := os.WriteFile(path, data, 0o644); err != nil {
				b.Fatal(err)
			}
			var last *Tokenizer
			before := liveBytes()
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if last, err = Load(path); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(liveBytes()-before), "kept-B")
			runtime.KeepAlive(last)
		})
	}
}

func liveBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

var benchLoaded = map[string]*Tokenizer{}

func benchTokenizer(b *testing.B, name string) *Tokenizer {
	b.Helper()
	if benchLoaded[name] == nil {
		tok, err := Parse(modelFile(b, name))
		if err != nil {
			b.Fatal(err)
		}
		benchLoaded[name] = tok
	}
	return benchLoaded[name]
}

// BenchmarkEncodeLong measures a text of about 100,000 tokens, in one message and in
// many, with and without other goroutines to help. The text is as in BenchmarkEncode.
func BenchmarkEncodeLong(b *testing.B) {
	for _, name := range benchModels {
		tok := benchTokenizer(b, name)
		document := strings.Repeat(testCorpus(b).Bench["mixed 100 kB"], 4)
		separator, _ := tok.Token(tok.addedWithin(0))
		for _, c := range []struct{ what, text string }{
			{"one message", document},
			{"messages", strings.Join(portions(document, 4<<10), separator)},
		} {
			for _, part := range []int{1 << 40, usualPartBytes} {
				how := map[bool]string{true: "whole", false: "in parts"}[part > len(document)]
				b.Run(name+"/"+c.what+"/"+how, func(b *testing.B) {
					tok.testPartBytes = part
					defer func() { tok.testPartBytes = 0 }()
					ids := tok.Encode(c.text, false)
					b.SetBytes(int64(len(c.text)))
					b.ReportAllocs()
					for b.Loop() {
						ids = tok.AppendEncode(ids[:0], c.text, false)
					}
				})
			}
		}
	}
}

// addedWithin is an added token that is looked for in raw text.
func (t *Tokenizer) addedWithin(i int) int32 { return int32(t.raw.tokens[i].ID) }

func portions(text string, size int) []string {
	var all []string
	for len(text) > size {
		all, text = append(all, strings.ToValidUTF8(text[:size], "")), text[size:]
	}
	return append(all, text)
}
