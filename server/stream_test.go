package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"baton/backend"
	"baton/engine"
)

func TestChatStream(t *testing.T) {
	rig := newRig(says("Hel", "lo \u2028", "wörld\n\"<a>&\""))
	resp, raw := post(t, rig.serve(t), chatPath, `{"model":"m","stream":true}`, "Accept-Encoding", "gzip")
	s := readStrict(t, raw, "chat.completion.chunk")
	if got, want := s.text(0), "Hello \u2028wörld\n\"<a>&\""; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if !s.done || s.err != nil || s.finishReasons()[0] != "stop" {
		t.Errorf("the end is missing: %s", raw)
	}
	if len(s.chunks) != 5 { // role, three tokens, finish
		t.Errorf("%d chunks", len(s.chunks))
	}
	if s.chunks[0].Usage != nil || strings.Contains(string(raw), "usage") {
		t.Errorf("rule 30: usage that nobody asked for")
	}
	// Rule 10, and the id of the response.
	h := resp.Header
	if resp.StatusCode != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Content-Encoding") != "" || h.Get("Content-Length") != "" {
		t.Errorf("status %d, headers %v", resp.StatusCode, h)
	}
	if id := s.chunks[0].ID; !strings.HasPrefix(id, "chatcmpl-") || h.Get("X-Request-Id") != id {
		t.Errorf("id %q, header %q", id, h.Get("X-Request-Id"))
	}
	if s.chunks[0].Model != "m" || time.Since(time.Unix(s.chunks[0].Created, 0)) > time.Minute {
		t.Errorf("first chunk %+v", s.chunks[0])
	}
	if s.chunks[0].Choices[0].Delta["content"] != "" {
		t.Errorf("rule 33: the role chunk looks like text")
	}
	if _, ok := s.chunks[4].Choices[0].Delta["content"]; ok {
		t.Errorf("the finish chunk has content")
	}
}

func TestCompletionStream(t *testing.T) {
	rig := newRig(says("a", "b"))
	_, raw := post(t, rig.serve(t), textPath, `{"model":"m","stream":true,"usage":true,"echo":"once upon ","prompts":1}`)
	s := readStrict(t, raw, "text_completion")
	if s.text(0) != "once upon ab" || s.finishReasons()[0] != "stop" || !s.done {
		t.Errorf("stream %s", raw)
	}
	if u := s.chunks[len(s.chunks)-1].Usage; u == nil || *u != (usage{Prompt: 3, Completion: 3, Total: 6}) {
		t.Errorf("usage %+v", u)
	}
	if !strings.HasPrefix(s.chunks[0].ID, "cmpl-") {
		t.Errorf("id %s", s.chunks[0].ID)
	}
}

// Deltas that show nothing make no chunk, and none is split.
func TestQuietDeltas(t *testing.T) {
	text := fakeText(func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		two := token(3, "two tokens")
		two.TokenIDs = []engine.TokenID{102, 103}
		_ = yield(token(1, ""), nil) && yield(two, nil) && yield(backend.Delta{CompletionTokens: 3, StopID: -1}, nil) && yield(finish(4), nil)
	})
	ts := newRig(text).serve(t)
	for body, chunks := range map[string]int{
		`{"model":"m","stream":true}`:                  3,
		`{"model":"m","stream":true,"ids":true}`:       4,
		`{"model":"m","stream":true,"continual":true}`: 4,
	} {
		_, raw := post(t, ts, chatPath, body)
		if s := readStrict(t, raw, "chat.completion.chunk"); len(s.chunks) != chunks || !s.done {
			t.Errorf("%s: %d chunks, want %d: %s", body, len(s.chunks), chunks, raw)
		}
	}
}

// An answer of nothing but its end still has a role.
func TestEmptyAnswer(t *testing.T) {
	_, raw := post(t, newRig(says()).serve(t), chatPath, `{"model":"m","stream":true}`)
	if s := readStrict(t, raw, "chat.completion.chunk"); len(s.chunks) != 2 || !s.done {
		t.Errorf("stream %s", raw)
	}
}

