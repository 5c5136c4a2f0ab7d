package server

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"baton/backend"
	"baton/engine"
	"baton/parser"
	"baton/preprocess"
)

// respond asks for a response twice, as a stream and as one object, and fails the test
// unless both say the same.
func respond(t testing.TB, text Generator, members string) *strictResponse {
	t.Helper()
	ts := newRig(text).serve(t)
	defer ts.Close()
	resp, raw := post(t, ts, responsesPath, `{"model":"m","stream":true`+members+`}`)
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %q", got)
	}
	s := readResponse(t, raw)
	_, raw = post(t, ts, responsesPath, `{"model":"m"`+members+`}`)
	reply := readReplyObject(t, raw)
	if outline(reply.Output) != outline(s.Output) || reply.Status != s.Status || reply.Usage.Output != s.Usage.Output || *reply.Usage.OutputDetails.Reasoning != *s.Usage.OutputDetails.Reasoning {
		t.Errorf("the stream is\n%s, the reply %s", outline(s.Output), raw)
	}
	return s
}

func readReplyObject(t testing.TB, raw []byte) *responseObject {
	t.Helper()
	r := &responseObject{}
	if err := json.Unmarshal(raw, r); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	checkResponse(t, r)
	return r
}

// TestResponseOutput: however the text is cut into steps, a client has the same items
// in the end.
func TestResponseOutput(t *testing.T) {
	const want = `reasoning completed  "I should look."` + "\n" + `message completed  "Let me see:"` + "\n" +
		`function_call completed look "{\"at\": \"é\\n\\\"x\\\"\"}"` + "\n" + `function_call completed wait "{}"` + "\n"
	for _, words := range cuts(thoughtfulAnswer) {
		s := respond(t, says(words...), `,"tools":"hermes","thoughts":"qwen3"`)
		for i := range s.Output { // layout is the model's, and may be given or not
			if item := &s.Output[i]; item.Type != "function_call" {
				item.Content[0].Text = strings.TrimSpace(item.Content[0].Text)
			}
		}
		if got := outline(s.Output); got != want || s.Status != "completed" {
			t.Fatalf("cut into %q:\n%s", words, got)
		}
	}
}

// TestResponseEndings: what the answers of other kinds look like.
func TestResponseEndings(t *testing.T) {
	const both = `,"tools":"hermes","thoughts":"qwen3"`
	for _, test := range []struct {
		name, members string
		text          Generator
		want, status  string
	}{
		{"a text", ``, says("Hel", "lo\n", "\"\u2028"), `message completed  "Hello\n\"\u2028"`, "completed"},
		{"nothing", ``, says(), `message completed  ""`, "completed"},
		{"nothing, though much is looked for", both, says(" ", "\n"), `message completed  " \n"`, "completed"},
		{"only a thought", both, says("<think>", "hm", "</think>"), `reasoning completed  "hm"` + "\n" + `message completed  ""`, "completed"},
		{"text between calls", both, says(`a<tool_call>{"name": "f", "arguments": {}}</tool_call>b<tool_call>{"name": "g", "arguments": {}}</tool_call>`),
			`message completed  "a"` + "\n" + `function_call completed f "{}"` + "\n" + `message completed  "b"` + "\n" + `function_call completed g "{}"`, "completed"},
		{"a call without text", both, says(`<tool_call>{"name": "f", "arguments": {}}</tool_call>`), `function_call completed f "{}"`, "completed"},
		{"a text cut", ``, fakeText(cutByBudget("Hel")), `message incomplete  "Hel"`, "incomplete"},
		{"nothing, cut", ``, fakeText(cutByBudget("")), ``, "incomplete"},
		{"a thought cut", both, fakeText(cutByBudget("<think>hm")), `reasoning incomplete  "hm"`, "incomplete"},
		{"a call cut", both, fakeText(cutByBudget(`a<tool_call>{"name": "f", "arguments": {"x": 1`)), `message completed  "a"` + "\n" + `function_call incomplete f "{\"x\": 1"`, "incomplete"},
		{"hidden", both + `,"hide":true`, says("<think>", "hm", "</think>", "x"), `message completed  "x"`, "completed"},
		{"a thought as its summary", both + `,"summarize":true`, says("<think>", "h", "m", "</think>", "x"), `reasoning completed  "hm"` + "\n" + `message completed  "x"`, "completed"},
		{"only a thought, as its summary", both + `,"summarize":true`, says("<think>", "hm", "</think>"), `reasoning completed  "hm"` + "\n" + `message completed  ""`, "completed"},
		{"a summary cut", both + `,"summarize":true`, fakeText(cutByBudget("<think>hm")), `reasoning incomplete  "hm"`, "incomplete"},
	} {
		s := respond(t, test.text, test.members)
		if got := strings.TrimSuffix(outline(s.Output), "\n"); got != test.want || s.Status != test.status {
			t.Errorf("%s: %s\n%s, want\n%s", test.name, s.Status, got, test.want)
		}
		for _, item := range s.Output {
			if summary := item.Summary != nil && len(*item.Summary) > 0; summary != (item.Type == "reasoning" && strings.Contains(test.members, "summarize")) {
				t.Errorf("%s: the %s has a summary: %v", test.name, item.Type, summary)
			}
		}
		if s.Incomplete != nil && s.Incomplete.Reason != "max_output_tokens" {
			t.Errorf("%s: %+v", test.name, s.Incomplete)
		}
	}
}

