package server

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"baton/backend"
	"baton/engine"
)

type replyBody struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index   int
		Message struct {
			Role    string
			Content *string
			Refusal *string
		}
		Text         *string
		Logprobs     json.RawMessage
		FinishReason string `json:"finish_reason"`
		StopReason   any    `json:"stop_reason"`
		TokenIDs     []int  `json:"token_ids"`
		PromptIDs    []int  `json:"prompt_token_ids"`
	}
	Usage     usage
	PromptIDs []int `json:"prompt_token_ids"`
}

func readReply(t *testing.T, raw []byte) replyBody {
	t.Helper()
	var r replyBody
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return r
}

func TestChatReply(t *testing.T) {
	resp, raw := post(t, newRig(says("a\n", "\"b\"")).serve(t), chatPath, `{"model":"m","n":2,"ids":true}`)
	r := readReply(t, raw)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("X-Request-Id") != r.ID {
		t.Errorf("status %d, headers %v", resp.StatusCode, resp.Header)
	}
	if r.Object != "chat.completion" || r.Model != "m" || len(r.Choices) != 2 || r.Usage != (usage{Prompt: 3, Completion: 6, Total: 9}) {
		t.Errorf("reply %s", raw)
	}
	for i, c := range r.Choices {
		if c.Index != i || c.Message.Role != "assistant" || *c.Message.Content != "a\n\"b\"" || c.FinishReason != "stop" ||
			string(c.Logprobs) != "null" || !reflect.DeepEqual(c.TokenIDs, []int{101, 102, 103}) {
			t.Errorf("choice %+v", c)
		}
	}
	if !reflect.DeepEqual(r.PromptIDs, []int{7, 8, 9}) || !strings.Contains(string(raw), `"refusal":null`) {
		t.Errorf("reply %s", raw)
	}
}

func TestCompletionReply(t *testing.T) {
	_, raw := post(t, newRig(says("x", "y")).serve(t), textPath, `{"model":"m","prompts":2,"echo":"é: ","ids":true}`)
	r := readReply(t, raw)
	if r.Object != "text_completion" || !strings.HasPrefix(r.ID, "cmpl-") || len(r.Choices) != 2 || r.Usage != (usage{Prompt: 6, Completion: 6, Total: 12}) {
		t.Errorf("reply %s", raw)
	}
	for _, c := range r.Choices {
		if *c.Text != "é: xy" || c.FinishReason != "stop" || !reflect.DeepEqual(c.PromptIDs, []int{7, 8, 9}) {
			t.Errorf("choice %+v", c)
		}
	}
}

// An empty answer is an empty string, not null.
func TestEmptyReply(t *testing.T) {
	_, raw := post(t, newRig(says()).serve(t), chatPath, `{"model":"m"}`)
	if r := readReply(t, raw); r.Choices[0].Message.Content == nil || *r.Choices[0].Message.Content != "" {
		t.Errorf("reply %s", raw)
	}
}

// logprobText says "é" in two tokens, of which neither is a character, and "!".
func logprobText() fakeText {
	return func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
		top := []backend.TopLogprob{{Token: []byte("a"), Logprob: -0.25}, {Token: []byte("a"), Logprob: -7}}
		first := token(1, "")
		second := token(2, "é")
		second.Logprobs = []backend.Logprob{{Token: []byte("\xc3"), Logprob: -1, Top: top}, {Token: []byte("\xa9"), Logprob: engine.MissingLogprob}}
		third := token(3, "!")
		third.Logprobs = []backend.Logprob{{Token: []byte("!"), Logprob: -0.5, Top: []backend.TopLogprob{{Token: []byte("!"), Logprob: -0.5}}}}
		_ = yield(first, nil) && yield(second, nil) && yield(third, nil) && yield(finish(4), nil)
	}
}

