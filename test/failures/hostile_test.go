package failures

import (
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"baton/engine/sim"
)

// What may be read of a worker's nonsense. An event is bounded by 1 MiB and the
// prompt, which engines repeat in one; the headers by far less.
const (
	maxNonsense  = 3 << 20 // an event, and what is on its way
	maxAllocated = 4 * maxNonsense
)

// A hostile worker answers probes as an engine does, and every generation with
// bytes of its own.
type hostile struct {
	// script writes the answer. whole is the answer that the engine would give,
	// with its headers in Go's words.
	script func(c *wire, whole *httptest.ResponseRecorder)
}

// A wire is the worker's end of a connection.
type wire struct {
	conn    net.Conn
	written *atomic.Int64
}

// send writes text and reports whether the other side still takes it.
func (c *wire) send(text string) bool {
	n, err := io.WriteString(c.conn, text)
	c.written.Add(int64(n))
	return err == nil
}

// repeat writes text until the other side has enough of it, or most bytes are sent.
func (c *wire) repeat(text string, most int) {
	for sent := 0; sent < most && c.send(text); sent += len(text) {
	}
}

// written counts what hostile workers got rid of.
var written atomic.Int64

func (h *hostile) handler(s *stage, w *sim.Server) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.Contains(r.Header.Get("X-Request-Id"), "-m") {
			w.ServeHTTP(rw, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.t.Error(err)
		}
		copied := r.Clone(r.Context())
		copied.Body = io.NopCloser(bytes.NewReader(body))
		whole := httptest.NewRecorder()
		w.ServeHTTP(whole, copied)
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			s.t.Error(err)
			return
		}
		defer conn.Close()
		if whole.Code != http.StatusOK { // vLLM's optional route is not there
			body := whole.Body.String()
			io.WriteString(conn, "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
			return
		}
		h.script(&wire{conn, &written}, whole)
	})
}

const (
	okay       = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	okayClosed = okay + "Connection: close\r\n\r\n"
)

// beginning is the first half of an answer, which ends between two events.
func beginning(whole *httptest.ResponseRecorder) string {
	events := strings.SplitAfter(whole.Body.String(), "\n\n")
	return strings.Join(events[:len(events)/2], "")
}

// chunked is text in one chunk, without the end.
func chunked(text string) string {
	return strconv.FormatInt(int64(len(text)), 16) + "\r\n" + text + "\r\n"
}

const chunkedHeader = okay + "Transfer-Encoding: chunked\r\n\r\n"

var mebibyte = strings.Repeat("x", 1<<20)

// bomb is 256 MiB in little room.
var bomb = sync.OnceValue(func() string {
	var b strings.Builder
	z := gzip.NewWriter(&b)
	for range 256 {
		io.WriteString(z, mebibyte)
	}
	z.Close()
	return b.String()
})

// scripted makes a hostile failure.
func scripted(name string, p phase, c string, script func(c *wire, whole *httptest.ResponseRecorder)) *failure {
	return &failure{name: name, phases: []phase{p}, code: c, hostile: &hostile{script}}
}

func harmless(f *failure) *failure {
	f.fate, f.unaided = unharmed, true
	return f
}

