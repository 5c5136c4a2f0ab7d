package enginetest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/engine"
)

// A Transcript is the body of an answer that a real server sent, and what a
// client has to make of it.
type Transcript struct {
	File   string
	Status int // 0 = 200
	End    End

	IDs    int                 // how many ids are delivered
	Finish engine.FinishReason // "" = the stream ends with an error
	Err    engine.Kind         // of that error
}

// Replay plays transcripts of dir to the client: each as a whole, and cut off
// after every byte. request returns what was asked for in the transcript.
func Replay(t *testing.T, newClient NewClient, dir string, transcripts []Transcript, request func(file string) *engine.Request) {
	for _, tr := range transcripts {
		t.Run(tr.File, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(dir, tr.File))
			if err != nil {
				t.Fatal(err)
			}
			whole := tr.whole(t, newClient, string(body), request(tr.File))
			if tr.Status == 0 {
				tr.cut(t, newClient, string(body), request(tr.File), whole)
			}
		})
	}
}

func (tr Transcript) whole(t *testing.T, newClient NewClient, body string, req *engine.Request) (o outcome) {
	pieces := strings.SplitAfter(body, "\n\n")
	inBubble(t, newClient, Reply{Status: tr.Status, Pieces: pieces, End: tr.End}, func(w *worker) {
		ctx, cancel := context.WithCancel(w.Context())
		defer cancel()
		if tr.End == Silent {
			time.AfterFunc(time.Hour, cancel) // as the stall watchdog above would
		}
		o = w.generate(ctx, req)
		if len(o.ids) != tr.IDs || o.finish != tr.Finish || (o.err != nil) != (tr.Finish == "") {
			w.Errorf("got %v (%d ids); want %d ids, finish %q", o, len(o.ids), tr.IDs, tr.Finish)
		}
		if tr.Finish == "" {
			wantKind(w, o, tr.Err)
		}
	})
	return o
}

// cut checks every prefix of body: what is delivered is a prefix of what the
// whole delivers, and an end that is not there yet is not guessed.
func (tr Transcript) cut(t *testing.T, newClient NewClient, body string, req *engine.Request, whole outcome) {
	cuts := cutPoints(len(body))
	inBubbleReplies(t, newClient, func(i int) Reply { return Reply{Pieces: []string{body[:cuts[i]]}, End: Cut} }, func(w *worker) {
		last := 0
		for _, n := range cuts {
			o := w.generate(w.Context(), req)
			switch {
			case len(o.ids) < last || len(o.ids) > len(whole.ids) || !slices.Equal(o.ids, whole.ids[:len(o.ids)]):
				w.Errorf("%d bytes: %v; want a prefix of %v, at least %d ids", n, o, whole.ids, last)
			case o.finish != "":
				if o.finish != whole.finish || len(o.ids) != len(whole.ids) {
					w.Errorf("%d bytes: %v; the whole gives %v", n, o, whole)
				}
			case o.err.Kind != engine.Disconnected && (whole.err == nil || o.err.Kind != whole.err.Kind):
				w.Errorf("%d bytes: %v; want disconnected", n, o)
			}
			last = len(o.ids)
		}
	})
}

// cutPoints returns every length of a short body. In a long one, which repeats
// the same events, the middle is cut at every 29th byte, which comes by every
// place of an event in turn.
func cutPoints(size int) []int {
	const dense = 768
	var cuts []int
	for n := 0; n <= size; n++ {
		if n > dense && n < size-dense && n%29 != 0 {
			continue
		}
		cuts = append(cuts, n)
	}
	return cuts
}
