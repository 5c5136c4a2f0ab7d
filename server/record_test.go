package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/engine"
	"baton/openai"
	"baton/tracing"
)

// record is a line of a log of JSON.
type record struct {
	Msg           string  `json:"msg"`
	Level         string  `json:"level"`
	RequestID     string  `json:"request_id"`
	ClientID      string  `json:"client_request_id"`
	Model         string  `json:"model"`
	Endpoint      string  `json:"endpoint"`
	Status        int     `json:"status"`
	Outcome       string  `json:"outcome"`
	Stream        bool    `json:"stream"`
	Prompt        int     `json:"prompt_tokens"`
	Completion    int     `json:"completion_tokens"`
	Finish        string  `json:"finish"`
	Attempts      int     `json:"attempts"`
	Migrations    int     `json:"migrations"`
	TTFT          float64 `json:"ttft_ms"`
	Duration      float64 `json:"duration_ms"`
	Remote        string  `json:"remote"`
	Kind          string  `json:"kind"`
	AttemptsTrace []struct {
		ID        string  `json:"id"`
		Worker    string  `json:"worker"`
		Tokens    int     `json:"tokens"`
		Reason    string  `json:"reason"`
		Migration string  `json:"migration"`
		Carried   int     `json:"carried"`
		Gap       float64 `json:"gap_ms"`
	} `json:"trace"`
}

// recordsOf serves one request with a log of JSON and returns the records of msg.
func recordsOf(t *testing.T, text Generator, msg, path, body string, change ...func(*Config)) []record {
	t.Helper()
	r := newRig(text, change...)
	out := &logBuffer{}
	r.Server.log = slog.New(slog.NewJSONHandler(out, nil))
	ts := r.serve(t)
	resp, err := request(ts, path, body, "X-Request-Id", "mine")
	if err == nil {
		_, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	ts.Close() // waits for the handler
	var list []record
	for line := range strings.Lines(out.String()) {
		var rec record
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if rec.Msg == msg {
			list = append(list, rec)
		}
		if strings.Contains(line, "secret") {
			t.Errorf("a text of the request or the answer is in the log: %s", line)
		}
	}
	return list
}

func accessLog(c *Config) { c.AccessLog = true }

func TestAccessLog(t *testing.T) {
	dead := &engine.Error{Kind: engine.Disconnected, WorkerID: "w2:8000", Err: errors.New("EOF")}
	tests := map[string]struct {
		text       Generator
		path, body string
		want       record
	}{
		"stream": {says("secret", "secret"), "/v1/chat/completions", `{"model":"m","stream":true}`, record{
			Model: "m", Endpoint: "chat_completions", Status: 200, Outcome: "ok", Stream: true, Prompt: 3, Completion: 3, Finish: "stop", Attempts: 1}},
		"reply of two": {says("secret"), "/v1/completions", `{"model":"m","n":2}`, record{
			Model: "m", Endpoint: "completions", Status: 200, Outcome: "ok", Prompt: 3, Completion: 4, Finish: "stop", Attempts: 2}},
		"moved and failed": {fails(dead, "secret", "secret"), "/v1/chat/completions", `{"model":"m","stream":true}`, record{
			Model: "m", Endpoint: "chat_completions", Status: 502, Outcome: "disconnected", Stream: true, Prompt: 3, Completion: 2, Attempts: 2, Migrations: 1}},
		"refused": {says("x"), "/v1/chat/completions", `{"model":"secret","stream":true}`, record{
			Endpoint: "chat_completions", Status: 404, Outcome: "model_not_found", Stream: true}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := recordsOf(t, test.text, "request", test.path, test.body, accessLog)
			if len(got) != 1 {
				t.Fatalf("%d records: %+v", len(got), got)
			}
			g := got[0]
			if g.ClientID != "mine" || g.Remote != "127.0.0.1" || g.Duration <= 0 || g.RequestID == "" || (g.TTFT > 0) != (test.want.Completion > 0) {
				t.Errorf("%+v", g)
			}
			w := test.want
			w.Msg, w.Level, w.RequestID, w.ClientID, w.Remote, w.TTFT, w.Duration = "request", "INFO", g.RequestID, "mine", "127.0.0.1", g.TTFT, g.Duration
			a, _ := json.Marshal(g)
			b, _ := json.Marshal(w)
			if string(a) != string(b) {
				t.Errorf("got  %s\nwant %s", a, b)
			}
		})
	}
	if got := recordsOf(t, says("x"), "request", "/v1/completions", `{"model":"m"}`); len(got) != 0 {
		t.Errorf("it is not off by default: %+v", got)
	}
}

