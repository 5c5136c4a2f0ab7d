package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"baton/backend"
	"baton/engine"
	"baton/openai"
	"baton/parser"
	"baton/preprocess"
	"baton/responsestore"
	"baton/router"
)

// fakePreparer takes a body that spells out what the real one would find.
type fakePreparer struct{ calls atomic.Int64 }

type fakeBody struct {
	Model     string `json:"model"`
	N         int    `json:"n"`
	Prompts   int    `json:"prompts"`
	Stream    bool   `json:"stream"`
	Usage     bool   `json:"usage"`
	Continual bool   `json:"continual"`
	IDs       bool   `json:"ids"`
	Logprobs  bool   `json:"logprobs"`
	Top       int    `json:"top"`
	Echo      string `json:"echo"`
	Tools     string `json:"tools"`    // the format of calls
	Thoughts  string `json:"thoughts"` // and of reasoning
	Hide      bool   `json:"hide"`
	Summarize bool   `json:"summarize"`
	Short     bool   `json:"short"`
	Panic     bool   `json:"panic"`
	Keep      bool   `json:"keep"`     // the response
	Previous  string `json:"previous"` // goes on from it
	Refer     string `json:"refer"`    // to an item
}

// promptIDs is the prompt of every fake choice.
var promptIDs = []engine.TokenID{7, 8, 9}

func (p *fakePreparer) Chat(id string, body []byte) (*preprocess.Prepared, *openai.Error) {
	p.calls.Add(1)
	b := fakeBody{N: 1, Prompts: 1}
	if err := json.Unmarshal(body, &b); err != nil {
		return nil, &openai.Error{Status: 400, Message: "The body is no JSON.", Type: openai.TypeInvalidRequest}
	}
	if b.Panic {
		_ = promptIDs[len(promptIDs)+len(body)]
	}
	if b.N > 128 {
		return nil, &openai.Error{Status: 400, Message: "n must be at most 128.", Type: openai.TypeInvalidRequest, Param: "n"}
	}
	if b.Model != "m" && b.Model != "org/m" {
		return nil, &openai.Error{Status: 404, Message: "No such model.", Type: openai.TypeInvalidRequest, Param: "model", Code: "model_not_found"}
	}
	out := &preprocess.Prepared{
		Model: b.Model, Stream: b.Stream, IncludeUsage: b.Usage, ContinuousUsage: b.Continual, ReturnTokenIDs: b.IDs,
		PromptTokens: len(promptIDs) * b.Prompts, SummarizeReasoning: b.Summarize,
	}
	if b.Tools != "" || b.Thoughts != "" {
		out.Read = &preprocess.Reading{
			Options:       parser.Options{Tool: parser.ToolByName(b.Tools), Reasoning: parser.ReasoningByName(b.Thoughts), Parallel: true},
			HideReasoning: b.Hide, ShortCallIDs: b.Short,
		}
	}
	for i := range b.N * b.Prompts {
		out.Choices = append(out.Choices, preprocess.Choice{
			Request: &backend.Request{Tokens: &engine.Request{ID: fmt.Sprintf("%s-%03d", id, i), Model: b.Model, TokenIDs: promptIDs, Output: engine.OutputOptions{Logprobs: b.Logprobs, TopLogprobs: b.Top}}},
			Echo:    b.Echo,
		})
	}
	return out, nil
}

func (p *fakePreparer) Completion(id string, body []byte) (*preprocess.Prepared, *openai.Error) {
	return p.Chat(id, body)
}

// fakeEcho is what a response repeats of its request.
const fakeEcho = `"instructions":null,"metadata":{"a":"b"},"parallel_tool_calls":true,"temperature":1,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1`

func (p *fakePreparer) Responses(id string, body []byte, recall preprocess.Recall) (*preprocess.Prepared, *openai.Error) {
	out, err := p.Chat(id, body)
	if err == nil {
		out.Echo = []byte(fakeEcho)
		out.Input, err = fakeInput(id, body, recall)
		if out.Read != nil {
			out.Read.Namespaces = map[string]string{"space.f": "space"}
		}
	}
	return out, err
}

// fakeInput is what was said before a response, which is kept with an item that has its
// id.
func fakeInput(id string, body []byte, recall preprocess.Recall) (*responsestore.Items, *openai.Error) {
	var b fakeBody
	if err := json.Unmarshal(body, &b); err != nil || recall == nil {
		return nil, nil
	}
	before, found := recall.Conversation(b.Previous)
	_, referred := recall.Item(b.Refer)
	switch {
	case b.Previous != "" && !found || b.Refer != "" && !referred:
		return nil, openai.PreviousResponseNotFound(b.Previous, responsestore.WhileKept)
	case !b.Keep:
		return nil, nil
	}
	item := `{"id":"in_` + id + `","type":"message","role":"user","content":[]}`
	return responsestore.NewItems(before, []byte(item), []int{len(item)}), nil
}

// choiceIndex is the number that fakePreparer put at the end of the id.
func choiceIndex(req *backend.Request) int {
	var i int
	fmt.Sscanf(req.Tokens.ID[strings.LastIndexByte(req.Tokens.ID, '-')+1:], "%d", &i)
	return i
}

