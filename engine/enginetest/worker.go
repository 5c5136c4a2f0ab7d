package enginetest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"baton/engine"
	"baton/engine/transport"
)

// NewClient makes the client under test. It must use opts as they are.
type NewClient func(t testing.TB, opts transport.Options) engine.Client

// An End is how a fake server ends an answer.
type End int

const (
	Complete End = iota // the body ends properly
	Cut                 // the connection is closed in the middle of the body
	Silent              // nothing more comes
)

// A Reply is the answer of a fake server to a generation request.
type Reply struct {
	Delay       time.Duration // before the headers
	Status      int           // 0 = 200
	Header      http.Header   // added
	ContentType string        // "" = text/event-stream for 200, else application/json
	Pieces      []string      // the body, each piece flushed
	Pause       time.Duration
	End         End

	// Raw replaces the whole HTTP answer by these bytes, and closes the
	// connection after them.
	Raw *string
}

const (
	workerAddress = "worker:8000"
	workerKey     = "worker-secret"
)

// A worker is a fake server together with the client under test.
type worker struct {
	*testing.T
	network Network
	client  engine.Client
	replies func(n int) Reply // of the n-th request, from 0

	mu       sync.Mutex // guards requests
	requests []received
}

// A received request.
type received struct {
	path   string
	header http.Header
	body   []byte
}

// inBubble runs test with a client and a worker that answers with reply.
func inBubble(t *testing.T, newClient NewClient, reply Reply, test func(w *worker)) {
	t.Helper()
	inBubbleReplies(t, newClient, func(int) Reply { return reply }, test)
}

func inBubbleReplies(t *testing.T, newClient NewClient, replies func(n int) Reply, test func(w *worker)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &worker{T: t, replies: replies}
		stop := w.network.Serve(workerAddress, w)
		defer stop()
		w.client = newClient(t, transport.Options{
			URL:            "http://" + workerAddress,
			WorkerID:       "w1",
			APIKey:         func() string { return workerKey },
			ConnectTimeout: 3 * time.Second,
			DialContext:    w.network.DialContext,
		})
		test(w)
	})
}

// ServeHTTP answers every POST with the script.
func (w *worker) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(rw, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	n := len(w.requests)
	w.requests = append(w.requests, received{r.URL.Path, r.Header, body})
	w.mu.Unlock()
	w.replies(n).write(rw, r)
}

func (reply Reply) write(rw http.ResponseWriter, r *http.Request) {
	if reply.Raw != nil {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err == nil {
			io.WriteString(conn, *reply.Raw)
			conn.Close()
		}
		return
	}
	if reply.Delay > 0 {
		select {
		case <-time.After(reply.Delay):
		case <-r.Context().Done():
			return
		}
	}
	for name, values := range reply.Header {
		rw.Header()[name] = values
	}
	if reply.Status == 0 {
		reply.Status = http.StatusOK
	}
	if reply.ContentType == "" {
		reply.ContentType = "application/json"
		if reply.Status == http.StatusOK {
			reply.ContentType = "text/event-stream; charset=utf-8"
		}
	}
	rw.Header().Set("Content-Type", reply.ContentType)
	rw.WriteHeader(reply.Status)
	flush := http.NewResponseController(rw).Flush
	flush()
	for _, piece := range reply.Pieces {
		if reply.Pause > 0 {
			select {
			case <-time.After(reply.Pause):
			case <-r.Context().Done():
				return
			}
		}
		if _, err := io.WriteString(rw, piece); err != nil {
			return
		}
		flush()
	}
	switch reply.End {
	case Cut:
		panic(http.ErrAbortHandler)
	case Silent:
		<-r.Context().Done()
	}
}

// An outcome is what a consumer saw of one generation.
type outcome struct {
	ids      []engine.TokenID
	logprobs []engine.TokenLogprob
	finish   engine.FinishReason
	err      *engine.Error
	took     time.Duration // virtual
}

func (o outcome) String() string {
	return fmt.Sprintf("ids %v, finish %q, error %v", o.ids, o.finish, o.err)
}

// generate consumes a generation to its end and checks the contract of a Stream.
func (w *worker) generate(ctx context.Context, req *engine.Request) outcome {
	w.Helper()
	return consume(w, w.client, ctx, req)
}

func consume(t testing.TB, client engine.Client, ctx context.Context, req *engine.Request) outcome {
	t.Helper()
	var o outcome
	start := time.Now()
	ended := false
	for delta, err := range client.Generate(ctx, req) {
		if ended {
			t.Error("the stream went on after its end")
		}
		if err != nil {
			ended = true
			e, ok := err.(*engine.Error)
			if !ok {
				t.Fatalf("the stream's error is a %T", err)
			}
			o.err = e
			continue
		}
		if req.Output.Logprobs && len(delta.Logprobs) != len(delta.TokenIDs) {
			t.Errorf("%d logprobs for %d ids", len(delta.Logprobs), len(delta.TokenIDs))
		}
		o.ids = append(o.ids, delta.TokenIDs...)
		for _, lp := range delta.Logprobs {
			lp.Top = append([]engine.TopLogprob(nil), lp.Top...)
			o.logprobs = append(o.logprobs, lp)
		}
		o.finish = delta.FinishReason
		ended = o.finish != ""
	}
	if !ended {
		t.Error("the stream ended quietly: neither a finish reason nor an error")
	}
	o.took = time.Since(start)
	return o
}

// rawServer accepts one connection after the other and gives each to serve. It
// ends when stop is called.
func rawServer(network *Network, address string, serve func(conn net.Conn, r *bufio.Reader)) (stop func()) {
	l := network.Listen(address)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				serve(conn, bufio.NewReader(conn))
			})
		}
	})
	return func() {
		l.Close()
		wg.Wait()
	}
}

// Handler returns a handler that answers every request with the Reply that reply
// makes of its body. Calls do not overlap.
func Handler(reply func(body string) Reply) http.Handler {
	var mu sync.Mutex // makes the calls of reply one after the other
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		answer := reply(string(body))
		mu.Unlock()
		answer.write(w, r)
	})
}