func TestContinuousUsageAndTokenIDs(t *testing.T) {
	ts := newRig(says("a", "b")).serve(t)
	for path, object := range map[string]string{chatPath: "chat.completion.chunk", textPath: "text_completion"} {
		_, raw := post(t, ts, path, `{"model":"m","stream":true,"usage":true,"continual":true,"ids":true}`)
		s := readStrict(t, raw, object)
		var completion, ids []int
		for i, c := range s.chunks {
			if c.Usage == nil || c.Usage.Prompt != 3 {
				t.Fatalf("chunk %d: usage %+v", i, c.Usage)
			}
			completion = append(completion, c.Usage.Completion)
			if len(c.Choices) > 0 {
				ids = append(ids, c.Choices[0].TokenIDs...)
				prompt := append(c.PromptIDs, c.Choices[0].PromptIDs...)
				if (i == 0) != reflect.DeepEqual(prompt, []int{7, 8, 9}) {
					t.Errorf("chunk %d: prompt ids %v", i, prompt)
				}
			}
		}
		if want := []int{0, 1, 2, 3, 3}; !reflect.DeepEqual(completion, want) {
			t.Errorf("usage %v, want %v", completion, want)
		}
		if want := []int{101, 102, 103}; !reflect.DeepEqual(ids, want) {
			t.Errorf("ids %v, want %v", ids, want)
		}
	}
}

func TestStopReason(t *testing.T) {
	for want, d := range map[any]backend.Delta{
		nil:          {FinishReason: engine.FinishLength, StopID: -1},
		"END":        {FinishReason: engine.FinishStop, Stop: "END", StopID: -1},
		float64(151): {FinishReason: engine.FinishStop, StopID: 151},
		float64(0):   {FinishReason: engine.FinishStop, StopID: 0},
	} {
		text := fakeText(func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) { yield(d, nil) })
		_, raw := post(t, newRig(text).serve(t), chatPath, `{"model":"m","stream":true}`)
		s := readStrict(t, raw, "chat.completion.chunk")
		last := s.chunks[len(s.chunks)-1].Choices[0]
		if last.StopReason != want || *last.FinishReason != string(d.FinishReason) {
			t.Errorf("stop_reason %v, finish_reason %s; want %v, %s", last.StopReason, *last.FinishReason, want, d.FinishReason)
		}
	}
}

func TestErrorEvent(t *testing.T) {
	rig := newRig(fails(&engine.Error{Kind: engine.Disconnected, WorkerID: "w2:8000", Err: errors.New("secret cause")}, "half", " an"))
	resp, raw := post(t, rig.serve(t), chatPath, `{"model":"m","stream":true,"usage":true}`, "X-Baton-Debug", "1")
	s := readStrict(t, raw, "chat.completion.chunk")
	if resp.StatusCode != 200 || s.done || s.err == nil || len(s.finishReasons()) != 0 || s.text(0) != "half an" {
		t.Fatalf("stream %s", raw)
	}
	e := s.err.Error
	if *e.Code != "worker_disconnected" || e.Type != "server_error" || !strings.Contains(e.Message, "2 attempts") || !strings.Contains(e.Message, "can be repeated") {
		t.Errorf("error %+v", e)
	}
	if strings.Contains(e.Message, "w2") || strings.Contains(e.Message, "secret") {
		t.Errorf("the message tells of the inside: %s", e.Message)
	}
	if len(s.comments) != 1 || !strings.Contains(s.comments[0], `"error":"disconnected"`) {
		t.Errorf("comments %q", s.comments)
	}
	log := rig.log.String()
	for _, want := range []string{"level=WARN", "request failed", "kind=disconnected", "worker=w2:8000", "attempts=2", "model=m", s.chunks[0].ID} {
		if !strings.Contains(log, want) {
			t.Errorf("log lacks %q: %s", want, log)
		}
	}
	if strings.Contains(log, "half") || strings.Contains(log, "level=INFO") {
		t.Errorf("log %s", log)
	}
}

