package enginetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
	"baton/engine/transport"
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
	t.Run("leaving", s.leaving)
	t.Run("caller's end", s.callersEnd)
	t.Run("silence", s.silence)
	t.Run("request headers", s.requestHeaders)
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

// refusals: HTTP statuses before the stream.
func (s suite) refusals(t *testing.T) {
	tests := []struct {
		status int
		body   string
		kind   engine.Kind
	}{
		{400, s.d.ErrorBody(400, "too hot"), engine.InvalidRequest},
		{413, s.d.ErrorBody(413, "too hot"), engine.InvalidRequest},
		{422, s.d.ErrorBody(422, "too hot"), engine.InvalidRequest},
		{400, "", engine.InvalidRequest},
		{400, "<html>", engine.InvalidRequest},
		{400, strings.Repeat("x", 1<<20), engine.InvalidRequest},
		{401, `{"error":"Unauthorized"}`, engine.WorkerMisconfigured},
		{403, s.d.ErrorBody(403, "no"), engine.WorkerMisconfigured},
		{404, s.d.ErrorBody(404, "no"), engine.WorkerMisconfigured},
		{302, "", engine.WorkerMisconfigured},
		{429, s.d.ErrorBody(429, "busy"), engine.Overloaded},
		{503, s.d.ErrorBody(503, "busy"), engine.Overloaded},
		{500, s.d.ErrorBody(500, "broken"), engine.EngineError},
		{500, "", engine.EngineError},
		{502, "<html>", engine.EngineError},
		{504, "", engine.EngineError},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.status, " ", len(test.body)), func(t *testing.T) {
			header := http.Header{"Retry-After": {"7"}, "Location": {"http://worker:8000/elsewhere"}}
			inBubble(t, s.newClient, Reply{Status: test.status, Header: header, Pieces: []string{test.body}}, func(w *worker) {
				o := w.generate(w.Context(), NewRequest())
				wantKind(t, o, test.kind)
				if o.err == nil {
					return
				}
				if o.err.Status != test.status || o.err.WorkerID != "w1" {
					t.Errorf("status %d of worker %q; want %d of w1", o.err.Status, o.err.WorkerID, test.status)
				}
				if test.kind == engine.Overloaded && o.err.RetryAfter != 7*time.Second {
					t.Errorf("retry after %v, want 7s", o.err.RetryAfter)
				}
				if test.kind == engine.InvalidRequest && (o.err.Message == "" || strings.HasPrefix(test.body, "{") && o.err.Message != "too hot") {
					t.Errorf("message %q", o.err.Message)
				}
				if test.kind != engine.InvalidRequest && o.err.Message != "" {
					t.Errorf("message %q is not the client's business", o.err.Message)
				}
			})
		})
	}
	t.Run("an error body that hangs", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Status: 400, Pieces: []string{`{"error":`}, End: Silent}, func(w *worker) {
			if o := w.generate(w.Context(), NewRequest()); o.took > 10*time.Second {
				t.Errorf("it took %v", o.took)
			} else {
				wantKind(t, o, engine.InvalidRequest)
			}
		})
	})
	t.Run("JSON instead of a stream", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{ContentType: "application/json", Pieces: []string{`{"choices":[]}`}}, func(w *worker) {
			wantKind(t, w.generate(w.Context(), NewRequest()), engine.ProtocolError)
		})
	})
}

func wantKind(t testing.TB, o outcome, kind engine.Kind) {
	t.Helper()
	if o.err == nil || o.err.Kind != kind {
		t.Errorf("got %v; want error %v", o, kind)
	}
}

