package enginetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"baton/engine"
)

// A Step is one step of a fake generation.
type Step struct {
	IDs    []engine.TokenID
	Total  int                 // ids so far, these included
	Finish engine.FinishReason // with the last step
}

// A Dialect is how a fake server of one engine speaks.
type Dialect struct {
	// Path is the endpoint that the client posts to.
	Path string

	// Events returns the data of the events that tell of a step.
	Events func(step Step) []string

	// Tail is what follows the finish, as it stands in the stream.
	Tail string

	// ErrorFrame returns the data of an event that reports an error, ErrorBody
	// the body of an HTTP answer that does.
	ErrorFrame, ErrorBody func(code int, message string) string

	// Aborted is the data of an event that ends a request as aborted; "" = the
	// engine has none.
	Aborted string

	// NegativeID is the data of an event that delivers the id -1 as first step.
	NegativeID string

	// MaxSilence is how long the client waits for any byte between two events;
	// 0 = for ever.
	MaxSilence time.Duration
}

// script is the generation that the suite plays: 4 ids in 3 steps.
var (
	script    = []Step{{IDs: []engine.TokenID{11}, Total: 1}, {IDs: []engine.TokenID{12, 13}, Total: 3}, {IDs: []engine.TokenID{2}, Total: 4, Finish: engine.FinishStop}}
	scriptIDs = []engine.TokenID{11, 12, 13, 2}
)

// NewRequest returns the request that the suite sends.
func NewRequest() *engine.Request {
	return &engine.Request{
		ID: "req-7-m00-r000", Model: "m", TokenIDs: []engine.TokenID{1, 5, 9}, VocabSize: 100, ContextLength: 2048,
		Sampling: engine.SamplingParams{TopP: 1, RepetitionPenalty: 1},
		Stop:     engine.StopConditions{MaxTokens: 16, EOS: []engine.TokenID{2}},
	}
}

// Run checks a client against a fake server that speaks d.
func Run(t *testing.T, newClient NewClient, d Dialect) {
	s := suite{newClient, d}
	t.Run("reading", s.reading)
	t.Run("cut at every byte", s.cutEverywhere)
	t.Run("refusals", s.refusals)
	t.Run("failures in the stream", s.failures)
	t.Run("after the finish", s.afterFinish)
	t.Run("connections", s.connections)
	t.Run("stale connection", s.staleConnection)
	t.Run("broken connection", s.brokenConnection)
	t.Run("leaving", s.leaving)
	t.Run("caller's end", s.callersEnd)
	t.Run("silence", s.silence)
	t.Run("request headers", s.requestHeaders)
	t.Run("parameters", s.parameters)
	t.Run("lifetime of slices", s.lifetime)
}

type suite struct {
	newClient NewClient
	d         Dialect
}

// events writes events the plain way.
func events(data ...string) string {
	var b strings.Builder
	for _, e := range data {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// steps returns the stream of the first n steps of the script.
func (s suite) steps(n int) string {
	var b strings.Builder
	for _, step := range script[:n] {
		b.WriteString(events(s.d.Events(step)...))
	}
	return b.String()
}

func (s suite) whole() string { return s.steps(len(script)) + s.d.Tail }

func wantScript(t testing.TB, o outcome) {
	t.Helper()
	if o.err != nil || o.finish != engine.FinishStop || !slices.Equal(o.ids, scriptIDs) {
		t.Errorf("got %v; want ids %v, finish stop", o, scriptIDs)
	}
}

// reading: the same answer in every form that an SSE stream can take.
func (s suite) reading(t *testing.T) {
	var greased strings.Builder
	greased.WriteString(":\n\n: ping\r\n\r\nretry: 10\n\n")
	for _, step := range script {
		for _, e := range s.d.Events(step) {
			e = `{"grease":{"a":[1,{"b":null}],"token_ids":[9],"tokens":[9]},` + strings.TrimSuffix(e[1:], "}") + `,"grease2":"\u00e9\"]}"}`
			greased.WriteString("id: 5\n: comment\nunknown: 1\ndata:" + e + "\n\n:\n\n")
		}
	}
	greased.WriteString(s.d.Tail)

	bytewise := strings.Split(s.whole(), "")
	for name, pieces := range map[string][]string{
		"plain":                      {s.whole()},
		"grease":                     {greased.String()},
		"CRLF":                       {strings.ReplaceAll(s.whole(), "\n", "\r\n")},
		"byte by byte":               bytewise,
		"byte by byte, grease, CRLF": strings.Split(strings.ReplaceAll(greased.String(), "\n", "\r\n"), ""),
		"two lines":                  {strings.Replace(s.whole(), ",", ",\ndata: ", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, s.newClient, Reply{Pieces: pieces}, func(w *worker) {
				wantScript(t, w.generate(w.Context(), NewRequest()))
				if got := w.requests[0].path; got != s.d.Path {
					t.Errorf("the request went to %s, want %s", got, s.d.Path)
				}
			})
		})
	}
	t.Run("slow", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Pieces: strings.SplitAfter(s.whole(), "\n\n"), Pause: 2 * time.Second}, func(w *worker) {
			wantScript(t, w.generate(w.Context(), NewRequest()))
		})
	})
}

// cutEverywhere: wherever a stream breaks off, the ids are a prefix of the
// right ones, whole steps only, and only a complete finish event is a finish.
func (s suite) cutEverywhere(t *testing.T) {
	whole := s.whole()
	var want []int // per number of bytes, how many ids are complete
	finished := len(s.steps(len(script)))
	for n := range len(whole) + 1 {
		ids := 0
		for i, step := range script {
			if n >= len(s.steps(i))+len(events(s.d.Events(step)[0])) {
				ids = step.Total
			}
		}
		want = append(want, ids)
	}
	for _, end := range []End{Cut, Complete} {
		inBubbleReplies(t, s.newClient, func(n int) Reply { return Reply{Pieces: []string{whole[:n]}, End: end} }, func(w *worker) {
			for n := range len(whole) + 1 {
				o := w.generate(w.Context(), NewRequest())
				switch {
				case !slices.Equal(o.ids, scriptIDs[:want[n]]):
					t.Errorf("%d bytes: %v; want %d ids", n, o, want[n])
				case o.finish != "" && want[n] == len(scriptIDs): // complete, or complete for the client
				case n >= finished || o.err == nil || o.err.Kind != engine.Disconnected:
					t.Errorf("%d bytes: %v; want disconnected", n, o)
				}
			}
		})
	}
}