func TestErrorBeforeFirstByteKeepsItsStatus(t *testing.T) {
	for _, stream := range []string{"true", "false"} {
		rig := newRig(fails(&engine.Error{Kind: engine.NoWorker}))
		resp, raw := post(t, rig.serve(t), chatPath, `{"model":"m","stream":`+stream+`}`)
		wantError(t, resp, raw, 503, "no_worker_available")
		h := resp.Header
		if h.Get("Retry-After") != "5" || h.Get("X-Request-Id") == "" || h.Get("X-Baton-Attempts") != "2" || h.Get("X-Baton-Migrations") != "1" {
			t.Errorf("headers %v", h)
		}
	}
}

func TestDebugComment(t *testing.T) {
	text := fakeText(func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		first := req.Tokens.Trace.Begin("x-m00-r000", "w1:8000")
		first.Tokens, first.Err = 1, &engine.Error{Kind: engine.Stalled}
		second := req.Tokens.Trace.Begin("x-m01-r000", "w2:8000")
		second.Migration, second.Carried, second.Gap, second.Tokens = engine.OngoingRequest, 1, 1500*time.Microsecond, 2
		_ = yield(token(1, "a"), nil) && yield(finish(2), nil)
	})
	ts := newRig(text).serve(t)
	_, raw := post(t, ts, chatPath, `{"model":"m","stream":true}`, "X-Baton-Debug", "1")
	s := readStrict(t, raw, "chat.completion.chunk")
	if len(s.comments) != 1 || !s.done {
		t.Fatalf("stream %s", raw)
	}
	var got struct {
		Attempts, Migrations int
		Trace                []map[string]any
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(s.comments[0], ": baton ")), &got); err != nil {
		t.Fatalf("%v in %s", err, s.comments[0])
	}
	if got.Attempts != 2 || got.Migrations != 1 || got.Trace[0]["error"] != "stalled" || got.Trace[1]["gap_ms"] != 1.5 || got.Trace[1]["carried"] != 1.0 || got.Trace[1]["worker"] != "w2:8000" {
		t.Errorf("comment %s", s.comments[0])
	}
	// Nobody else gets it.
	if _, raw := post(t, ts, chatPath, `{"model":"m","stream":true}`); strings.Contains(string(raw), ": baton") {
		t.Errorf("a comment that nobody asked for: %s", raw)
	}
	resp, _ := post(t, ts, chatPath, `{"model":"m"}`, "X-Baton-Debug", "1")
	if h := resp.Header; h.Get("X-Baton-Attempts") != "2" || h.Get("X-Baton-Migrations") != "1" {
		t.Errorf("headers %v", h)
	}
}

func TestSeveralChoices(t *testing.T) {
	const n = 40 // more than run at a time
	text := fakeText(func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		i := choiceIndex(req)
		for k := range i + 1 {
			if !yield(token(k+1, fmt.Sprintf("%d ", i)), nil) {
				return
			}
		}
		d := finish(i + 2)
		if i%2 == 1 {
			d.FinishReason = engine.FinishLength
		}
		yield(d, nil)
	})
	ts := newRig(text).serve(t)
	_, raw := post(t, ts, chatPath, fmt.Sprintf(`{"model":"m","stream":true,"usage":true,"n":%d,"prompts":2}`, n/2), "X-Baton-Debug", "1")
	s := readStrict(t, raw, "chat.completion.chunk")
	total := 0
	for i := range n {
		if got, want := s.text(i), strings.Repeat(fmt.Sprintf("%d ", i), i+1); got != want {
			t.Errorf("choice %d: %q, want %q", i, got, want)
		}
		if got, want := s.finishReasons()[i], []string{"stop", "length"}[i%2]; got != want {
			t.Errorf("choice %d: finish reason %q, want %q", i, got, want)
		}
		total += i + 2
	}
	if u := s.chunks[len(s.chunks)-1].Usage; u == nil || *u != (usage{Prompt: 6, Completion: total, Total: 6 + total}) {
		t.Errorf("usage %+v, want 6 and %d", u, total)
	}
	if !s.done {
		t.Error("no [DONE]")
	}
}

