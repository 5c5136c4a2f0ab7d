package server

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"baton/backend"
	"baton/engine"
	"baton/parser"
	"baton/preprocess"
)

// An answered is what a client that joins everything has in the end.
type answered struct {
	Content, Reasoning string
	Calls              []answeredCall
	Finish             string
}

type answeredCall struct{ ID, Type, Name, Arguments string }

// joinStrict joins the chunks of choice 0 as the strictest of the known clients does.
func joinStrict(t testing.TB, s *strictStream, field string) answered {
	t.Helper()
	var a answered
	for _, c := range s.chunks {
		if len(c.Choices) == 0 {
			continue
		}
		choice := c.Choices[0]
		for key, v := range choice.Delta {
			switch key {
			case "role":
			case "content":
				a.Content += v.(string)
			case field:
				if a.Reasoning += v.(string); a.Content != "" {
					t.Errorf("rule 28: reasoning after content")
				}
			case "tool_calls":
				list := v.([]any)
				if len(list) != 1 {
					t.Errorf("rule 26: %d entries in one chunk", len(list))
				}
				a.add(t, list[0].(map[string]any))
			default:
				t.Errorf("member %q of a delta", key)
			}
		}
		if choice.FinishReason != nil {
			a.Finish = *choice.FinishReason
		}
	}
	return a
}

func (a *answered) add(t testing.TB, entry map[string]any) {
	t.Helper()
	index := int(entry["index"].(float64))
	function, _ := entry["function"].(map[string]any)
	arguments, ok := function["arguments"].(string)
	if !ok {
		t.Errorf("rule 26: entry %v has no arguments", entry)
	}
	if index == len(a.Calls) {
		call := answeredCall{Arguments: arguments}
		call.ID, _ = entry["id"].(string)
		call.Type, _ = entry["type"].(string)
		call.Name, _ = function["name"].(string)
		if call.ID == "" || call.Type != "function" || call.Name == "" {
			t.Errorf("rule 26: a call begins with %v", entry)
		}
		a.Calls = append(a.Calls, call)
		return
	}
	if index != len(a.Calls)-1 || len(entry) != 2 || len(function) != 1 {
		t.Errorf("rule 26: entry %v after %d calls", entry, len(a.Calls))
		return
	}
	a.Calls[index].Arguments += arguments
}

const thoughtfulAnswer = "<think>\nI should look.\n</think>\n\nLet me see: \n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": \"é\\n\\\"x\\\"\"}}\n</tool_call>\n" +
	"<tool_call>\n{\"name\": \"wait\", \"arguments\": {}}\n</tool_call>"

// cuts are ways to cut text into steps: not at all, at every character, and once.
func cuts(text string) [][]string {
	all := [][]string{{text}, strings.Split(text, "")}
	for at := range text {
		if at > 0 {
			all = append(all, []string{text[:at], text[at:]})
		}
	}
	return all
}

// TestCallsAndReasoning: however the text is cut into steps, the client has the same
// answer in the end, as a stream and as one object.
func TestCallsAndReasoning(t *testing.T) {
	want := answered{
		Content: "Let me see:", Reasoning: "I should look.",
		Calls: []answeredCall{
			{Type: "function", Name: "look", Arguments: `{"at": "é\n\"x\""}`},
			{Type: "function", Name: "wait", Arguments: `{}`},
		},
		Finish: "tool_calls",
	}
	for _, words := range cuts(thoughtfulAnswer) {
		ts := newRig(says(words...), func(c *Config) { c.ReasoningField = "reasoning" }).serve(t)
		_, raw := post(t, ts, chatPath, `{"model":"m","stream":true,"tools":"hermes","thoughts":"qwen3","usage":true}`)
		s := readStrict(t, raw, "chat.completion.chunk")
		got := joinStrict(t, s, "reasoning")
		if len(got.Calls) == 2 && (got.Calls[0].ID == got.Calls[1].ID || !strings.HasPrefix(got.Calls[0].ID, "call_")) {
			t.Errorf("ids %+v", got.Calls)
		}
		if plain := withoutIDs(got); !reflect.DeepEqual(trimmed(plain), want) || !s.done {
			t.Fatalf("cut into %q:\n got %+v\nwant %+v", words, plain, want)
		}
		_, raw = post(t, ts, chatPath, `{"model":"m","tools":"hermes","thoughts":"qwen3"}`)
		if reply := readMessage(t, raw, "reasoning"); !reflect.DeepEqual(trimmed(withoutIDs(reply)), want) {
			t.Fatalf("cut into %q: reply %s", words, raw)
		}
		ts.Close()
	}
}

// trimmed leaves out the layout between content and calls, which is the model's.
func trimmed(a answered) answered {
	a.Content, a.Reasoning = strings.TrimSpace(a.Content), strings.TrimSpace(a.Reasoning)
	return a
}

func withoutIDs(a answered) answered {
	a.Calls = append([]answeredCall(nil), a.Calls...)
	for i := range a.Calls {
		a.Calls[i].ID = ""
	}
	return a
}

