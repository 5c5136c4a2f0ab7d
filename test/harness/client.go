package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// An Answer is what a strict client makes of a stream.
type Answer struct {
	Status    int
	RequestID string
	Text      string // of choice 0
	Finish    string // of choice 0
	Choices   []Choice
	Usage     *Usage
	Chunks    int
	Done      bool     // [DONE] came, and nothing after it
	Comments  []string // without the colon
	Error     *APIError
}

// A Choice is one element of the answer.
type Choice struct {
	Text      string
	Reasoning string // of the field reasoning_content
	Calls     []Call
	Finish    string // "" = it has not ended
	TokenIDs  []int  // if they were asked for
	role      bool
}

// A Call is a tool call, its arguments joined.
type Call struct{ ID, Name, Arguments string }

// Usage is the usage object of the API.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	Details          struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// APIError is the error object of the API.
type APIError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   string `json:"param"`
	Code    string `json:"code"`
}

type chunk struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	Model   string         `json:"model"`
	Choices *[]chunkChoice `json:"choices"`
	Usage   *Usage         `json:"usage"`
	Error   *APIError      `json:"error"`
}

type chunkChoice struct {
	Index        *int    `json:"index"`
	Text         *string `json:"text"`
	Delta        *delta  `json:"delta"`
	TokenIDs     []int   `json:"token_ids"`
	FinishReason *string `json:"finish_reason"`
}

type delta struct {
	Role      *string     `json:"role"`
	Content   *string     `json:"content"`
	Reasoning string      `json:"reasoning_content"`
	Calls     []callDelta `json:"tool_calls"`
}

type callDelta struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function *struct {
		Name      string  `json:"name"`
		Arguments *string `json:"arguments"`
	} `json:"function"`
}

// Stream posts body (with "stream": true in it) to url+path, calls onChunk with
// the number of chunks that had text so far (an answer's, of its reasoning, or of a
// call's arguments), and checks the whole stream as the
// strictest clients would. A broken rule of the stream is an error; an error
// that the API reports is in the Answer.
func Stream(ctx context.Context, url, path, body string, onChunk func(n int)) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Baton-Debug", "1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	a := &Answer{Status: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id")}
	if resp.StatusCode != http.StatusOK {
		var envelope struct{ Error *APIError }
		if err := json.NewDecoder(resp.Body).Decode(&envelope); err != nil || envelope.Error == nil {
			return nil, fmt.Errorf("status %d without an error object (%v)", resp.StatusCode, err)
		}
		a.Error = envelope.Error
		return a, nil
	}
	if ct := resp.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
		return nil, fmt.Errorf("content type %q", ct)
	}
	if path == "/v1/responses" {
		return a, ReadResponse(a, resp.Body, onChunk)
	}
	return a, ReadStream(a, resp.Body, strings.Contains(path, "chat"), onChunk)
}

// ReadStream reads the body of a streamed answer into a, as Stream does.
func ReadStream(a *Answer, body io.Reader, chat bool, onChunk func(n int)) error {
	s := &strictReader{answer: a, onChunk: onChunk, chat: chat}
	err := s.read(body)
	if len(a.Choices) > 0 {
		a.Text, a.Finish = a.Choices[0].Text, a.Choices[0].Finish
	}
	return err
}

// strictReader holds what must stay the same over a stream.
type strictReader struct {
	answer  *Answer
	onChunk func(int)
	chat    bool
	first   *chunk
	texts   int
}

