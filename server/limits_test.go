package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"baton/openai"
	"baton/router"
)

func readAll(t testing.TB, resp *http.Response) []byte {
	t.Helper()
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// bodyOf returns a valid body of exactly n bytes.
func bodyOf(n int) string {
	const head, tail = `{"model":"m","echo":"`, `"}`
	return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
}

func TestBodyLimit(t *testing.T) {
	const limit = 1 << 20
	rig := newRig(says("x"), func(c *Config) { c.MaxBodyBytes = limit })
	ts := rig.serve(t)
	if resp, raw := post(t, ts, chatPath, bodyOf(limit)); resp.StatusCode != 200 {
		t.Errorf("a body at the limit: %d %s", resp.StatusCode, raw)
	}
	before := rig.preparer.calls.Load()
	for name, body := range map[string]io.Reader{
		"with length": strings.NewReader(bodyOf(limit + 1)),
		"chunked":     io.MultiReader(strings.NewReader(bodyOf(limit + 1))),
	} {
		req, _ := http.NewRequest("POST", ts.URL+chatPath, body)
		resp, err := ts.Client().Do(req)
		if err != nil {
			t.Fatal(name, err)
		}
		raw := readAll(t, resp)
		if wantError(t, resp, raw, 413, "request_too_large"); !strings.Contains(string(raw), fmt.Sprint(limit)) {
			t.Errorf("%s: the message does not name the limit: %s", name, raw)
		}
	}
	if got := rig.preparer.calls.Load(); got != before {
		t.Errorf("a body that is too large was looked at")
	}
}

func TestDefaultBodyLimit(t *testing.T) {
	body := bodyOf(12 << 20)
	if resp, raw := post(t, newRig(says("x")).serve(t), chatPath, body); resp.StatusCode != 200 || !strings.Contains(string(raw), "chatcmpl") {
		t.Errorf("12 MiB: %d", resp.StatusCode)
	}
}

func TestMediaTypes(t *testing.T) {
	rig := newRig(says("x"))
	ts := rig.serve(t)
	for contentType, status := range map[string]int{
		"": 200, "application/json": 200, "Application/JSON; charset=utf-8": 200, "application/problem+json": 200,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, ";": 415,
	} {
		resp, raw := post(t, ts, chatPath, `{"model":"m"}`, "Content-Type", contentType)
		if resp.StatusCode != status {
			t.Errorf("Content-Type %q: %d %s, want %d", contentType, resp.StatusCode, raw, status)
		}
		if status != 200 {
			wantError(t, resp, raw, 415, "unsupported_media_type")
		}
	}
	resp, raw := post(t, ts, chatPath, "\x1f\x8b", "Content-Encoding", "gzip")
	wantError(t, resp, raw, 415, "unsupported_media_type")
}

func TestRefusalsOfThePreparer(t *testing.T) {
	rig := newRig(says("x"))
	ts := rig.serve(t)
	for body, status := range map[string]int{`{`: 400, `[]`: 400, `{"model":"none"}`: 404, ``: 400} {
		if resp, raw := post(t, ts, chatPath, body); resp.StatusCode != status || !strings.Contains(string(raw), `"error"`) {
			t.Errorf("%q: %d %s", body, resp.StatusCode, raw)
		}
	}
	if strings.Contains(rig.log.String(), "WARN") {
		t.Errorf("a client's mistake is a warning: %s", rig.log)
	}
}

func TestPanicInPreparerIs500(t *testing.T) {
	rig := newRig(says("x"))
	ts := rig.serve(t)
	resp, raw := post(t, ts, chatPath, `{"model":"m","panic":true}`)
	wantError(t, resp, raw, 500, "internal_error")
	if !strings.Contains(rig.log.String(), "index out of range") {
		t.Errorf("log %s", rig.log)
	}
	if resp, _ := post(t, ts, chatPath, `{"model":"m"}`); resp.StatusCode != 200 {
		t.Error("the next request fails")
	}
	rig.wantEnd(t, "internal", 1)
	if n := rig.running.count(); n != 0 {
		t.Errorf("%d requests are still counted", n)
	}
}

func TestConcurrencyLimit(t *testing.T) {
	rig := newRig(untilCancelled("x"), func(c *Config) { c.MaxConcurrentRequests = 2 })
	ts := rig.serve(t)
	for range 2 {
		resp, err := request(ts, chatPath, `{"model":"m","stream":true}`)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
			t.Fatal(line, err)
		}
	}
	resp, raw := post(t, ts, chatPath, `{"model":"m"}`)
	e := wantError(t, resp, raw, 429, "too_many_concurrent_requests")
	if e.Error.Type != "rate_limit_error" || !strings.HasPrefix(e.Error.Message, "The limit of 2 concurrent requests is reached (--max-concurrent-requests). ") || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("error %s, headers %v", raw, resp.Header)
	}
	if resp, _ := get(t, ts, "/health"); resp.StatusCode != 200 {
		t.Error("the limit concerns /health")
	}
}

