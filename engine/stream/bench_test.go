package stream

import (
	"io"
	"net/http"
	"testing"

	"baton/engine"
	"baton/engine/enginetest"
)

// bare is a Source whose events are no JSON: an id each.
type bare struct {
	Answer
	id [1]engine.TokenID
}

func (b *bare) Read() (engine.Delta, *engine.Error) {
	data, err := b.Event()
	if err != nil {
		return engine.Delta{}, err
	}
	b.id[0] = engine.TokenID(data[0])
	return engine.Delta{TokenIDs: b.id[:]}, nil
}

// BenchmarkNext is what an event costs besides its JSON, apart from and together with
// those that have come with it.
func BenchmarkNext(b *testing.B) {
	for name, apart := range map[string]bool{"apart": true, "joined": false} {
		b.Run(name, func(b *testing.B) {
			over := make(chan struct{})
			link := enginetest.LinkTo(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(over)
				w.Header().Set("Content-Type", "text/event-stream")
				for {
					if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
						return
					}
				}
			}))
			resp, err := Open(b.Context(), link, "/", "r", nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { resp.Abort(); <-over }()
			a := new(bare)
			a.Begin(a, link, resp, 1<<10, apart)
			b.ReportAllocs()
			tokens := 0
			for b.Loop() {
				delta, err := a.Next(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				tokens += len(delta.TokenIDs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(tokens), "ns/token")
		})
	}
}