func (s *strictReader) read(body io.Reader) error {
	br := bufio.NewReader(body)
	var data []byte
	inEvent := false
	for {
		line, err := br.ReadBytes('\n')
		if err == io.EOF {
			if len(line) > 0 || inEvent {
				return fmt.Errorf("the body ends inside an event")
			}
			if !s.answer.Done && s.answer.Error == nil {
				return fmt.Errorf("the body ends with neither [DONE] nor an error")
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("the body was cut: %w", err)
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case s.answer.Done && len(line) > 0:
			return fmt.Errorf("%q after [DONE]", line)
		case len(line) == 0:
			if !inEvent {
				if s.answer.Done {
					continue
				}
				return fmt.Errorf("a blank line that ends no event")
			}
			inEvent = false
			if err := s.event(data); err != nil {
				return err
			}
			data = data[:0]
		case line[0] == ':':
			s.answer.Comments = append(s.answer.Comments, strings.TrimSpace(string(line[1:])))
		case bytes.HasPrefix(line, []byte("data: ")):
			if inEvent {
				return fmt.Errorf("two data lines in one event")
			}
			inEvent = true
			data = append(data, line[len("data: "):]...)
		default:
			return fmt.Errorf("line %q", line)
		}
	}
}

func (s *strictReader) event(data []byte) error {
	if s.answer.Error != nil {
		return fmt.Errorf("an event after the error")
	}
	if string(data) == "[DONE]" {
		for i, c := range s.answer.Choices {
			if c.Finish == "" {
				return fmt.Errorf("[DONE] without a finish reason of choice %d", i)
			}
		}
		if len(s.answer.Choices) == 0 {
			return fmt.Errorf("[DONE] without a choice")
		}
		s.answer.Done = true
		return nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("%w in %s", err, data)
	}
	if c.Error != nil {
		s.answer.Error = c.Error
		return nil
	}
	s.answer.Chunks++
	if s.first == nil {
		s.first = &c
	}
	if c.ID == "" || c.ID != s.first.ID || c.Created != s.first.Created || c.Model != s.first.Model || c.Object != s.first.Object {
		return fmt.Errorf("identity changed: %s", data)
	}
	if c.Choices == nil {
		return fmt.Errorf("no choices array: %s", data)
	}
	if c.Usage != nil {
		if s.answer.Usage != nil {
			return fmt.Errorf("a second usage")
		}
		s.answer.Usage = c.Usage
	}
	if len(*c.Choices) == 0 {
		if c.Usage == nil {
			return fmt.Errorf("an empty chunk: %s", data)
		}
		return nil
	}
	return s.choice(data, *c.Choices)
}

// maxChoices bounds the index of a choice.
const maxChoices = 1024

func (s *strictReader) choice(data []byte, choices []chunkChoice) error {
	c := choices[0]
	if c.Index == nil || *c.Index < 0 || *c.Index >= maxChoices || len(choices) != 1 {
		return fmt.Errorf("not one choice with an index: %s", data)
	}
	for len(s.answer.Choices) <= *c.Index {
		s.answer.Choices = append(s.answer.Choices, Choice{})
	}
	choice := &s.answer.Choices[*c.Index]
	if choice.Finish != "" {
		return fmt.Errorf("a choice after its finish reason: %s", data)
	}
	text := c.Text
	if s.chat {
		if c.Delta == nil {
			return fmt.Errorf("no delta: %s", data)
		}
		if (c.Delta.Role != nil) == choice.role {
			return fmt.Errorf("the role is not exactly in the first chunk: %s", data)
		}
		choice.role = true
		text = c.Delta.Content
		if c.Delta.Reasoning != "" {
			if choice.Reasoning += c.Delta.Reasoning; choice.Text != "" {
				return fmt.Errorf("reasoning after the answer has begun: %s", data)
			}
			s.sawText()
		}
		for i := range c.Delta.Calls {
			if err := s.call(choice, &c.Delta.Calls[i]); err != nil {
				return fmt.Errorf("%w: %s", err, data)
			}
		}
	}
	if text != nil && *text != "" {
		choice.Text += *text
		s.sawText()
	}
	choice.TokenIDs = append(choice.TokenIDs, c.TokenIDs...)
	if c.FinishReason != nil {
		choice.Finish = *c.FinishReason
	}
	return nil
}

func (s *strictReader) sawText() {
	s.texts++
	if s.onChunk != nil {
		s.onChunk(s.texts)
	}
}

func (s *strictReader) call(choice *Choice, d *callDelta) error {
	if d.Index == nil || d.Function == nil || d.Function.Arguments == nil {
		return fmt.Errorf("a piece of a call without index, function or arguments")
	}
	switch n := len(choice.Calls); {
	case *d.Index == n:
		if d.ID == "" || d.Type != "function" || d.Function.Name == "" {
			return fmt.Errorf("a call begins without id, type or name")
		}
		choice.Calls = append(choice.Calls, Call{ID: d.ID, Name: d.Function.Name})
	case *d.Index != n-1 || d.ID != "" || d.Type != "" || d.Function.Name != "":
		return fmt.Errorf("a piece that is none of the last call")
	}
	if *d.Function.Arguments != "" {
		choice.Calls[*d.Index].Arguments += *d.Function.Arguments
		s.sawText()
	}
	return nil
}

// Metric returns the value of one series of url/metrics, or -1 if there is none.
func Metric(t testing.TB, url, name string, labels map[string]string) float64 {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[name].GetMetric() {
		if matches(m, labels) {
			return m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return -1
}

func matches(m *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, l := range m.GetLabel() {
		if want, ok := labels[l.GetName()]; ok {
			if want != l.GetValue() {
				return false
			}
			found++
		}
	}
	return found == len(labels)
}