// One record says what became of a failed request, attempt by attempt.
func TestFailedRequestIsExplained(t *testing.T) {
	dead := &engine.Error{Kind: engine.Disconnected, WorkerID: "w2:8000", Err: errors.New("EOF")}
	got := recordsOf(t, fails(dead, "secret", "secret"), "request failed", "/v1/chat/completions", `{"model":"m","stream":true}`)
	if len(got) != 1 || got[0].Level != "WARN" || got[0].Kind != "disconnected" || len(got[0].AttemptsTrace) != 2 {
		t.Fatalf("%+v", got)
	}
	first, second := got[0].AttemptsTrace[0], got[0].AttemptsTrace[1]
	if first.Worker != "w1:8000" || first.Tokens != 2 || first.Reason != "disconnected" || !strings.HasSuffix(first.ID, "-m00-r000") || first.Migration != "" {
		t.Errorf("first %+v", first)
	}
	if second.Worker != "w2:8000" || second.Migration != "ongoing_request" || second.Carried != 2 || second.Gap != 1.5 {
		t.Errorf("second %+v", second)
	}
}

// The list is bounded, and readable in a log of text.
func TestAttemptRecords(t *testing.T) {
	c := &choice{}
	for range 2 * maxRecordedAttempts {
		c.trace.Begin("old", "w:1")
	}
	for i := range maxRecordedAttempts {
		a := c.trace.Begin("q-m00-r001", "w:2")
		a.End, a.Tokens = a.Start.Add(20*time.Millisecond), i
		a.Err = &engine.Error{Kind: engine.Overloaded, Status: 429, Err: errors.New("secret")}
		a.Migration, a.Carried, a.Gap = engine.NewRequest, 4, time.Millisecond
	}
	list := (&call{choices: []*choice{c}}).attemptRecords()
	if len(list) != maxRecordedAttempts || list[0].ID != "q-m00-r001" {
		t.Fatalf("%d records, the first %+v", len(list), list[0])
	}
	text, err := list[:2].MarshalText()
	want := "q-m00-r001 on w:2: overloaded (429) after 0 tokens and 20 ms, new_request, carried 4, gap 1 ms; " +
		"q-m00-r001 on w:2: overloaded (429) after 1 tokens and 20 ms, new_request, carried 4, gap 1 ms"
	if err != nil || string(text) != want {
		t.Errorf("%s, %v\nwant %s", text, err, want)
	}
}

// Tracing and the access log cost nothing where they are off.
func TestRecordsThatAreOff(t *testing.T) {
	s := quietServer(says("x"))
	c := &call{server: s, ep: &completions, start: time.Now(), choices: []*choice{{}}}
	if n := testing.AllocsPerRun(100, func() { c.record(http.StatusOK, "ok") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestExhaustionIsNotCalledBusyWorkers(t *testing.T) {
	err := &engine.Error{Kind: engine.Overloaded, Status: 503, Err: engine.ErrExhausted}
	e := publicError(err, 3, "", 0)
	if e.Status != 503 || e.RetryAfter < 1 || e.Type != openai.TypeServer || !strings.HasPrefix(e.Message, "The server can make no more connections to its workers") {
		t.Errorf("%+v", e)
	}
}

// A request without a good key is counted and is in the access log, and makes no
// trace, which the request after it does.
func TestRequestsWithoutAKeyAreRecorded(t *testing.T) {
	var spans bytes.Buffer
	var mu sync.Mutex // guards spans
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&spans, r.Body)
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	tracer, err := tracing.New(t.Context(), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(says("x"), accessLog, knowsOnly("s3cret"), func(c *Config) { c.Tracer = tracer })
	out := &logBuffer{}
	r.Server.log = slog.New(slog.NewJSONHandler(out, nil))
	ts := r.serve(t)

	bad, _ := post(t, ts, chatPath, `{"model":"m","stream":true}`, "Authorization", "Bearer wr0ng", "X-Request-Id", "bad")
	get, _ := do(t, ts, "GET", chatPath)
	listing, _ := do(t, ts, "GET", "/v1/models")
	good, _ := post(t, ts, chatPath, `{"model":"m"}`, "Authorization", "Bearer s3cret", "X-Request-Id", "good")
	for resp, want := range map[*http.Response]int{bad: 401, get: 401, listing: 401, good: 200} {
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", resp.Request.URL, resp.StatusCode, want)
		}
	}
	ts.Close()
	if err := tracer.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	var records []record
	for line := range strings.Lines(out.String()) {
		var one record
		if json.Unmarshal([]byte(line), &one) == nil && one.Msg == "request" {
			records = append(records, one)
		}
	}
	if len(records) != 2 {
		t.Fatalf("%d records, want that of the bad and that of the good request: %s", len(records), out.String())
	}
	if one := records[0]; one.ClientID != "bad" || one.Status != 401 || one.Outcome != "invalid_api_key" || one.Endpoint != "chat_completions" || one.Remote == "" {
		t.Errorf("%+v", one)
	}
	if n := r.sum(t, "requests_total", `model="unknown"`, `status="error"`, `error_type="validation"`); n != 1 {
		t.Errorf("%v requests without a key are counted", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(spans.String(), records[1].RequestID) || strings.Contains(spans.String(), records[0].RequestID) {
		t.Errorf("%d bytes of spans", spans.Len())
	}
}