func hostiles() []*failure {
	redirected := scripted("redirect to another host", beforeFirst, "worker_misconfigured", func(c *wire, _ *httptest.ResponseRecorder) {
		c.send("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://" + survivor + "/v1/completions\r\nContent-Length: 0\r\n\r\n")
	})
	redirected.fate = passedOn
	slow := scripted("endless comments", beforeFirst, "worker_stalled", func(c *wire, _ *httptest.ResponseRecorder) {
		for c.send(okayClosed); c.send(": still here\n\n"); {
			time.Sleep(100 * time.Millisecond)
		}
	})
	slow.gap = bound
	slowHeaders := scripted("headers, a byte every second", beforeFirst, "worker_stalled", func(c *wire, _ *httptest.ResponseRecorder) {
		for c.send(okay + "X: "); c.send("x"); {
			time.Sleep(time.Second)
		}
	})
	slowHeaders.gap = bound
	return []*failure{
		scripted("endless headers", beforeFirst, "worker_protocol_error", func(c *wire, _ *httptest.ResponseRecorder) {
			c.send(okay)
			c.repeat("X-More: "+mebibyte+"\r\n", 1<<30)
		}),
		scripted("endless status line", beforeFirst, "worker_protocol_error", func(c *wire, _ *httptest.ResponseRecorder) {
			c.send("HTTP/1.1 200 ")
			c.repeat(mebibyte, 1<<30)
		}),
		slowHeaders,
		scripted("endless line", inTheMiddle, "worker_protocol_error", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send(okayClosed + beginning(whole) + "data: ")
			c.repeat(mebibyte, 1<<30)
		}),
		scripted("event of 1 GiB in many lines", inTheMiddle, "worker_protocol_error", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send(okayClosed + beginning(whole))
			c.repeat("data: "+mebibyte+"\n", 1<<30)
		}),
		scripted("JSON nested 10 million deep", inTheMiddle, "worker_protocol_error", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send(okayClosed + beginning(whole) + `data: {"x":`)
			c.repeat(strings.Repeat("[", 1<<20), 10<<20)
			c.send("\n\n")
		}),
		scripted("numbers of a million digits", inTheMiddle, "worker_protocol_error", func(c *wire, whole *httptest.ResponseRecorder) {
			digits := strings.Repeat("9", 1<<20)
			c.send(okayClosed + beginning(whole) + `data: {"choices":[{"index":0,"token_ids":[` + digits + `]}],"tokens":[` + digits + "]}\n\n")
		}),
		slow,
		scripted("gzip bomb", beforeFirst, "worker_disconnected", func(c *wire, _ *httptest.ResponseRecorder) {
			c.send(okay + "Content-Encoding: gzip\r\nConnection: close\r\n\r\n" + bomb())
		}),
		redirected,
		scripted("Content-Length too long", inTheMiddle, "worker_disconnected", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send(okay + "Content-Length: 1000000\r\n\r\n" + beginning(whole))
		}),
		scripted("Content-Length too short", inTheMiddle, "worker_disconnected", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send(okay + "Content-Length: " + strconv.Itoa(len(beginning(whole))) + "\r\n\r\n" + whole.Body.String())
		}),
		scripted("Content-Length that is no number", beforeFirst, "worker_protocol_error", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send(okay + "Content-Length: -1\r\n\r\n" + whole.Body.String())
		}),
		scripted("chunk size that is no number", inTheMiddle, "worker_protocol_error", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send(chunkedHeader + chunked(beginning(whole)) + "zzzz\r\n")
		}),
		scripted("chunk of 2^63 bytes, cut", inTheMiddle, "worker_disconnected", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send(chunkedHeader + chunked(beginning(whole)) + "7fffffffffffffff\r\n")
		}),
		harmless(scripted("junk after the finish", beforeFinish, "", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send(chunkedHeader + chunked(whole.Body.String()+"data: more\n\n") + "0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad")
		})),
		harmless(scripted("endless junk after the finish", beforeFinish, "", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send(okayClosed + whole.Body.String())
			c.repeat(mebibyte, 1<<30)
		})),
		harmless(scripted("three 100 Continue first", beforeFirst, "", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 3) + okayClosed + whole.Body.String())
		})),
		scripted("endless 100 Continue", beforeFirst, "worker_protocol_error", func(c *wire, _ *httptest.ResponseRecorder) {
			c.repeat("HTTP/1.1 100 Continue\r\n\r\n", 1<<30)
		}),
		scripted("endless 103 with headers", beforeFirst, "worker_protocol_error", func(c *wire, _ *httptest.ResponseRecorder) {
			c.repeat("HTTP/1.1 103 Early Hints\r\nLink: "+strings.Repeat("x", 8<<10)+"\r\n\r\n", 1<<30)
		}),
		scripted("101 Switching Protocols", beforeFirst, "worker_protocol_error", func(c *wire, _ *httptest.ResponseRecorder) {
			c.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h3\r\nConnection: Upgrade\r\n\r\n")
		}),
		harmless(scripted("HTTP/1.0, the whole answer until the connection is closed", beforeFirst, "", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + whole.Body.String())
		})),
		scripted("HTTP/1.0, closed in the middle", inTheMiddle, "worker_disconnected", func(c *wire, whole *httptest.ResponseRecorder) {
			c.send("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + beginning(whole))
		}),
		scripted("no HTTP at all", beforeFirst, "worker_protocol_error", func(c *wire, _ *httptest.ResponseRecorder) {
			c.send("\x16\x03\x01\x02\x00 SSH-2.0\r\n\r\n")
		}),
	}
}

// bounded runs a hostile failure and checks what of it was read and kept.
func (f *failure) bounded(t *testing.T, run func() observation) observation {
	if f.hostile == nil {
		return run()
	}
	bomb() // making it takes more memory than it may take
	written.Store(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := run()
	runtime.ReadMemStats(&after)
	if n := written.Load(); n > maxNonsense {
		t.Errorf("%d bytes were read of the worker's nonsense", n)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > maxAllocated+64<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
	return o
}