func readMessage(t testing.TB, raw []byte, field string) answered {
	t.Helper()
	var body struct {
		Choices []struct {
			Message struct {
				Content          *string
				ReasoningContent string `json:"reasoning_content"`
				Reasoning        string
				ToolCalls        []struct {
					ID, Type string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal(raw, &body); err != nil || len(body.Choices) == 0 {
		t.Fatalf("%v in %s", err, raw)
	}
	m := body.Choices[0].Message
	a := answered{Reasoning: m.Reasoning, Finish: body.Choices[0].FinishReason}
	if field == "reasoning_content" {
		a.Reasoning = m.ReasoningContent
	}
	if m.Content != nil {
		a.Content = *m.Content
	}
	for _, c := range m.ToolCalls {
		a.Calls = append(a.Calls, answeredCall{c.ID, c.Type, c.Function.Name, c.Function.Arguments})
	}
	return a
}

// TestReasoningIsCounted: by tokens; hidden reasoning counts, too.
func TestReasoningIsCounted(t *testing.T) {
	for _, body := range []string{`,"stream":true,"usage":true`, `,"hide":true,"stream":true,"usage":true`, ``, `,"hide":true`} {
		ts := newRig(says("<think>", "a", "b", "</think>", "c")).serve(t)
		_, raw := post(t, ts, chatPath, `{"model":"m","thoughts":"qwen3"`+body+`}`)
		if strings.Contains(string(raw), "reasoning_content") == strings.Contains(body, "hide") {
			t.Errorf("%s: %s", body, raw)
		}
		// The fake's tokens are no markers, so the step in which the thought ends counts.
		if !strings.Contains(string(raw), `"completion_tokens":6,"total_tokens":9,"completion_tokens_details":{"reasoning_tokens":4}`) {
			t.Errorf("%s: %s", body, raw)
		}
	}
}

// cutByBudget says text and ends with the reason length.
func cutByBudget(text string) func(context.Context, *backend.Request, func(backend.Delta, error) bool) {
	return func(_ context.Context, _ *backend.Request, yield func(backend.Delta, error) bool) {
		d := token(1, text)
		d.FinishReason = engine.FinishLength
		yield(d, nil)
	}
}

// TestCutCalls: a budget that ends in a call is no tool_calls, and loses nothing.
func TestCutCalls(t *testing.T) {
	ts := newRig(fakeText(cutByBudget("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"b"))).serve(t)
	_, raw := post(t, ts, chatPath, `{"model":"m","stream":true,"tools":"hermes"}`)
	got := joinStrict(t, readStrict(t, raw, "chat.completion.chunk"), "reasoning_content")
	if len(got.Calls) != 1 || got.Calls[0].Arguments != `{"a": "b` || got.Finish != "length" {
		t.Errorf("%+v", got)
	}
	ts = newRig(fakeText(cutByBudget("<tool_call>\n{\"name"))).serve(t)
	_, raw = post(t, ts, chatPath, `{"model":"m","stream":true,"tools":"hermes"}`)
	got = joinStrict(t, readStrict(t, raw, "chat.completion.chunk"), "reasoning_content")
	if len(got.Calls) != 0 || got.Content != "<tool_call>\n{\"name" || got.Finish != "length" {
		t.Errorf("%+v", got)
	}
}

// TestPiecesKeepTheirTokens: ids and logprobs of tokens that show nothing go with the
// next chunk, each once.
func TestPiecesKeepTheirTokens(t *testing.T) {
	words := strings.SplitAfter("<think>|a| b|</think>|x|<tool_call>|{\"name\": |\"f\"|, \"arguments\": {|}}|</tool_call>", "|")
	for i := range words {
		words[i] = strings.TrimSuffix(words[i], "|")
	}
	ts := newRig(says(words...)).serve(t)
	_, raw := post(t, ts, chatPath, `{"model":"m","stream":true,"tools":"hermes","thoughts":"qwen3","ids":true,"continual":true,"usage":true}`)
	var ids []int
	s := readStrict(t, raw, "chat.completion.chunk")
	for _, c := range s.chunks {
		if len(c.Choices) > 0 {
			ids = append(ids, c.Choices[0].TokenIDs...)
		}
		if c.Usage == nil {
			t.Errorf("a chunk without usage: %+v", c)
		}
	}
	var want []int
	for i := range len(words) + 1 {
		want = append(want, 101+i)
	}
	if !reflect.DeepEqual(ids, want) {
		t.Errorf("ids %v, want %v", ids, want)
	}
}

// TestCallIDs: nine letters where the template wants them, others for each choice.
func TestCallIDs(t *testing.T) {
	ts := newRig(says("<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>")).serve(t)
	_, raw := post(t, ts, chatPath, `{"model":"m","n":2,"tools":"hermes","short":true}`)
	var body struct {
		Choices []struct {
			Message struct {
				ToolCalls []struct{ ID string } `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal(raw, &body); err != nil || len(body.Choices) != 2 {
		t.Fatalf("%v in %s", err, raw)
	}
	a, b := body.Choices[0].Message.ToolCalls[0].ID, body.Choices[1].Message.ToolCalls[0].ID
	if len(a) != 9 || len(b) != 9 || a == b || strings.ContainsAny(a+b, "+/_-") {
		t.Errorf("ids %q and %q", a, b)
	}
	if !strings.Contains(string(raw), `"content":null`) {
		t.Errorf("content in %s", raw)
	}
}

// TestReadingDoesNotAllocate: text in which calls and reasoning are looked for.
func TestReadingDoesNotAllocate(t *testing.T) {
	p := preparedFor(1)
	p.Read = &preprocess.Reading{Options: parser.Options{Tool: parser.ToolByName("hermes"), Reasoning: parser.ReasoningByName("qwen3")}}
	var enc encoder
	enc.init(&chatCompletions, p, 0, chunkHead(&chatCompletions, "chatcmpl-x", 12, "m"))
	enc.read(newReading(p, "r", 0), "reasoning_content")
	d := token(1, " word < and")
	enc.add(&d)
	if n := testing.AllocsPerRun(100, func() { enc.take(); enc.add(&d) }); n != 0 {
		t.Errorf("%v allocations for a chunk", n)
	}
}

// TestStopInACall: tool_calls promises whole arguments.
func TestStopInACall(t *testing.T) {
	for _, test := range []struct{ text, finish string }{
		{"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"b", "stop"},
		{"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"b\"}}", "tool_calls"},
		{"<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"b\"}}\n</tool_call>\n<tool_call>\n{\"name\"", "tool_calls"},
		{"<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {", "stop"},
	} {
		ts := newRig(says(test.text)).serve(t)
		_, raw := post(t, ts, chatPath, `{"model":"m","stream":true,"tools":"hermes"}`)
		if got := joinStrict(t, readStrict(t, raw, "chat.completion.chunk"), "reasoning_content"); got.Finish != test.finish || len(got.Calls) == 0 {
			t.Errorf("%s: %+v, want %s", test.text, got, test.finish)
		}
		_, raw = post(t, ts, chatPath, `{"model":"m","tools":"hermes"}`)
		if got := readMessage(t, raw, "reasoning_content"); got.Finish != test.finish {
			t.Errorf("%s: %s, want %s", test.text, raw, test.finish)
		}
		_, raw = post(t, ts, responsesPath, `{"model":"m","tools":"hermes"}`)
		var response struct {
			Status string
			Output []struct{ Type, Status string }
		}
		if err := json.Unmarshal(raw, &response); err != nil || response.Status != "completed" {
			t.Fatalf("%v in %s", err, raw)
		}
		want := "completed"
		if test.finish == "stop" {
			want = "incomplete"
		}
		if last := response.Output[len(response.Output)-1]; last.Status != want {
			t.Errorf("%s: the last item is %s, want %s", test.text, last.Status, want)
		}
	}
}

// TestMarkersInTheAnswer: a marker that is text, and a thought that a call ends, count
// for what they are.
func TestMarkersInTheAnswer(t *testing.T) {
	const opens, closes, other = 1, 2, 3
	type step struct {
		id   engine.TokenID
		text string
	}
	o, c := step{opens, "<think>"}, step{closes, "</think>"}
	w := func(text string) step { return step{other, text} }
	for _, test := range []struct {
		name  string
		steps []step
		want  int
	}{
		{"a thought", []step{o, w("a"), c, w("b")}, 3},
		{"in the answer", []step{o, w("a"), c, w("the marker"), o, w("opens"), c, w("it")}, 3},
		{"no thought", []step{w("the marker "), o, w("opens it")}, 0},
		{"two thoughts", []step{o, w("a"), c, o, w("b"), c, w("c")}, 6},
		{"a call ends it", []step{o, w("a"), w("<tool_call>\n{\"name\": \"f\", \"arguments\": {"), w("}}\n"), w("</tool_call>"), w("b")}, 3},
		{"and is closed late", []step{o, w("<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"), c, w("b")}, 2},
	} {
		prepared := preparedFor(1)
		prepared.Read = &preprocess.Reading{
			Options: parser.Options{Tool: parser.ToolByName("hermes"), Reasoning: parser.ReasoningByName("qwen3"), Parallel: true},
			Opens:   []engine.TokenID{opens}, Closes: []engine.TokenID{closes},
		}
		r := newReading(prepared, "r", 0)
		for _, s := range test.steps {
			r.read(&backend.Delta{TokenIDs: []engine.TokenID{s.id}, Text: []byte(s.text)}, func(parser.Event) {})
		}
		if r.reasoningTokens != test.want {
			t.Errorf("%s: %d tokens of reasoning, want %d", test.name, r.reasoningTokens, test.want)
		}
		if slices.ContainsFunc(test.steps, func(s step) bool { return strings.Contains(s.text, "<tool_call>") }) {
			continue // where a call begins is found in the text
		}
		r = newReading(prepared, "r", 0)
		var all backend.Delta
		for _, s := range test.steps {
			all.TokenIDs, all.Text = append(all.TokenIDs, s.id), append(all.Text, s.text...)
		}
		if r.read(&all, func(parser.Event) {}); r.reasoningTokens != test.want {
			t.Errorf("%s, all at once: %d tokens of reasoning, want %d", test.name, r.reasoningTokens, test.want)
		}
	}
}