// A client that sends half a body takes no place.
func TestHalfSentBodiesAreNotCounted(t *testing.T) {
	rig := newRig(says("x"), func(c *Config) { c.MaxConcurrentRequests = 1 })
	ts := rig.serve(t)
	for range 3 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(ts.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", chatPath)
	}
	for deadline := time.Now().Add(10 * time.Second); rig.running.count() < 3; {
		if time.Now().After(deadline) {
			t.Fatal("the half-sent requests did not arrive")
		}
		runtime.Gosched()
	}
	if resp, raw := post(t, ts, chatPath, `{"model":"m"}`); resp.StatusCode != 200 {
		t.Errorf("%d %s", resp.StatusCode, raw)
	}
}

type panickingFleet struct{}

func (panickingFleet) Models() []router.ModelStatus   { panic("oops") }
func (panickingFleet) Workers() []router.WorkerStatus { panic("oops") }

// A panic before anything is sent is a 500; after it the connection is aborted.
func TestRecovering(t *testing.T) {
	rig := newRig(says("x"))
	rig.fleet = panickingFleet{}
	resp, raw := get(t, rig.serve(t), "/v1/models")
	wantError(t, resp, raw, 500, "internal_error")

	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("recovered %v", v)
		}
	}()
	rig.recovering(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, 200, []byte("{"))
		panic("oops")
	})).ServeHTTP(&statusWriter{header: http.Header{}}, httptest.NewRequest("GET", "/", nil))
}

// A client that leaves in the middle of its body is answered with nothing.
func TestHalfABody(t *testing.T) {
	rig := newRig(says("x"))
	ts := rig.serve(t)
	conn, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"model\"", chatPath)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(conn); len(raw) > 0 {
		t.Errorf("answer %q, %v", raw, err)
	}
	if rig.preparer.calls.Load() != 0 {
		t.Error("half a body was looked at")
	}
}

// A client that breaks the rules of chunks has not left, and is told.
func TestMalformedChunks(t *testing.T) {
	rig := newRig(says("x"))
	ts := rig.serve(t)
	for _, chunks := range []string{"zz\r\n", "5\r\n{\"mod!!\r\n", "fffffffffffffffffff\r\n", "1;" + strings.Repeat("x", 8<<10) + "\r\n"} {
		conn, err := net.Dial("tcp", ts.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%s", chatPath, chunks)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%.20q: %v", chunks, err)
		} else {
			wantError(t, resp, readAll(t, resp), 400, "malformed_body")
		}
		conn.Close()
	}
	if rig.preparer.calls.Load() != 0 {
		t.Error("half a body was looked at")
	}
}

func TestWriteErrorRepairsNonsense(t *testing.T) {
	for _, status := range []int{0, 200, 42, 1000} {
		w := &statusWriter{header: http.Header{}}
		writeError(w, &openai.Error{Status: status, Message: "x", Type: "t"})
		if w.status != 500 {
			t.Errorf("%d becomes %d", status, w.status)
		}
	}
}

type statusWriter struct {
	header http.Header
	status int
}

func (w *statusWriter) Header() http.Header         { return w.header }
func (w *statusWriter) WriteHeader(status int)      { w.status = status }
func (w *statusWriter) Write(p []byte) (int, error) { return len(p), nil }

// A client that only says how much it will send takes no memory for that.
func TestDeclaredBodyTakesNoMemory(t *testing.T) {
	rig := newRig(says("x"))
	r := httptest.NewRequest("POST", chatPath, iotest.ErrReader(io.ErrUnexpectedEOF))
	r.ContentLength = 100 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, e := rig.readBody(httptest.NewRecorder(), r); e == nil || e.Status != statusClientClosedRequest {
		t.Errorf("%+v", e)
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 4*initialBodyBytes { // the race detector takes some, too
		t.Errorf("%d bytes were allocated", after.TotalAlloc-before.TotalAlloc)
	}
}