func TestChatLogprobs(t *testing.T) {
	ts := newRig(logprobText()).serve(t)
	type entry struct {
		Token       string
		Logprob     float64
		Bytes       []int
		TopLogprobs []struct {
			Token   string
			Logprob float64
			Bytes   []int
		} `json:"top_logprobs"`
	}
	type shape struct {
		Content []entry
		Refusal *string
	}
	_, raw := post(t, ts, chatPath, `{"model":"m","logprobs":true,"top":2}`)
	var whole shape
	if err := json.Unmarshal(readReply(t, raw).Choices[0].Logprobs, &whole); err != nil {
		t.Fatal(err)
	}
	if len(whole.Content) != 3 || !reflect.DeepEqual(whole.Content[0].Bytes, []int{0xc3}) || whole.Content[1].Logprob != -9999 ||
		len(whole.Content[0].TopLogprobs) != 2 || whole.Content[1].TopLogprobs == nil || whole.Content[2].Token != "!" {
		t.Errorf("logprobs %+v", whole)
	}
	// The stream has the same, piece by piece.
	_, raw = post(t, ts, chatPath, `{"model":"m","logprobs":true,"top":2,"stream":true}`)
	var joined shape
	for _, c := range readStrict(t, raw, "chat.completion.chunk").chunks {
		if lp := c.Choices[0].Logprobs; lp != nil {
			again, _ := json.Marshal(lp)
			var piece shape
			if err := json.Unmarshal(again, &piece); err != nil {
				t.Fatal(err)
			}
			joined.Content = append(joined.Content, piece.Content...)
		}
	}
	if !reflect.DeepEqual(joined, whole) {
		t.Errorf("stream %+v, reply %+v", joined, whole)
	}
}

func TestTextLogprobs(t *testing.T) {
	ts := newRig(logprobText()).serve(t)
	type shape struct {
		Tokens        []string
		TokenLogprobs []float64            `json:"token_logprobs"`
		TopLogprobs   []map[string]float64 `json:"top_logprobs"`
		TextOffset    []int                `json:"text_offset"`
	}
	_, raw := post(t, ts, textPath, `{"model":"m","logprobs":true,"top":2,"echo":"12345"}`)
	var whole shape
	if err := json.Unmarshal(readReply(t, raw).Choices[0].Logprobs, &whole); err != nil {
		t.Fatal(err)
	}
	want := shape{
		Tokens:        []string{`bytes:\xc3`, `bytes:\xa9`, "!"},
		TokenLogprobs: []float64{-1, -9999, -0.5},
		TopLogprobs:   []map[string]float64{{"a": -0.25, `bytes:\xc3`: -1}, {`bytes:\xa9`: -9999}, {"!": -0.5}},
		TextOffset:    []int{5, 6, 6},
	}
	if !reflect.DeepEqual(whole, want) {
		t.Errorf("logprobs %+v, want %+v", whole, want)
	}
	if n := strings.Count(string(raw), `"a":`); n != 1 {
		t.Errorf("the key a stands %d times in %s", n, raw)
	}
	_, raw = post(t, ts, textPath, `{"model":"m","logprobs":true,"top":2,"echo":"12345","stream":true}`)
	var joined shape
	for _, c := range readStrict(t, raw, "text_completion").chunks {
		if lp := c.Choices[0].Logprobs; lp != nil {
			again, _ := json.Marshal(lp)
			var piece shape
			if err := json.Unmarshal(again, &piece); err != nil {
				t.Fatal(err)
			}
			joined.Tokens = append(joined.Tokens, piece.Tokens...)
			joined.TokenLogprobs = append(joined.TokenLogprobs, piece.TokenLogprobs...)
			joined.TopLogprobs = append(joined.TopLogprobs, piece.TopLogprobs...)
			joined.TextOffset = append(joined.TextOffset, piece.TextOffset...)
		}
	}
	if !reflect.DeepEqual(joined, want) {
		t.Errorf("stream %+v, want %+v", joined, want)
	}
	_, raw = post(t, ts, textPath, `{"model":"m","logprobs":true}`)
	if !strings.Contains(string(raw), `"top_logprobs":null`) {
		t.Errorf("no alternatives were asked for: %s", raw)
	}
}

// A reply larger than one write arrives whole.
func TestLargeReply(t *testing.T) {
	big := strings.Repeat("0123456789", 30_000)
	rig := newRig(says(big))
	resp, raw := post(t, rig.serve(t), chatPath, `{"model":"m"}`)
	if got := rig.sum(t, "requests_total", `status="success"`); got != 1 {
		t.Error("the client has the reply before it is counted")
	}
	if r := readReply(t, raw); *r.Choices[0].Message.Content != big || resp.ContentLength != int64(len(raw)) {
		t.Errorf("%d bytes of %d", len(raw), resp.ContentLength)
	}
}