// TestNamespaces: a model knows a function in a namespace by both names, a client apart.
func TestNamespaces(t *testing.T) {
	s := respond(t, says(`<tool_call>{"name": "space.f", "arguments": {}}</tool_call><tool_call>{"name": "f", "arguments": {}}</tool_call>`), `,"tools":"hermes"`)
	if len(s.Output) != 2 || s.Output[0].Namespace != "space" || s.Output[0].Name != "f" || s.Output[1].Namespace != "" || s.Output[1].Name != "f" {
		t.Errorf("%+v", s.Output)
	}
}

// TestResponseUsageAndIDs: the usage is that of chat, and ids follow from the request's.
func TestResponseUsageAndIDs(t *testing.T) {
	ts := newRig(says("<think>", "a", "b", "</think>", "c", `<tool_call>{"name": "f", "arguments": {}}</tool_call>`)).serve(t)
	resp, raw := post(t, ts, responsesPath, `{"model":"m","stream":true,"tools":"hermes","thoughts":"qwen3"}`)
	s := readResponse(t, raw)
	if u := s.Usage; u.Input != 3 || u.Output != 7 || *u.OutputDetails.Reasoning != 4 || *u.InputDetails.Cached != 0 {
		t.Errorf("usage %+v", u)
	}
	id := resp.Header.Get("X-Request-Id")
	own := strings.TrimPrefix(id, "resp_")
	if s.ID != id || own == id || len(s.Output) != 3 || s.Output[0].ID != "rs_"+own+"-0" || s.Output[1].ID != "msg_"+own+"-1" || s.Output[2].ID != "fc_"+own+"-2" {
		t.Errorf("response %s of request %s: %+v", s.ID, id, s.Output)
	}
	if !strings.HasPrefix(s.Output[2].CallID, "call_") {
		t.Errorf("call %s", s.Output[2].CallID)
	}
	if s.deltas != 4 {
		t.Errorf("%d deltas for four steps with something to show: %s", s.deltas, raw)
	}
}

// scored says words with a logprob for each of its tokens, several in a step.
func scored(steps ...[]string) fakeText {
	return func(_ context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		n := 0
		for _, words := range steps {
			d := token(n, strings.Join(words, ""))
			for _, w := range words {
				n++
				d.Logprobs = append(d.Logprobs, backend.Logprob{Token: []byte(w), Logprob: -float64(n), Top: []backend.TopLogprob{{Token: []byte(w), Logprob: -float64(n)}}})
			}
			if !yield(d, nil) {
				return
			}
		}
		yield(finish(n+1), nil)
	}
}

