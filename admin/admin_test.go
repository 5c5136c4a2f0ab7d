package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"baton/engine"
	"baton/router"
	"baton/server"
)

// fakeWorkers knows two workers and notes what it was told.
type fakeWorkers struct{ told []string }

func (f *fakeWorkers) Workers() []router.WorkerStatus {
	return []router.WorkerStatus{
		{ID: "10.0.0.1:8000", URL: "http://10.0.0.1:8000", Kind: "vllm", Models: []string{"m"}, State: "ready", InFlight: 3},
		{ID: "10.0.0.2:8000", URL: "http://10.0.0.2:8000", State: "starting", Reason: "not attached yet"},
	}
}

func (f *fakeWorkers) Groups() []router.Group {
	return []router.Group{{Model: "m", Members: []router.Member{
		{WorkerID: "10.0.0.1:8000", Kind: "vllm", Own: "org/m", ContextLength: 4096, Parameters: engine.Parameters{engine.Seed: {Meaning: "v"}}},
		{WorkerID: "10.0.0.3:8080", Kind: "llamacpp", Own: "m.gguf", ContextLength: 2048,
			Parameters: engine.Parameters{engine.Seed: {Meaning: "l"}, engine.CacheSalt: {Fidelity: engine.Unsupported}}},
	}}, {Model: "tuned", Base: "m", Members: []router.Member{{WorkerID: "10.0.0.1:8000", Kind: "vllm", Own: "tuned"}}}}
}

func (f *fakeWorkers) Hints() []Hint {
	return []Hint{{Models: []string{"m", "m-2"}, Flags: "--served-model-name 'm-2=m'"}}
}

func (f *fakeWorkers) tell(verb, id string) (int, bool) {
	if id != "10.0.0.1:8000" && id != "[::1]:8000" {
		return 0, false
	}
	f.told = append(f.told, verb+" "+id)
	return 3, true
}

func (f *fakeWorkers) Drain(id string) (int, bool)   { return f.tell("drain", id) }
func (f *fakeWorkers) Undrain(id string) (int, bool) { return f.tell("undrain", id) }

type fakeRequests []server.RequestStatus

func (f fakeRequests) Requests(limit int) ([]server.RequestStatus, int) {
	return f[:min(limit, len(f))], len(f)
}

func newAdmin(requests ...server.RequestStatus) (*Admin, *fakeWorkers, *slog.LevelVar) {
	workers, level := &fakeWorkers{}, &slog.LevelVar{}
	return New(workers, fakeRequests(requests), level, "baton.example", slog.New(slog.DiscardHandler)), workers, level
}

// ask sends one request as curl would, except for headers, which are "Name: value".
func ask(a *Admin, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "127.0.0.1:8001"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	a.Handler().ServeHTTP(w, r)
	return w
}

func TestWorkers(t *testing.T) {
	a, _, _ := newAdmin()
	w := ask(a, "GET", "/admin/workers", "")
	want := `{"workers":[{"id":"10.0.0.1:8000","url":"http://10.0.0.1:8000","kind":"vllm","models":["m"],"state":"ready","reason":"","in_flight":3},` +
		`{"id":"10.0.0.2:8000","url":"http://10.0.0.2:8000","kind":"","models":[],"state":"starting","reason":"not attached yet","in_flight":0}],` +
		`"groups":[{"model":"m","smallest_context":2048,"largest_context":4096,"different_parameters":["seed"],"partial_parameters":["cache_salt"],` +
		`"workers":[{"id":"10.0.0.1:8000","kind":"vllm","name":"org/m","context_length":4096},{"id":"10.0.0.3:8080","kind":"llamacpp","name":"m.gguf","context_length":2048}]},` +
		`{"model":"tuned","base":"m","smallest_context":0,"largest_context":0,"different_parameters":[],"partial_parameters":[],` +
		`"workers":[{"id":"10.0.0.1:8000","kind":"vllm","name":"tuned","context_length":0}]}],` +
		`"hints":[{"models":["m","m-2"],"flags":"--served-model-name 'm-2=m'"}]}` + "\n"
	if w.Code != 200 || w.Body.String() != want {
		t.Errorf("status %d, got\n%swant\n%s", w.Code, w.Body, want)
	}
}

func TestDrain(t *testing.T) {
	for _, c := range []struct{ target, told string }{
		{"/admin/workers/10.0.0.1:8000/drain", "drain 10.0.0.1:8000"},
		{"/admin/workers/10.0.0.1%3A8000/drain", "drain 10.0.0.1:8000"},
		{"/admin/workers/10.0.0.1:8000/undrain", "undrain 10.0.0.1:8000"},
		{"/admin/workers/%5B::1%5D:8000/drain", "drain [::1]:8000"},
	} {
		a, workers, _ := newAdmin()
		w := ask(a, "POST", c.target, "")
		var got Drained
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		_, id, _ := strings.Cut(c.told, " ")
		if w.Code != 202 || (got != Drained{ID: id, Running: 3}) || len(workers.told) != 1 || workers.told[0] != c.told {
			t.Errorf("%s: status %d, %s, told %q", c.target, w.Code, w.Body, workers.told)
		}
	}
}

