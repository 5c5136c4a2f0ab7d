package preprocess

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/model"
)

// BenchmarkLongChat measures what a long conversation costs before its first worker is
// asked: from the bytes of the body to the ids of the prompt. The conversations are
// files of this repository, in messages of 4 kB. Each run has a cache_salt of its own,
// so that none finds what the one before left.
func BenchmarkLongChat(b *testing.B) {
	for _, name := range []string{"llama3_1", "qwen3"} {
		for _, size := range []int{4 << 10, 400 << 10, 2 << 20} {
			b.Run(fmt.Sprintf("%s/%d kB", name, size>>10), func(b *testing.B) {
				p := benchPreprocessor(b, name)
				body := benchBody(b, name, size)
				prepared, failure := p.Chat("r", body)
				if failure != nil {
					b.Fatal(failure)
				}
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				salt := bytes.Index(body, []byte(benchSalt))
				for i := 0; b.Loop(); i++ {
					copy(body[salt:], fmt.Sprintf("%0*d", len(benchSalt), i))
					if _, failure := p.Chat("r", body); failure != nil {
						b.Fatal(failure)
					}
				}
				b.ReportMetric(float64(prepared.PromptTokens), "tokens")
			})
		}
	}
}

// BenchmarkNextTurn measures the next turn of a conversation of 400 kB, of which
// baton has seen the one before. The turns are of two messages, 8 kB.
func BenchmarkNextTurn(b *testing.B) {
	for _, name := range []string{"llama3_1", "qwen3"} {
		b.Run(name, func(b *testing.B) {
			p := benchPreprocessor(b, name)
			const turns, first, turn = 20, 400 << 10, 8 << 10
			bodies := make([][]byte, turns)
			for i := range bodies {
				bodies[i] = benchBody(b, name, first+i*turn)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%turns == 0 { // another process has not seen any
					b.StopTimer()
					p = benchPreprocessor(b, name)
					if _, failure := p.Chat("r", benchBody(b, name, first-turn)); failure != nil {
						b.Fatal(failure)
					}
					b.StartTimer()
				}
				if _, failure := p.Chat("r", bodies[i%turns]); failure != nil {
					b.Fatal(failure)
				}
			}
		})
	}
}

// BenchmarkLongBody measures the steps of BenchmarkLongChat one by one.
func BenchmarkLongBody(b *testing.B) {
	const name, size = "llama3_1", 2 << 20
	p := benchPreprocessor(b, name)
	body := benchBody(b, name, size)
	run := func(step string, f func()) {
		b.Run(step, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				f()
			}
		})
	}
	run("scan", func() {
		if _, err := scan(body); err != nil {
			b.Fatal(err)
		}
	})
	r, failure := p.read(chatAPI, body)
	if failure != nil {
		b.Fatal(failure)
	}
	run("messages", func() {
		if _, err := fitMessages(r.messages, r.model.Shape); err != nil {
			b.Fatal(err)
		}
	})
	run("render and encode", func() {
		if _, err := p.renderChat(r); err != nil {
			b.Fatal(err)
		}
	})
}

// benchPreprocessor has the model of this name, under this name.
func benchPreprocessor(b *testing.B, name string) *Preprocessor {
	b.Helper()
	folder := os.Getenv("BATON_MODELS")
	if folder == "" {
		cache, _ := os.UserCacheDir()
		folder = filepath.Join(cache, "baton", "models")
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		b.Skipf("the tokenizer of %s is not there; test/models/fetch.sh fetches it", name)
	}
	models, err := model.NewSet(model.Options{Paths: map[string]string{name: path}})
	if err != nil {
		b.Fatal(err)
	}
	return New(models, Options{}, slog.New(slog.DiscardHandler))
}

const benchSalt = "12345678"

// benchBody returns a body of about this many bytes.
func benchBody(b *testing.B, name string, size int) []byte {
	b.Helper()
	const perMessage = 4 << 10
	text := repositoryText(b, size)
	messages := []map[string]string{{"role": "system", "content": "You read code."}}
	for i := 0; len(text) > 0; i++ {
		part := text[:min(perMessage, len(text))]
		text = text[len(part):]
		messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[i%2], "content": strings.ToValidUTF8(part, "")})
	}
	if len(messages)%2 == 1 {
		messages = messages[:len(messages)-1] // the user has the last word
	}
	body, err := json.Marshal(map[string]any{"model": name, "stream": true, "messages": messages, "cache_salt": benchSalt})
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// repositoryText is code and prose: the repository's files, one after the other.
func repositoryText(b *testing.B, size int) string {
	b.Helper()
	var text strings.Builder
	for text.Len() < size {
		before := text.Len()
		err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
			ext := filepath.Ext(path)
			if err != nil || d.IsDir() || ext != ".go" && ext != ".md" || text.Len() >= size {
				return err
			}
			data, err := os.ReadFile(path)
			text.Write(data)
			return err
		})
		if err != nil || text.Len() == before {
			b.Fatal(err)
		}
	}
	return text.String()[:size]
}
