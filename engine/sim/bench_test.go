package sim

import (
	"io"
	"net/http"
	"testing"
)

// What a token costs, without and with HTTP: load tests have to know how much
// of a figure is the simulated worker's own.

func BenchmarkEngineToken(b *testing.B) {
	e := New(Config{MeanLength: -1, ContextLength: 1 << 40})
	req := request(prompt, 1<<40)
	n := 0
	b.ReportAllocs()
	b.ResetTimer()
	for range e.Generate(b.Context(), req) {
		if n++; n == b.N {
			break
		}
	}
}

func BenchmarkServerToken(b *testing.B) {
	for _, kind := range bothKinds {
		b.Run(kind, func(b *testing.B) {
			s := NewServer(Config{Kind: kind, Style: StyleWhole, MeanLength: -1, ContextLength: 1 << 40})
			url, stop, err := s.Start("127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			defer stop()
			b.ReportAllocs()
			b.ResetTimer()
			resp, err := generate(b.Context(), http.DefaultClient, kind, url, prompt, b.N)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, resp.Body); err != nil {
				b.Fatal(err)
			}
			resp.Body.Close()
		})
	}
}