func TestRequests(t *testing.T) {
	start := time.Now().Add(-time.Minute)
	a, _, _ := newAdmin(
		server.RequestStatus{ID: "chatcmpl-1", ClientID: "mine", Endpoint: "chat_completions", Model: "m", Start: start,
			Choices: []server.ChoiceStatus{{WorkerID: "w:1", Tokens: 7, Attempts: 2, Migrations: 1}}},
		server.RequestStatus{ID: "cmpl-2", Endpoint: "completions", Start: start},
	)
	w := ask(a, "GET", "/admin/requests", "")
	var got RequestsReply
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if w.Code != 200 || got.Total != 2 || len(got.Requests) != 2 {
		t.Fatalf("status %d, %s", w.Code, w.Body)
	}
	first, second := got.Requests[0], got.Requests[1]
	if first.AgeMS < 60_000 || first.AgeMS > 120_000 {
		t.Errorf("age %d ms", first.AgeMS)
	}
	first.AgeMS, second.AgeMS = 0, 0
	if want := (Request{ID: "chatcmpl-1", ClientID: "mine", Model: "m", Endpoint: "chat_completions", Phase: "streaming", Worker: "w:1", Tokens: 7, Attempts: 2, Migrations: 1}); !same(first, want) {
		t.Errorf("got %+v, want %+v", first, want)
	}
	if want := (Request{ID: "cmpl-2", Endpoint: "completions", Phase: "receiving"}); !same(second, want) {
		t.Errorf("got %+v, want %+v", second, want)
	}
	none, _, _ := newAdmin()
	if w := ask(none, "GET", "/admin/requests", ""); w.Body.String() != `{"total":0,"requests":[]}`+"\n" {
		t.Errorf("with no request: %s", w.Body)
	}
}

func same(a, b Request) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func TestPhases(t *testing.T) {
	queued := server.ChoiceStatus{}
	asked := server.ChoiceStatus{WorkerID: "w:1", Attempts: 1}
	streaming := server.ChoiceStatus{WorkerID: "w:2", Attempts: 1, Tokens: 5}
	moving := server.ChoiceStatus{Attempts: 1, Tokens: 5, Moving: true}
	ended := server.ChoiceStatus{Attempts: 1, Tokens: 9}
	for _, c := range []struct {
		choices       []server.ChoiceStatus
		phase, worker string
	}{
		{nil, "receiving", ""},
		{[]server.ChoiceStatus{queued}, "queued", ""},
		{[]server.ChoiceStatus{asked}, "queued", "w:1"},
		{[]server.ChoiceStatus{streaming}, "streaming", "w:2"},
		{[]server.ChoiceStatus{moving}, "moving", ""},
		{[]server.ChoiceStatus{ended}, "streaming", ""},
		{[]server.ChoiceStatus{ended, streaming}, "streaming", "w:2"},
		{[]server.ChoiceStatus{streaming, queued}, "queued", "w:2"},
		{[]server.ChoiceStatus{queued, moving, streaming}, "moving", "w:2"},
	} {
		r := requestOf(server.RequestStatus{Choices: c.choices}, time.Now())
		if r.Phase != c.phase || r.Worker != c.worker {
			t.Errorf("%+v: %q on %q, want %q on %q", c.choices, r.Phase, r.Worker, c.phase, c.worker)
		}
		if several := len(c.choices) > 1; several != (r.Choices != nil) {
			t.Errorf("%d choices are listed as %+v", len(c.choices), r.Choices)
		}
	}
}

func TestLogLevel(t *testing.T) {
	a, _, level := newAdmin()
	if w := ask(a, "GET", "/admin/log-level", ""); w.Body.String() != `{"level":"info"}`+"\n" {
		t.Errorf("at first: %s", w.Body)
	}
	for body, want := range map[string]slog.Level{`{"level":"debug"}`: slog.LevelDebug, "warn\n": slog.LevelWarn, `"ERROR"`: slog.LevelError} {
		if w := ask(a, "PUT", "/admin/log-level", body); w.Code != 200 || level.Level() != want {
			t.Errorf("%s: status %d, level %v", body, w.Code, level.Level())
		}
	}
	before := level.Level()
	for _, body := range []string{"", "loud", `{"level":"info+2"}`, `{"level":7}`, `{`, strings.Repeat("x", maxBodyBytes+1)} {
		w := ask(a, "PUT", "/admin/log-level", body)
		if w.Code != 400 && w.Code != 413 || level.Level() != before {
			t.Errorf("%.20q: status %d, level %v", body, w.Code, level.Level())
		}
	}
}