// A fakeText is a generator. yield returns false when the server left the loop.
type fakeText func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool)

func (f fakeText) Generate(ctx context.Context, req *backend.Request) backend.Stream {
	return func(yield func(backend.Delta, error) bool) { f(ctx, req, yield) }
}

// says generates one token for each word and then finishes with stop.
func says(words ...string) fakeText {
	return func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		req.Tokens.Trace.Begin(req.Tokens.ID+"-m00-r000", "w1:8000")
		for i, w := range words {
			if !yield(token(i+1, w), nil) {
				return
			}
		}
		yield(finish(len(words)+1), nil)
	}
}

// token is the n-th token of a choice.
func token(n int, text string) backend.Delta {
	return backend.Delta{Text: []byte(text), TokenIDs: []engine.TokenID{engine.TokenID(100 + n)}, CompletionTokens: n, StopID: -1}
}

// finish is the end id, which is the n-th token of a choice.
func finish(n int) backend.Delta {
	d := token(n, "")
	d.FinishReason = engine.FinishStop
	return d
}

// fails delivers the words and then dies of e; the trace has two attempts.
func fails(e *engine.Error, words ...string) fakeText {
	return func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		first := req.Tokens.Trace.Begin(req.Tokens.ID+"-m00-r000", "w1:8000")
		first.Tokens, first.Err = len(words), e
		second := req.Tokens.Trace.Begin(req.Tokens.ID+"-m01-r000", "w2:8000")
		second.Migration, second.Carried, second.Gap = engine.OngoingRequest, len(words), 1500*time.Microsecond
		for i, w := range words {
			if !yield(token(i+1, w), nil) {
				return
			}
		}
		yield(backend.Delta{}, e)
	}
}

// untilCancelled delivers the words and then waits for the end of ctx.
func untilCancelled(words ...string) fakeText {
	return func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		for i, w := range words {
			if !yield(token(i+1, w), nil) {
				return
			}
		}
		<-ctx.Done()
		yield(backend.Delta{}, engine.CauseOf(ctx))
	}
}

type fakeFleet []router.ModelStatus

func (f fakeFleet) Models() []router.ModelStatus { return f }

func (f fakeFleet) Workers() []router.WorkerStatus {
	return []router.WorkerStatus{{ID: "10.0.0.1:8000", Kind: "vllm"}, {ID: "10.0.0.2:8000"}, {ID: "10.0.0.3:8000"}}
}

var oneModel = fakeFleet{{Name: "m", Ready: 1, Total: 2, ContextLength: 4096, Since: time.Unix(1790000000, 0)}}

// A logBuffer is a log that may be read while others write.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A rig is a server with its fakes and where it can be looked at.
type rig struct {
	*Server
	preparer *fakePreparer
	registry *prometheus.Registry
	log      *logBuffer
}

func newRig(text Generator, change ...func(*Config)) *rig {
	cfg := Config{MetricsNamespace: "baton_test", Version: "1.2.3"}
	for _, f := range change {
		f(&cfg)
	}
	r := &rig{preparer: &fakePreparer{}, registry: prometheus.NewRegistry(), log: &logBuffer{}}
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.Server = New(r.preparer, text, oneModel, cfg, log, r.registry, r.registry)
	return r
}

// serve listens on loopback until the test ends.
func (r *rig) serve(t testing.TB) *httptest.Server {
	ts := httptest.NewUnstartedServer(r.Handler())
	ts.Listener = r.Listen(ts.Listener, ts.Config)
	ts.Start()
	ts.Config.ErrorLog = slog.NewLogLogger(slog.NewTextHandler(io.Discard, nil), slog.LevelError)
	t.Cleanup(ts.Close)
	return ts
}

const chatPath, textPath, responsesPath = "/v1/chat/completions", "/v1/completions", "/v1/responses"

// post sends a body and reads the whole answer.
func post(t testing.TB, ts *httptest.Server, path, body string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	resp, err := request(ts, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("read answer: %v", err)
	}
	return resp, raw
}

func request(ts *httptest.Server, path, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequest("POST", ts.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return ts.Client().Do(req)
}

func get(t testing.TB, ts *httptest.Server, path string) (*http.Response, []byte) {
	t.Helper()
	resp, err := ts.Client().Get(ts.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, raw
}

// An envelope is the API's error object.
type envelope struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

// wantError checks status and envelope of an answer.
func wantError(t testing.TB, resp *http.Response, raw []byte, status int, code string) envelope {
	t.Helper()
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatalf("no error object: %v in %q", err, raw)
	}
	gotCode := ""
	if e.Error.Code != nil {
		gotCode = *e.Error.Code
	}
	if resp.StatusCode != status || gotCode != code || e.Error.Message == "" || e.Error.Type == "" {
		t.Errorf("got status %d, code %q, %s; want %d, %q", resp.StatusCode, gotCode, raw, status, code)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type of an error: %q", got)
	}
	return e
}