// TestResponseLogprobs: a message has those of its own tokens, and no others.
func TestResponseLogprobs(t *testing.T) {
	for _, test := range []struct {
		name, members string
		steps         [][]string
		want          []string // tokens of the messages
	}{
		{"plain", ``, [][]string{{"a", " b"}, {" c"}}, []string{"a| b| c"}},
		{"held back", `,"tools":"hermes"`, [][]string{{"a<"}, {"tool"}, {"_x"}, {" b"}}, []string{"a<|tool|_x| b"}},
		{"after a thought", `,"thoughts":"qwen3"`, [][]string{{"<think>"}, {"a"}, {"</think>"}, {"b"}, {"a"}}, []string{"b|a"}},
		{"all in one step", `,"thoughts":"qwen3","tools":"hermes"`, [][]string{{"<think>", "x", "</think>", "y", "<tool_call>"}, {`{"name": "f", "arguments": {"y": 1}}`}, {"</tool_call>"}, {"z"}}, []string{"y", "z"}},
	} {
		s := respond(t, scored(test.steps...), `,"logprobs":true,"top":1`+test.members)
		var got []string
		for _, item := range s.Output {
			if item.Type != "message" {
				continue
			}
			var tokens []string
			for _, l := range *item.Content[0].Logprobs {
				tokens = append(tokens, l["token"].(string))
				if len(l["top_logprobs"].([]any)) != 1 || l["bytes"] == nil {
					t.Errorf("%s: %v", test.name, l)
				}
			}
			got = append(got, strings.Join(tokens, "|"))
		}
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s: tokens %q, want %q", test.name, got, test.want)
		}
	}
}

// TestFailedResponses: before the first byte a failure has its status; behind it the
// stream says in two ways that it is no answer, and repeats what there is.
func TestFailedResponses(t *testing.T) {
	lost := &engine.Error{Kind: engine.Disconnected, WorkerID: "w2:8000"}
	ts := newRig(fails(lost)).serve(t)
	for _, stream := range []string{"true", "false"} {
		resp, raw := post(t, ts, responsesPath, `{"model":"m","stream":`+stream+`}`)
		wantError(t, resp, raw, 502, "worker_disconnected")
	}
	resp, raw := post(t, ts, responsesPath, `{"model":"none"}`)
	wantError(t, resp, raw, 404, "model_not_found")

	ts = newRig(fails(lost, "<think>", "hm", "</think>", "a", "b")).serve(t)
	_, raw = post(t, ts, responsesPath, `{"model":"m","stream":true,"thoughts":"qwen3"}`, debugHeader, "1")
	s := readResponse(t, raw)
	if s.Status != "failed" || s.err == nil || s.err.Error.Code != "worker_disconnected" || s.Error.Code != "server_error" || s.Error.Message != s.err.Message {
		t.Errorf("%s", raw)
	}
	if got := outline(s.Output); got != `reasoning completed  "hm"`+"\n"+`message incomplete  "ab"`+"\n" {
		t.Errorf("output\n%s", got)
	}
	if len(s.comments) != 1 || !strings.HasPrefix(s.comments[0], `: baton {"attempts":2`) {
		t.Errorf("comments %q", s.comments)
	}
	_, raw = post(t, ts, responsesPath, `{"model":"m"}`)
	if strings.Contains(string(raw), "output") {
		t.Errorf("a reply that failed: %s", raw)
	}
}

// TestResponseFailsAfterKeepAlive: a response that failed without any output, when it
// is too late for a status, begins before it fails, since accumulators insist on that.
func TestResponseFailsAfterKeepAlive(t *testing.T) {
	slow := fakeText(func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
		time.Sleep(40 * time.Second)
		yield(backend.Delta{}, &engine.Error{Kind: engine.Overloaded, Status: 429})
	})
	inBubble(t, slow, keepAlive(15*time.Second), func(t *testing.T, _ *rig, dial func() net.Conn) {
		conn := dial()
		defer conn.Close()
		raw, _ := io.ReadAll(send(conn, responsesPath, `{"model":"m","stream":true}`).Body)
		s := readResponse(t, raw)
		if s.Status != "failed" || s.Error.Code != "rate_limit_exceeded" || len(s.Output) > 0 || len(s.comments) != 2 {
			t.Errorf("%s", raw)
		}
	})
}