// failures: what can go wrong inside a 200 stream, before and after tokens.
func (s suite) failures(t *testing.T) {
	tests := []struct {
		name          string
		reply         Reply
		before, after engine.Kind // before the first token, and after three
	}{
		{"cut", Reply{End: Cut}, engine.Disconnected, engine.Disconnected},
		{"clean end", Reply{}, engine.Disconnected, engine.Disconnected},
		{"clean end after DONE", Reply{Pieces: []string{events("[DONE]")}}, engine.Disconnected, engine.Disconnected},
		{"half an event", Reply{Pieces: []string{"data: {\"choi"}}, engine.Disconnected, engine.Disconnected},
		{"error frame 400", Reply{Pieces: []string{events(s.d.ErrorFrame(400, "too hot"))}}, engine.InvalidRequest, engine.EngineError},
		{"error frame 500", Reply{Pieces: []string{events(s.d.ErrorFrame(500, "broken"))}}, engine.EngineError, engine.EngineError},
		{"error frame 503", Reply{Pieces: []string{events(s.d.ErrorFrame(503, "busy"))}}, engine.Overloaded, engine.EngineError},
		{"error frame without a code", Reply{Pieces: []string{events(`{"error":{"message":"?"}}`)}}, engine.EngineError, engine.EngineError},
		{"error frame of a strange form", Reply{Pieces: []string{events(`{"error":[1]}`)}}, engine.EngineError, engine.EngineError},
		{"no JSON", Reply{Pieces: []string{events("oops")}}, engine.ProtocolError, engine.ProtocolError},
		{"no object", Reply{Pieces: []string{events("[1]")}}, engine.ProtocolError, engine.ProtocolError},
		{"null", Reply{Pieces: []string{events("null")}}, engine.ProtocolError, engine.ProtocolError},
		{"half a JSON object", Reply{Pieces: []string{events(strings.TrimRight(s.d.Events(script[0])[0], "}"))}}, engine.ProtocolError, engine.ProtocolError},
		{"negative id", Reply{Pieces: []string{events(s.d.NegativeID)}}, engine.ProtocolError, engine.ProtocolError},
	}
	if s.d.Aborted != "" {
		tests = append(tests, struct {
			name          string
			reply         Reply
			before, after engine.Kind
		}{"aborted", Reply{Pieces: []string{events(s.d.Aborted) + s.d.Tail}}, engine.EngineError, engine.EngineError})
	}
	for _, test := range tests {
		for steps, kind := range map[int]engine.Kind{0: test.before, 2: test.after} {
			t.Run(fmt.Sprintf("%s after %d steps", test.name, steps), func(t *testing.T) {
				reply := test.reply
				reply.Pieces = append([]string{s.steps(steps)}, reply.Pieces...)
				inBubble(t, s.newClient, reply, func(w *worker) {
					o := w.generate(w.Context(), NewRequest())
					wantKind(t, o, kind)
					if want := scriptIDs[:[]int{0, 1, 3}[steps]]; !slices.Equal(o.ids, want) {
						t.Errorf("ids %v, want %v", o.ids, want)
					}
					if kind == engine.InvalidRequest && o.err != nil && o.err.Message != "too hot" {
						t.Errorf("message %q", o.err.Message)
					}
					if o.err != nil && o.err.WorkerID != "w1" && o.err.Kind != engine.Cancelled {
						t.Errorf("worker %q", o.err.WorkerID)
					}
				})
			})
		}
	}
}

// afterFinish: a finished answer stays finished, whatever follows, and does not
// wait for it.
func (s suite) afterFinish(t *testing.T) {
	for name, reply := range map[string]Reply{
		"nothing":     {Pieces: []string{s.steps(3)}},
		"cut":         {Pieces: []string{s.steps(3)}, End: Cut},
		"junk":        {Pieces: []string{s.steps(3), "data: {broken\n\nfoo"}},
		"error frame": {Pieces: []string{s.steps(3), events(s.d.ErrorFrame(500, "late"))}},
		"more ids":    {Pieces: []string{s.steps(3), s.steps(1)}},
		"silence":     {Pieces: []string{s.steps(3)}, End: Silent},
		"endless":     {Pieces: append([]string{s.steps(3)}, slices.Repeat([]string{strings.Repeat(":\n", 1<<14)}, 64)...), End: Silent},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, s.newClient, reply, func(w *worker) {
				o := w.generate(w.Context(), NewRequest())
				wantScript(t, o)
				if o.took > 500*time.Millisecond {
					t.Errorf("the end came after %v", o.took)
				}
				if reply.End == Silent && w.network.Open() != 0 {
					t.Error("the connection stayed open though the worker had not ended its answer")
				}
			})
		})
	}
	t.Run("the connection is used again", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Pieces: []string{s.whole()}}, func(w *worker) {
			for range 3 {
				wantScript(t, w.generate(w.Context(), NewRequest()))
			}
			if n := w.network.Made(); n != 1 {
				t.Errorf("%d connections for 3 requests", n)
			}
		})
	})
}

