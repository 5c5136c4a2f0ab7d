package server

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// A strictStream is a stream as the strictest of the known clients reads it.
type strictStream struct {
	chunks   []chunk
	comments []string
	err      *envelope // the error event
	done     bool
}

type chunk struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	Choices []struct {
		Index        *int           `json:"index"`
		Delta        map[string]any `json:"delta"`
		Text         *string        `json:"text"`
		FinishReason *string        `json:"finish_reason"`
		StopReason   any            `json:"stop_reason"`
		TokenIDs     []int          `json:"token_ids"`
		PromptIDs    []int          `json:"prompt_token_ids"`
		Logprobs     map[string]any `json:"logprobs"`
	} `json:"choices"`
	Usage     *usage `json:"usage"`
	PromptIDs []int  `json:"prompt_token_ids"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// readStrict reads a whole stream and fails the test at whatever one of the
// known clients trips over. The numbers are those of the rules.
func readStrict(t testing.TB, raw []byte, object string) *strictStream {
	t.Helper()
	s := &strictStream{}
	if !utf8.Valid(raw) || bytes.HasPrefix(raw, []byte("\ufeff")) {
		t.Errorf("rule 9: not UTF-8, or a BOM")
	}
	if bytes.ContainsAny(raw, "\r\v\f\x1c\x1d\x1e\x00") || strings.ContainsAny(string(raw), "\u0085\u2028\u2029") {
		t.Errorf("rule 2: something else than LF may be taken for the end of a line")
	}
	if len(raw) > 0 && !bytes.HasSuffix(raw, []byte("\n\n")) {
		t.Errorf("rule 1: the last event has no blank line: %q", raw[max(0, len(raw)-60):])
	}
	inEvent := false
	for line := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\n"), "\n") {
		switch {
		case s.done && line != "":
			t.Errorf("rule 14: %q after [DONE]", line)
		case line == "" && !inEvent:
			t.Errorf("rules 6, 7: a blank line that ends no event")
		case line == "":
			inEvent = false
		case strings.HasPrefix(line, ":"):
			s.comments = append(s.comments, line)
		case inEvent:
			t.Errorf("rule 3: a second line in an event: %q", line)
		case strings.HasPrefix(line, "data: "):
			inEvent = true
			s.event(t, strings.TrimPrefix(line, "data: "))
		default:
			t.Errorf("rules 4, 5: line %q", line)
		}
	}
	s.checkIdentity(t, object)
	s.checkChoices(t, object == "chat.completion.chunk")
	return s
}

func (s *strictStream) event(t testing.TB, data string) {
	t.Helper()
	if data == "[DONE]" {
		s.done = true
		return
	}
	if s.err != nil {
		t.Errorf("an event after the error event: %s", data)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal([]byte(data), &top); err != nil {
		t.Fatalf("rule 3: %v in %q", err, data)
	}
	if _, ok := top["error"]; ok { // rule 15: the presence of the key is enough
		s.err = &envelope{}
		if err := json.Unmarshal([]byte(data), s.err); err != nil || s.err.Error.Message == "" || s.err.Error.Type == "" {
			t.Errorf("rule 16: error event %s: %v", data, err)
		}
		return
	}
	if v, ok := top["choices"]; !ok || v[0] != '[' {
		t.Errorf("rule 20: choices in %s", data)
	}
	var c chunk
	if err := json.Unmarshal([]byte(data), &c); err != nil {
		t.Fatalf("chunk %s: %v", data, err)
	}
	var raw struct{ Choices []map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(data), &raw); err != nil {
		t.Fatal(err)
	}
	for _, choice := range raw.Choices {
		if _, ok := choice["finish_reason"]; !ok {
			t.Errorf("rule 25: no finish_reason key in %s", data)
		}
		var delta map[string]json.RawMessage
		if err := json.Unmarshal(choice["delta"], &delta); err == nil {
			for k, v := range delta {
				if string(v) == "null" {
					t.Errorf("rule 23: delta field %s is null", k)
				}
			}
		}
	}
	s.chunks = append(s.chunks, c)
}

func (s *strictStream) checkIdentity(t testing.TB, object string) {
	t.Helper()
	for _, c := range s.chunks {
		first := s.chunks[0]
		if c.ID == "" || c.ID != first.ID || c.Created != first.Created || c.Model != first.Model || c.Object != object {
			t.Errorf("rules 17-19: %+v differs from %+v, or is no %s", c, first, object)
		}
		if len(c.Choices) > 1 {
			t.Errorf("rule 21: %d choices in one chunk", len(c.Choices))
		}
	}
}

func (s *strictStream) checkChoices(t testing.TB, chat bool) {
	t.Helper()
	roles, finished := map[int]int{}, map[int]bool{}
	for i, c := range s.chunks {
		if len(c.Choices) == 0 {
			if c.Usage == nil || i != len(s.chunks)-1 {
				t.Errorf("rules 20, 30: chunk %d of %d has neither a choice nor, as the last one, usage", i, len(s.chunks))
			}
			continue
		}
		choice := c.Choices[0]
		if choice.Index == nil {
			t.Fatalf("rule 21: no index")
		}
		if finished[*choice.Index] {
			t.Errorf("rule 14: a chunk of choice %d after its finish chunk", *choice.Index)
		}
		if role, ok := choice.Delta["role"]; ok {
			if role != "assistant" {
				t.Errorf("rule 22: role %v", role)
			}
			roles[*choice.Index]++
		}
		if chat && roles[*choice.Index] != 1 {
			t.Errorf("rule 22: choice %d has had %d roles", *choice.Index, roles[*choice.Index])
		}
		if r := choice.FinishReason; r != nil {
			if *r != "stop" && *r != "length" && *r != "tool_calls" {
				t.Errorf("rule 25: finish reason %q", *r)
			}
			finished[*choice.Index] = true
		}
	}
	for _, c := range s.chunks {
		if u := c.Usage; u != nil && (u.Total != u.Prompt+u.Completion || u.Details.Reasoning > u.Completion) {
			t.Errorf("rule 31: usage %+v", *u)
		}
	}
	if s.done && s.err != nil {
		t.Errorf("an error and [DONE]")
	}
	if s.err != nil && len(finished) == len(roles) && len(roles) > 0 {
		t.Errorf("an error though all choices have finished")
	}
}

// text joins what a choice says.
func (s *strictStream) text(index int) string {
	var b strings.Builder
	for _, c := range s.chunks {
		if len(c.Choices) == 0 || *c.Choices[0].Index != index {
			continue
		}
		if c.Choices[0].Text != nil {
			b.WriteString(*c.Choices[0].Text)
		}
		if text, ok := c.Choices[0].Delta["content"].(string); ok {
			b.WriteString(text)
		}
	}
	return b.String()
}

// finishReasons are those of all choices, by index.
func (s *strictStream) finishReasons() map[int]string {
	out := map[int]string{}
	for _, c := range s.chunks {
		if len(c.Choices) > 0 && c.Choices[0].FinishReason != nil {
			out[*c.Choices[0].Index] = *c.Choices[0].FinishReason
		}
	}
	return out
}
