package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Responses have a grammar of their own. An Answer has what they say in one choice:
// its text is that of all messages, its finish the status of the response.

type responseObject struct {
	ID     string         `json:"id"`
	Status string         `json:"status"`
	Output []responseItem `json:"output"`
	Usage  *struct {
		Input   int `json:"input_tokens"`
		Output  int `json:"output_tokens"`
		Total   int `json:"total_tokens"`
		Details struct {
			ReasoningTokens int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

type responseItem struct {
	ID        string         `json:"id"`
	Type      string         `json:"type"`
	Status    string         `json:"status"`
	Content   []responsePart `json:"content"`
	Summary   []responsePart `json:"summary"`
	CallID    string         `json:"call_id"`
	Name      string         `json:"name"`
	Arguments string         `json:"arguments"`
}

type responsePart struct {
	Text string `json:"text"`
}

// text is what grows of an item.
func (i *responseItem) text() string {
	for _, part := range append(i.Content, i.Summary...) {
		return part.Text
	}
	return i.Arguments
}

type responseEvent struct {
	Type      string          `json:"type"`
	Sequence  int             `json:"sequence_number"`
	Index     int             `json:"output_index"`
	ItemID    string          `json:"item_id"`
	Delta     string          `json:"delta"`
	Text      string          `json:"text"`
	Arguments string          `json:"arguments"`
	Item      *responseItem   `json:"item"`
	Response  *responseObject `json:"response"`
	Error     *APIError       `json:"error"`
}

// ReadResponse reads the body of a streamed response into a, as Stream does. onChunk,
// which may be nil, is called with the number of deltas so far.
func ReadResponse(a *Answer, body io.Reader, onChunk func(n int)) error {
	r := &responseReader{answer: a, onChunk: onChunk}
	a.Choices = []Choice{{}}
	br := bufio.NewReader(body)
	for {
		name, data, err := r.next(br)
		switch {
		case err == io.EOF && (a.Done || a.Error != nil):
			a.Text, a.Finish = a.Choices[0].Text, a.Choices[0].Finish
			return nil
		case err == io.EOF:
			return fmt.Errorf("the body ends with neither a whole response nor an error")
		case err != nil:
			return err
		}
		e := &responseEvent{}
		if err := json.Unmarshal(data, e); err != nil {
			return fmt.Errorf("%w in %s", err, data)
		}
		if e.Type != name || e.Sequence != a.Chunks || a.Done || a.Error != nil {
			return fmt.Errorf("event %d is %s: %s", a.Chunks, name, data)
		}
		a.Chunks++
		if err := r.event(e); err != nil {
			return fmt.Errorf("%w: %s", err, data)
		}
	}
}

type responseReader struct {
	answer  *Answer
	onChunk func(int)
	id      string
	failed  bool           // an error event must follow
	items   []responseItem // those that are done
	open    *responseItem
	joined  string // of the open item's deltas
	deltas  int
}

// next reads one event: its name, one line of data, a blank line.
func (r *responseReader) next(br *bufio.Reader) (name string, data []byte, err error) {
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			if err == io.EOF && (line != "" || name != "") {
				err = fmt.Errorf("the body ends inside an event")
			}
			return "", nil, err
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case name == "" && strings.HasPrefix(line, ":"):
			r.answer.Comments = append(r.answer.Comments, strings.TrimSpace(line[1:]))
		case name == "" && strings.HasPrefix(line, "event: "):
			name = line[len("event: "):]
		case name != "" && data == nil && strings.HasPrefix(line, "data: "):
			data = bytes.Clone([]byte(line[len("data: "):]))
		case data != nil && line == "":
			return name, data, nil
		default:
			return "", nil, fmt.Errorf("line %q", line)
		}
	}
}

func (r *responseReader) event(e *responseEvent) error {
	first := r.answer.Chunks <= 2
	switch e.Type {
	case "response.created", "response.in_progress":
		if !first || e.Response == nil || len(e.Response.Output) > 0 {
			return fmt.Errorf("no beginning")
		}
		r.id = e.Response.ID
		return nil
	case "response.completed", "response.incomplete":
		if r.open != nil || e.Response.ID != r.id || "response."+e.Response.Status != e.Type || !reflect.DeepEqual(e.Response.Output, append([]responseItem{}, r.items...)) {
			return fmt.Errorf("not what the events were")
		}
		r.answer.Done = true
		return r.answer.takeResponse(e.Response)
	case "response.failed":
		r.failed = true
		return nil
	case "error":
		if !r.failed || e.Error == nil {
			return fmt.Errorf("no error of a failed response")
		}
		r.answer.Error = e.Error
		return nil
	case "response.output_item.added":
		if first || r.open != nil || e.Index != len(r.items) {
			return fmt.Errorf("an item out of place")
		}
		r.open, r.joined = e.Item, ""
		return nil
	}
	if r.open == nil || e.Index != len(r.items) {
		return fmt.Errorf("no item is open here")
	}
	switch e.Type {
	case "response.output_item.done":
		if e.Item.ID != r.open.ID || e.Item.text() != r.joined || e.Item.CallID != r.open.CallID {
			return fmt.Errorf("another item than %+v with %q", r.open, r.joined)
		}
		r.items, r.open = append(r.items, *e.Item), nil
		return nil
	case "response.output_text.delta", "response.reasoning_text.delta", "response.reasoning_summary_text.delta", "response.function_call_arguments.delta":
		r.joined += e.Delta
		if e.Type == "response.output_text.delta" {
			r.answer.Choices[0].Text += e.Delta
		}
		if r.deltas++; r.onChunk != nil {
			r.onChunk(r.deltas)
		}
	case "response.output_text.done", "response.reasoning_text.done", "response.reasoning_summary_text.done", "response.function_call_arguments.done":
		if e.Text+e.Arguments != r.joined {
			return fmt.Errorf("the deltas were %q", r.joined)
		}
	case "response.content_part.added", "response.content_part.done", "response.reasoning_summary_part.added", "response.reasoning_summary_part.done":
	default:
		return fmt.Errorf("an unknown event")
	}
	if e.ItemID != r.open.ID {
		return fmt.Errorf("another item than %s", r.open.ID)
	}
	return nil
}

// ReadResponseObject reads a response that is not streamed into a.
func ReadResponseObject(a *Answer, data []byte) error {
	var r responseObject
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("%w in %s", err, data)
	}
	return a.takeResponse(&r)
}

// takeResponse makes an answer of a whole response.
func (a *Answer) takeResponse(r *responseObject) error {
	if r.Usage == nil || r.Usage.Total != r.Usage.Input+r.Usage.Output {
		return fmt.Errorf("usage %+v", r.Usage)
	}
	a.Usage = &Usage{PromptTokens: r.Usage.Input, CompletionTokens: r.Usage.Output, TotalTokens: r.Usage.Total}
	a.Usage.Details.ReasoningTokens = r.Usage.Details.ReasoningTokens
	c := Choice{Finish: r.Status}
	for i := range r.Output {
		item := &r.Output[i]
		switch item.Type {
		case "message":
			c.Text += item.text()
		case "reasoning":
			c.Reasoning += item.text()
		case "function_call":
			c.Calls = append(c.Calls, Call{ID: item.CallID, Name: item.Name, Arguments: item.Arguments})
		default:
			return fmt.Errorf("an item of type %q", item.Type)
		}
	}
	a.Choices = []Choice{c}
	return nil
}
