package enginetest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"baton/engine"
	"baton/engine/transport"
)

// LinkTo returns a link to a server on the loopback interface that answers as h does,
// until the test ends.
func LinkTo(t testing.TB, h http.Handler) *transport.Link {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	link, err := transport.New(transport.Options{URL: srv.URL + "/"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	return link
}

// Deltas returns what a client makes of pieces of a stream's body, which newClient
// gets a link to. Each piece but the first is sent when a delta of the one before has
// come: whoever waits for more before handing on what is there never gets it.
func Deltas(t *testing.T, newClient func(*transport.Link) engine.Engine, req *engine.Request, pieces ...string) (deltas []engine.Delta, failure *engine.Error) {
	t.Helper()
	arrived := make(chan struct{}, 1000)
	client := newClient(LinkTo(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i, piece := range pieces {
			if i > 0 {
				select {
				case <-arrived:
				case <-r.Context().Done():
					return
				}
			}
			io.WriteString(w, piece)
			w.(http.Flusher).Flush()
		}
	})))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for d, err := range client.Generate(ctx, req) {
		if err != nil {
			return deltas, engine.AsError(err)
		}
		d.TokenIDs = slices.Clone(d.TokenIDs)
		deltas = append(deltas, d)
		select {
		case arrived <- struct{}{}:
		default:
		}
	}
	return deltas, nil
}

// Events answers every request with n events of equal text, but for the last one, as
// they stand on the wire. It costs a benchmark no allocation for each.
func Events(n int, event, last string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range n - 1 {
			io.WriteString(w, event)
		}
		io.WriteString(w, last)
	})
}

// BenchmarkStream measures client on an answer of n tokens.
func BenchmarkStream(b *testing.B, client engine.Engine, n int) {
	req := NewRequest()
	b.ReportAllocs()
	for b.Loop() {
		read := 0
		for delta, err := range client.Generate(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
			read += len(delta.TokenIDs)
		}
		if read != n {
			b.Fatal(read)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/token")
}