// TestResponseDebugComment: before the event behind which clients read no further.
func TestResponseDebugComment(t *testing.T) {
	ts := newRig(says("a")).serve(t)
	_, raw := post(t, ts, responsesPath, `{"model":"m","stream":true}`, debugHeader, "1")
	s := readResponse(t, raw)
	if len(s.comments) != 1 || !strings.Contains(string(raw), "]}\nevent: response.completed\n") {
		t.Errorf("%s", raw)
	}
	resp, _ := post(t, ts, responsesPath, `{"model":"m"}`, debugHeader, "1")
	if resp.Header.Get(attemptsHeader) != "1" {
		t.Errorf("headers %v", resp.Header)
	}
}

// TestResponsesAreCounted under the endpoint's own label, refused ones too.
func TestResponsesAreCounted(t *testing.T) {
	rig := newRig(says("a"))
	ts := rig.serve(t)
	post(t, ts, responsesPath, `{"model":"m","stream":true}`)
	post(t, ts, responsesPath, `{"model":"m","n":1000}`)
	for _, labels := range [][]string{
		{`endpoint="responses"`, `error_type=""`, `model="m"`, `request_type="stream"`, `status="success"`},
		{`endpoint="responses"`, `error_type="validation"`, `model="m"`, `request_type="unary"`, `status="error"`},
	} {
		if n := rig.sum(t, "requests_total", labels...); n != 1 {
			t.Errorf("%v of %v", n, labels)
		}
	}
}

// responseCall is a request of which a test makes the deltas.
func responseCall() *call {
	p := preparedFor(1)
	p.Echo = []byte(fakeEcho)
	p.Read = &preprocess.Reading{Options: parser.Options{Tool: parser.ToolByName("hermes"), Reasoning: parser.ReasoningByName("qwen3"), Parallel: true}}
	return &call{ep: &responses, ids: requestIDs{own: "resp_x"}, prepared: p, start: time.Now()}
}

// FuzzResponse: whatever a model writes, in whatever pieces, the stream keeps to its
// grammar, and says what it says if all comes at once.
func FuzzResponse(f *testing.F) {
	f.Add(thoughtfulAnswer, uint64(0x1234567))
	f.Add("<think>a</think>b<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": [1, \"}\"]}}</tool_call>c", uint64(3))
	f.Add("<tool_call>{\"name\": \"f\", \"arg", uint64(7))
	f.Fuzz(func(t *testing.T, text string, cuts uint64) {
		if !utf8.ValidString(text) || len(text) > 2000 {
			t.Skip()
		}
		stream := func(pieces []string) *strictResponse {
			enc := newResponseEncoder(newChoice(responseCall(), 0))
			var raw []byte
			for i, piece := range pieces {
				d := token(i, piece)
				enc.add(&d)
				raw = append(raw, enc.take()...)
			}
			d := finish(len(pieces))
			enc.add(&d)
			return readResponse(t, append(raw, enc.last(enc.take(), &tokenUsage{}, nil)...))
		}
		var pieces []string
		from := 0
		for i := range text {
			if cuts>>(i%64)&1 == 1 {
				pieces = append(pieces, text[from:i])
				from = i
			}
		}
		cut, whole := stream(append(pieces, text[from:])), stream([]string{text})
		if got, want := outline(cut.Output), outline(whole.Output); got != want {
			t.Errorf("%q:\n%s, at once\n%s", pieces, got, want)
		}
	})
}

// TestResponseDeltasDoNotAllocate, but for the text that is kept for the end.
func TestResponseDeltasDoNotAllocate(t *testing.T) {
	enc := newResponseEncoder(newChoice(responseCall(), 0))
	d := token(1, " word < and")
	enc.add(&d)
	if n := testing.AllocsPerRun(1000, func() { enc.take(); enc.add(&d) }); n != 0 {
		t.Errorf("%v allocations for a delta", n)
	}
}