// connections: what goes wrong before an answer begins.
func (s suite) connections(t *testing.T) {
	dial := func(err error) func(context.Context, string, string) (net.Conn, error) {
		return func(context.Context, string, string) (net.Conn, error) { return nil, err }
	}
	empty, garbage, half := "", "\x15\x03\x01 no HTTP\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	tests := []struct {
		name string
		dial func(context.Context, string, string) (net.Conn, error)
		raw  *string
		kind engine.Kind
	}{
		{"refused", (&Network{}).DialContext, nil, engine.CannotConnect},
		{"name not found", dial(&net.DNSError{Err: "no such host", Name: "worker", IsNotFound: true}), nil, engine.CannotConnect},
		{"no answer", func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, nil, engine.ConnectionTimeout},
		{"closed before the headers", nil, &empty, engine.Disconnected},
		{"closed inside the headers", nil, &half, engine.Disconnected},
		{"no HTTP", nil, &garbage, engine.ProtocolError},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			newClient := func(t testing.TB, opts transport.Options) engine.Client {
				if test.dial != nil {
					opts.DialContext = test.dial
				}
				return s.newClient(t, opts)
			}
			inBubble(t, newClient, Reply{Raw: test.raw}, func(w *worker) {
				o := w.generate(w.Context(), NewRequest())
				wantKind(t, o, test.kind)
				if test.kind == engine.ConnectionTimeout && o.took != 3*time.Second {
					t.Errorf("it took %v, the connect timeout is 3s", o.took)
				}
			})
		})
	}
}

// staleConnection: a kept connection that died in the meantime is not held
// against the worker; one that dies under a request is.
func (s suite) staleConnection(t *testing.T) {
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(s.whole()), s.whole())
	tests := []struct {
		name  string
		wait  time.Duration // from the second request to the death of its connection
		alive bool          // new connections are accepted after that
		kind  engine.Kind   // Internal = success
	}{
		{"closed in the meantime", 0, true, engine.Internal},
		{"died under the request", 5 * time.Second, true, engine.Disconnected},
		{"died, and the port is closed", 0, false, engine.Disconnected},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var network Network
				var stop func()
				stop = rawServer(&network, workerAddress, func(n int, conn net.Conn, r *bufio.Reader) {
					for request := 0; ; request++ {
						req, err := http.ReadRequest(r)
						if err != nil {
							return
						}
						io.Copy(io.Discard, req.Body)
						if n == 0 && request == 1 {
							time.Sleep(test.wait)
							if !test.alive {
								network.mu.Lock()
								delete(network.listeners, workerAddress)
								network.mu.Unlock()
							}
							return
						}
						io.WriteString(conn, answer)
					}
				})
				client := s.newClient(t, transport.Options{URL: "http://" + workerAddress, WorkerID: "w1", DialContext: network.DialContext})
				wantScript(t, consume(t, client, t.Context(), NewRequest()))
				o := consume(t, client, t.Context(), NewRequest())
				if test.kind == engine.Internal {
					wantScript(t, o)
				} else {
					wantKind(t, o, test.kind)
				}
				time.Sleep(time.Minute) // the client gives its kept connection up
				stop()
			})
		})
	}
}

// leaving: when the range statement has returned, the connection is closed.
func (s suite) leaving(t *testing.T) {
	inBubble(t, s.newClient, Reply{Pieces: []string{s.steps(1)}, End: Silent}, func(w *worker) {
		for delta, err := range w.client.Generate(w.Context(), NewRequest()) {
			if err != nil || len(delta.TokenIDs) == 0 {
				t.Fatalf("%v, %v", delta, err)
			}
			break
		}
		if w.network.Open() != 0 {
			t.Error("the connection is still open")
		}
	})
	t.Run("by a panic", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Pieces: []string{s.steps(1)}, End: Silent}, func(w *worker) {
			func() {
				defer func() { _ = recover() }()
				for range w.client.Generate(w.Context(), NewRequest()) {
					panic("consumer")
				}
			}()
			if w.network.Open() != 0 {
				t.Error("the connection is still open")
			}
		})
	})
	t.Run("nothing is sent before the range", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{}, func(w *worker) {
			_ = w.client.Generate(w.Context(), NewRequest())
			synctest.Wait()
			if n := w.network.Made(); n != 0 {
				t.Errorf("%d connections", n)
			}
		})
	})
}