// All choices are opened in order before the first text, whichever is the fastest.
func TestChoicesOpenInOrder(t *testing.T) {
	var order [3]chan struct{}
	for i := range order {
		order[i] = make(chan struct{})
	}
	close(order[2])
	text := fakeText(func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		i := choiceIndex(req)
		<-order[i]
		says(fmt.Sprint(i))(ctx, req, yield)
		if i > 0 {
			close(order[i-1])
		}
	})
	ts := newRig(text).serve(t)
	_, raw := post(t, ts, chatPath, `{"model":"m","stream":true,"n":3}`)
	s := readStrict(t, raw, "chat.completion.chunk")
	var got []int
	for _, c := range s.chunks {
		got = append(got, *c.Choices[0].Index)
	}
	if want := []int{0, 1, 2, 2, 2, 1, 1, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("chunks of choices %v, want %v", got, want)
	}
}

func TestOneFailedChoiceEndsAll(t *testing.T) {
	for _, stream := range []string{"true", "false"} {
		cancelled := make(chan int, 2)
		var begun sync.WaitGroup
		begun.Add(2)
		text := fakeText(func(ctx context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
			i := choiceIndex(req)
			if !yield(token(1, "x"), nil) {
				return
			}
			if i == 1 {
				begun.Wait()
				yield(backend.Delta{}, &engine.Error{Kind: engine.Stalled})
				return
			}
			begun.Done()
			<-ctx.Done()
			cancelled <- i
			yield(backend.Delta{}, engine.CauseOf(ctx))
		})
		resp, raw := post(t, newRig(text).serve(t), chatPath, `{"model":"m","n":3,"stream":`+stream+`}`)
		if stream == "true" {
			s := readStrict(t, raw, "chat.completion.chunk")
			if s.err == nil || *s.err.Error.Code != "worker_stalled" || s.done {
				t.Errorf("stream %s", raw)
			}
		} else {
			wantError(t, resp, raw, 504, "worker_stalled")
		}
		if got := []int{<-cancelled, <-cancelled}; !slices.Contains(got, 0) || !slices.Contains(got, 2) {
			t.Errorf("cancelled: %v", got)
		}
	}
}

// The client has the whole answer as soon as it is finished, whatever the
// generator still does.
func TestEndIsNotHeldBack(t *testing.T) {
	release := make(chan struct{})
	text := fakeText(func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
		yield(finish(1), nil)
		<-release
	})
	resp, err := request(newRig(text).serve(t), chatPath, `{"model":"m","stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	defer close(release)
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		if in.Text() == "data: [DONE]" {
			return
		}
	}
	t.Error("no [DONE]")
}

// Each delta arrives when it is made: the generator makes the next one only when
// the client has read the one before.
func TestNoBatching(t *testing.T) {
	next := make(chan struct{}, 1)
	text := fakeText(func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
		for i := range 5 {
			if !yield(token(i+1, "x"), nil) {
				return
			}
			<-next
		}
		yield(finish(6), nil)
	})
	resp, err := request(newRig(text).serve(t), chatPath, `{"model":"m","stream":true}`, "Accept-Encoding", "gzip")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	seen := 0
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		if strings.Contains(in.Text(), `"content":"x"`) {
			seen++
			next <- struct{}{}
		}
	}
	if seen != 5 {
		t.Errorf("%d tokens", seen)
	}
}

func TestPanicInGeneratorBecomesAnError(t *testing.T) {
	text := fakeText(func(_ context.Context, req *backend.Request, yield func(backend.Delta, error) bool) {
		if choiceIndex(req) == 1 || len(req.Stop) > 0 {
			panic("prompt text")
		}
		yield(token(1, "x"), nil)
		panic("prompt text")
	})
	rig := newRig(text)
	ts := rig.serve(t)
	for _, n := range []string{"1", "2"} {
		_, raw := post(t, ts, chatPath, `{"model":"m","stream":true,"n":`+n+`}`)
		if n == "1" {
			if s := readStrict(t, raw, "chat.completion.chunk"); s.err == nil || *s.err.Error.Code != "internal_error" || s.text(0) != "x" {
				t.Errorf("stream %s", raw)
			}
		} else if !strings.Contains(string(raw), "internal_error") {
			t.Errorf("stream %s", raw)
		}
	}
	if log := rig.log.String(); !strings.Contains(log, "panic in a request") || strings.Contains(log, "prompt text") {
		t.Errorf("log %s", log)
	}
	if resp, _ := get(t, ts, "/live"); resp.StatusCode != http.StatusOK {
		t.Error("the server is dead")
	}
}