// Every refusal has OpenAI's error object.
func TestRefusals(t *testing.T) {
	a, workers, level := newAdmin()
	for _, c := range []struct {
		method, target string
		headers        []string
		status         int
		code           string
	}{
		{"POST", "/admin/workers/10.0.0.9:1/drain", nil, 404, "worker_not_found"},
		{"POST", "/admin/workers/%1b[31m/undrain", nil, 404, "worker_not_found"},
		{"GET", "/admin/workers/10.0.0.1:8000/drain", nil, 405, "method_not_allowed"},
		{"DELETE", "/admin/requests", nil, 405, "method_not_allowed"},
		{"POST", "/admin/log-level", nil, 405, "method_not_allowed"},
		{"GET", "/", nil, 404, "not_found"},
		{"GET", "/v1/models", nil, 404, "not_found"},

		{"GET", "/admin/workers", []string{"Sec-Fetch-Site: cross-site"}, 403, "cross_site_request"},
		{"GET", "/debug/pprof/goroutine", []string{"Sec-Fetch-Site: cross-site"}, 403, "cross_site_request"},
		{"POST", "/admin/workers/10.0.0.1:8000/drain", []string{"Sec-Fetch-Site: same-site"}, 403, "cross_site_request"},
		{"POST", "/admin/workers/10.0.0.1:8000/drain", []string{"Origin: http://evil.example"}, 403, "cross_site_request"},
		{"POST", "/admin/workers/10.0.0.1:8000/drain", []string{"Origin: http://127.0.0.1:3000"}, 403, "cross_site_request"},
		{"POST", "/admin/workers/10.0.0.1:8000/drain", []string{"Origin: null"}, 403, "cross_site_request"},
		{"POST", "/admin/workers/10.0.0.1:8000/drain", []string{"Origin: http://127.0.0.1:8001", "Origin: http://evil.example"}, 403, "cross_site_request"},
		{"PUT", "/admin/log-level", []string{"Origin: https://127.0.0.1:8001"}, 403, "cross_site_request"},
		{"POST", "/admin/workers/10.0.0.1:8000/drain", []string{"Host: evil.example:8001", "Origin: http://evil.example:8001", "Sec-Fetch-Site: same-origin"}, 403, "foreign_host"},
		{"GET", "/admin/workers", []string{"Host: localhost.evil.example"}, 403, "foreign_host"},
		{"GET", "/admin/workers", []string{"Host: "}, 403, "foreign_host"},
	} {
		w := ask(a, c.method, c.target, "debug", c.headers...)
		var got struct {
			Error struct {
				Message, Type, Code string
				Param               *string
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Errorf("%s %s: %v in %s", c.method, c.target, err, w.Body)
		}
		if w.Code != c.status || got.Error.Code != c.code || got.Error.Message == "" || got.Error.Type != "invalid_request_error" || strings.Contains(w.Body.String(), "\x1b") {
			t.Errorf("%s %s %q: status %d, %s; want %d, %s", c.method, c.target, c.headers, w.Code, w.Body, c.status, c.code)
		}
		if c.status == 405 && w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.target)
		}
		if h := w.Header().Get("Access-Control-Allow-Origin"); h != "" {
			t.Errorf("%s %s: pages of %q may read the answer", c.method, c.target, h)
		}
	}
	if len(workers.told) > 0 || level.Level() != slog.LevelInfo {
		t.Errorf("a refused request did something: %q, level %v", workers.told, level.Level())
	}
}

func TestWelcomeHosts(t *testing.T) {
	a, _, _ := newAdmin()
	for _, headers := range [][]string{
		nil,
		{"Host: localhost:8001"}, {"Host: LOCALHOST"}, {"Host: [::1]:8001"}, {"Host: ::1"}, {"Host: 10.2.3.4"}, {"Host: Baton.Example:8001"},
		{"Sec-Fetch-Site: none"},
		{"Sec-Fetch-Site: same-origin", "Origin: http://127.0.0.1:8001"},
	} {
		if w := ask(a, "GET", "/admin/workers", "", headers...); w.Code != 200 {
			t.Errorf("%q: status %d, %s", headers, w.Code, w.Body)
		}
	}
}

// The real server: it shows profiles, does not wait for a body that nobody needs,
// and ends with its context.
func TestServe(t *testing.T) {
	a, _, _ := newAdmin()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- a.Serve(ctx, l) }()

	resp, err := http.Get("http://" + l.Addr().String() + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), "goroutine profile:") {
		t.Errorf("status %d, %v, %.100s", resp.StatusCode, err, body)
	}

	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(readTimeout / 2))
	io.WriteString(conn, "POST /admin/workers/10.0.0.1:8000/drain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n")
	if line, err := bufio.NewReader(conn).ReadString('\n'); !strings.Contains(line, " 202 ") {
		t.Errorf("without its body: %q, %v", line, err)
	}

	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}