// callersEnd: the end of the caller's context is never the worker's fault.
func (s suite) callersEnd(t *testing.T) {
	for name, reply := range map[string]Reply{
		"in the stream":      {Pieces: []string{s.steps(1)}, End: Silent},
		"before the headers": {Delay: time.Hour},
		"in an error body":   {Status: 400, Pieces: []string{"{"}, End: Silent},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, s.newClient, reply, func(w *worker) {
				ctx, cancel := context.WithCancelCause(w.Context())
				defer cancel(nil)
				time.AfterFunc(time.Second, func() { cancel(errors.New("the client left")) })
				wantKind(t, w.generate(ctx, NewRequest()), engine.Cancelled)
				if w.network.Open() != 0 {
					t.Error("the connection is still open")
				}
			})
			inBubble(t, s.newClient, reply, func(w *worker) {
				ctx, cancel := context.WithTimeout(w.Context(), time.Second)
				defer cancel()
				wantKind(t, w.generate(ctx, NewRequest()), engine.TimedOut)
			})
		})
	}
	t.Run("while connecting", func(t *testing.T) {
		newClient := func(t testing.TB, opts transport.Options) engine.Client {
			opts.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return s.newClient(t, opts)
		}
		inBubble(t, newClient, Reply{}, func(w *worker) {
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			time.AfterFunc(time.Second, cancel)
			wantKind(t, w.generate(ctx, NewRequest()), engine.Cancelled)
			time.Sleep(time.Minute) // net/http finishes dialing for a later request, within the connect timeout
		})
	})
	t.Run("with events buffered", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Pieces: []string{s.whole()}}, func(w *worker) {
			ctx, cancel := context.WithCancel(w.Context())
			defer cancel()
			var last error
			for _, err := range w.client.Generate(ctx, NewRequest()) {
				last = err
				cancel()
			}
			if e := engine.AsError(last); last == nil || e.Kind != engine.Cancelled {
				t.Errorf("%v, want cancelled", last)
			}
		})
	})
}

// silence: a slow consumer is no silence of the worker.
func (s suite) silence(t *testing.T) {
	t.Run("slow consumer", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Pieces: strings.SplitAfter(s.whole(), "\n\n")}, func(w *worker) {
			n := 0
			for delta, err := range w.client.Generate(w.Context(), NewRequest()) {
				if err != nil {
					t.Fatal(err)
				}
				n += len(delta.TokenIDs)
				time.Sleep(10 * time.Minute)
			}
			if n != len(scriptIDs) {
				t.Errorf("%d ids", n)
			}
		})
	})
	t.Run("keep-alives", func(t *testing.T) {
		pieces := []string{s.steps(1)}
		for range 60 {
			pieces = append(pieces, ":\n\n")
		}
		pieces = append(pieces, strings.TrimPrefix(s.whole(), s.steps(1)))
		inBubble(t, s.newClient, Reply{Pieces: pieces, Pause: time.Second}, func(w *worker) {
			wantScript(t, w.generate(w.Context(), NewRequest()))
		})
	})
	if s.d.MaxSilence == 0 {
		return
	}
	t.Run("too long", func(t *testing.T) {
		inBubble(t, s.newClient, Reply{Pieces: []string{s.steps(2)}, End: Silent}, func(w *worker) {
			o := w.generate(w.Context(), NewRequest())
			wantKind(t, o, engine.Disconnected)
			if o.took != s.d.MaxSilence {
				t.Errorf("after %v, want %v", o.took, s.d.MaxSilence)
			}
			if w.network.Open() != 0 {
				t.Error("the connection is still open")
			}
		})
	})
}

// requestHeaders: the worker gets what the protocol needs and nothing else.
func (s suite) requestHeaders(t *testing.T) {
	inBubble(t, s.newClient, Reply{Pieces: []string{s.whole()}}, func(w *worker) {
		wantScript(t, w.generate(w.Context(), NewRequest()))
		want := map[string]string{
			"Content-Type":  "application/json",
			"X-Request-Id":  NewRequest().ID,
			"Authorization": "Bearer " + workerKey,
			"User-Agent":    "baton",
		}
		header := w.requests[0].header
		for name, value := range want {
			if got := header.Get(name); got != value {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		}
		for name := range header {
			if _, ok := want[name]; !ok && name != "Content-Length" {
				t.Errorf("unexpected header %s", name)
			}
		}
	})
}

// lifetime: what a delta holds does not change before the next iteration, though
// the following events have long arrived.
func (s suite) lifetime(t *testing.T) {
	inBubble(t, s.newClient, Reply{Pieces: []string{s.whole()}}, func(w *worker) {
		req := NewRequest()
		req.Output = engine.OutputOptions{Logprobs: true, TopLogprobs: 2}
		for delta, err := range w.client.Generate(w.Context(), req) {
			if err != nil {
				t.Fatal(err)
			}
			ids, logprobs := slices.Clone(delta.TokenIDs), fmt.Sprint(delta.Logprobs)
			synctest.Wait()
			if !slices.Equal(ids, delta.TokenIDs) || fmt.Sprint(delta.Logprobs) != logprobs {
				t.Errorf("a delta changed under its consumer: %v, was %v", delta.TokenIDs, ids)
			}
		}
	})
}
