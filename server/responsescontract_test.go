package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// A responseEvent is an event of a streamed response, with the members of all of them.
type responseEvent struct {
	Type         string            `json:"type"`
	Sequence     *int              `json:"sequence_number"`
	Response     *responseObject   `json:"response"`
	OutputIndex  *int              `json:"output_index"`
	ContentIndex *int              `json:"content_index"`
	SummaryIndex *int              `json:"summary_index"`
	ItemID       string            `json:"item_id"`
	Item         *responseItem     `json:"item"`
	Part         *responsePart     `json:"part"`
	Delta        *string           `json:"delta"`
	Text         *string           `json:"text"`
	Arguments    *string           `json:"arguments"`
	Name         string            `json:"name"`
	Logprobs     *[]map[string]any `json:"logprobs"`
	Message      string            `json:"message"`
	Code         string            `json:"code"`
	Error        *struct{ Message, Type, Code string }
}

type responseObject struct {
	ID          string  `json:"id"`
	Object      string  `json:"object"`
	CreatedAt   int64   `json:"created_at"`
	CompletedAt *int64  `json:"completed_at"`
	Status      string  `json:"status"`
	Model       string  `json:"model"`
	Incomplete  *reason `json:"incomplete_details"`
	Error       *struct{ Code, Message string }
	Output      []responseItem
	Usage       *responseUsage
	Metadata    map[string]string
	Tools       []any
}

type reason struct{ Reason string }

type responseUsage struct {
	Input        int `json:"input_tokens"`
	InputDetails struct {
		Cached *int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	Output        int `json:"output_tokens"`
	OutputDetails struct {
		Reasoning *int `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total int `json:"total_tokens"`
}

type responseItem struct {
	ID, Type, Status, Role string
	Content                []responsePart
	Summary                *[]responsePart
	CallID                 string `json:"call_id"`
	Name, Namespace        string
	Arguments              *string
}

type responsePart struct {
	Type        string
	Text        string
	Annotations *[]any
	Logprobs    *[]map[string]any
}

// A strictResponse is a streamed response as its strictest readers take it.
type strictResponse struct {
	responseObject // the last one
	comments       []string
	err            *responseEvent // the error event
	deltas         int
}

// readResponse reads a whole stream and fails the test at whatever breaks the grammar
// of the API, or what the accumulators of the SDKs rely on.
func readResponse(t testing.TB, raw []byte) *strictResponse {
	t.Helper()
	s := &strictResponse{}
	events := s.lines(t, raw)
	for i, e := range events {
		if e.Sequence == nil || *e.Sequence != i {
			t.Errorf("event %d (%s) has the number %v", i, e.Type, e.Sequence)
		}
	}
	if len(events) < 3 {
		t.Fatalf("%d events in %q", len(events), raw)
	}
	for i, kind := range []string{"response.created", "response.in_progress"} {
		e := events[i]
		if e.Type != kind || e.Response == nil || e.Response.Status != "in_progress" || e.Response.Output == nil || len(e.Response.Output) > 0 || e.Response.Usage != nil {
			t.Fatalf("event %d: %+v", i, e)
		}
		checkResponse(t, e.Response)
	}
	first := events[0].Response
	var items []responseItem
	rest := events[2:]
	for len(rest) > 0 && rest[0].Type == "response.output_item.added" {
		var item *responseItem
		if item, rest = s.item(t, rest, len(items)); item == nil {
			break // the stream ends within it
		}
		items = append(items, *item)
	}
	if len(rest) == 0 || rest[0].Response == nil {
		t.Fatalf("no end after %d items: %+v", len(items), rest)
	}
	s.responseObject = *rest[0].Response
	checkResponse(t, &s.responseObject)
	if s.ID != first.ID || s.CreatedAt != first.CreatedAt || s.Model != first.Model {
		t.Errorf("ends as %+v, began as %+v", s.responseObject, first)
	}
	if want := "response." + s.Status; rest[0].Type != want {
		t.Errorf("%s with status %s", rest[0].Type, s.Status)
	}
	switch {
	case s.Status == "failed":
		if len(rest) != 2 || rest[1].Type != "error" || rest[1].Error == nil || rest[1].Error.Message != rest[1].Message || rest[1].Message == "" || rest[1].Code != rest[1].Error.Code {
			t.Fatalf("failed, then %+v", rest[1:])
		}
		s.err = rest[1]
	case len(rest) != 1:
		t.Errorf("%d events after the end", len(rest)-1)
	case !reflect.DeepEqual(items, s.Output) && len(items)+len(s.Output) > 0:
		t.Errorf("the whole response has\n%+v, the items were\n%+v", s.Output, items)
	}
	return s
}

// lines reads the framing: a name, one line of data with the same type, a blank line.
func (s *strictResponse) lines(t testing.TB, raw []byte) (events []*responseEvent) {
	t.Helper()
	if !utf8.Valid(raw) || bytes.ContainsAny(raw, "\r\v\f\x00") || strings.ContainsAny(string(raw), "\u0085\u2028\u2029") || !bytes.HasSuffix(raw, []byte("}\n\n")) {
		t.Errorf("not UTF-8, something that may be taken for the end of a line, or no end: %q", raw[max(0, len(raw)-60):])
	}
	name := ""
	data := false
	for line := range strings.SplitSeq(strings.TrimSuffix(string(raw), "\n"), "\n") {
		value, isData := strings.CutPrefix(line, "data: ")
		switch {
		case strings.HasPrefix(line, ":") && name == "":
			s.comments = append(s.comments, line)
		case strings.HasPrefix(line, "event: ") && name == "":
			name = line[len("event: "):]
		case isData && name != "" && !data:
			data = true
			e := &responseEvent{}
			if err := json.Unmarshal([]byte(value), e); err != nil || e.Type != name {
				t.Fatalf("%v: event %s: %s", err, name, value)
			}
			if (e.Error != nil) != (name == "error") {
				t.Errorf("a member error in %s", value)
			}
			events = append(events, e)
		case line == "" && data:
			name, data = "", false
		default:
			t.Errorf("line %q", line)
		}
	}
	return events
}

// item reads the events of one item, and returns it with the events behind; nil if
// they end before it is done.
func (s *strictResponse) item(t testing.TB, events []*responseEvent, index int) (*responseItem, []*responseEvent) {
	t.Helper()
	added := events[0].Item
	if added == nil || added.ID == "" || added.Status != "in_progress" || *events[0].OutputIndex != index {
		t.Fatalf("item %d is added as %+v", index, events[0])
	}
	grammar := map[string][]string{
		"message":       {"response.output_text", "response.content_part", "output_text"},
		"reasoning":     {"response.reasoning_text", "response.content_part", "reasoning_text"},
		"function_call": {"response.function_call_arguments", "", ""},
	}[added.Type]
	if len(events) > 1 && events[1].Type == "response.reasoning_summary_part.added" {
		grammar = []string{"response.reasoning_summary_text", "response.reasoning_summary_part", "summary_text"}
	}
	if grammar == nil {
		t.Fatalf("an item of type %s", added.Type)
	}
	text, part := grammar[0], grammar[1]
	rest := events[1:]
	next := func(kind string) *responseEvent {
		if len(rest) == 0 || rest[0].Type != kind {
			return nil
		}
		e := rest[0]
		rest = rest[1:]
		if e.ItemID != added.ID || e.OutputIndex == nil || *e.OutputIndex != index || !e.indexed(part) {
			t.Errorf("%s of item %d has another place: %+v", kind, index, e)
		}
		return e
	}
	if part != "" {
		if e := next(part + ".added"); e == nil || e.Part.Type != grammar[2] || e.Part.Text != "" {
			t.Fatalf("item %d has no part: %+v", index, rest)
		}
	}
	joined, logprobs := "", []map[string]any{}
	for {
		e := next(text + ".delta")
		if e == nil {
			break
		}
		s.deltas++
		joined += *e.Delta
		if (e.Logprobs != nil) != (added.Type == "message") {
			t.Errorf("logprobs of a %s: %v", added.Type, e.Logprobs)
		}
		if e.Logprobs != nil {
			logprobs = append(logprobs, *e.Logprobs...)
		}
	}
	e := next(text + ".done")
	if e == nil {
		return nil, rest
	}
	whole := e.Text
	if part == "" {
		whole = e.Arguments
		if e.Name != added.Name {
			t.Errorf("the name %s is done as %s", added.Name, e.Name)
		}
	}
	if whole == nil || *whole != joined || added.Type == "message" && !reflect.DeepEqual(*e.Logprobs, logprobs) {
		t.Errorf("the deltas are %q with %d logprobs, the whole is %+v", joined, len(logprobs), e)
	}
	if part != "" {
		if e := next(part + ".done"); e == nil || e.Part.Type != grammar[2] || e.Part.Text != joined {
			t.Fatalf("the part of item %d is not done: %+v", index, rest)
		}
	}
	if len(rest) == 0 || rest[0].Type != "response.output_item.done" || *rest[0].OutputIndex != index {
		t.Fatalf("item %d is not done: %+v", index, rest)
	}
	done := rest[0].Item
	if done.ID != added.ID || done.Type != added.Type || done.CallID != added.CallID || done.Name != added.Name || done.Namespace != added.Namespace || itemText(done) != joined {
		t.Errorf("item %+v is done as %+v", added, done)
	}
	checkItem(t, done)
	return done, rest[1:]
}

// indexed reports whether e names the first part of a list, and only one of the list to
// which events with this name belong.
func (e *responseEvent) indexed(part string) bool {
	content, summary := e.ContentIndex != nil && *e.ContentIndex == 0, e.SummaryIndex != nil && *e.SummaryIndex == 0
	switch part {
	case "":
		return e.ContentIndex == nil && e.SummaryIndex == nil
	case "response.content_part":
		return content && e.SummaryIndex == nil
	}
	return summary && e.ContentIndex == nil
}

func itemText(item *responseItem) string {
	switch {
	case item.Type == "function_call":
		return *item.Arguments
	case item.Summary != nil && len(*item.Summary) > 0:
		return (*item.Summary)[0].Text
	}
	return item.Content[0].Text
}

func checkItem(t testing.TB, item *responseItem) {
	t.Helper()
	ok := item.ID != "" && (item.Status == "completed" || item.Status == "incomplete")
	switch item.Type {
	case "message":
		ok = ok && strings.HasPrefix(item.ID, "msg_") && item.Role == "assistant" && len(item.Content) == 1 && item.Content[0].Type == "output_text" &&
			item.Content[0].Annotations != nil && item.Content[0].Logprobs != nil
	case "reasoning":
		ok = ok && strings.HasPrefix(item.ID, "rs_") && item.Summary != nil
		if ok && len(*item.Summary) > 0 {
			ok = len(*item.Summary) == 1 && (*item.Summary)[0].Type == "summary_text" && len(item.Content) == 0
		} else {
			ok = ok && len(item.Content) == 1 && item.Content[0].Type == "reasoning_text"
		}
	case "function_call":
		ok = ok && strings.HasPrefix(item.ID, "fc_") && item.CallID != "" && item.Name != "" && item.Arguments != nil
	default:
		ok = false
	}
	if !ok {
		t.Errorf("item %+v", item)
	}
}

func checkResponse(t testing.TB, r *responseObject) {
	t.Helper()
	if !strings.HasPrefix(r.ID, "resp_") || r.Object != "response" || r.CreatedAt == 0 || r.Model == "" || r.Metadata["a"] != "b" || r.Tools == nil ||
		(r.CompletedAt != nil) != (r.Status == "completed") || (r.Error != nil) != (r.Status == "failed") || (r.Incomplete != nil) != (r.Status == "incomplete") {
		t.Errorf("response %+v", r)
	}
	if u := r.Usage; (u != nil) != (r.Status == "completed" || r.Status == "incomplete") ||
		u != nil && (u.Total != u.Input+u.Output || u.InputDetails.Cached == nil || u.OutputDetails.Reasoning == nil || *u.OutputDetails.Reasoning > u.Output) {
		t.Errorf("usage %+v of a response that is %s", u, r.Status)
	}
	seen := map[string]bool{}
	for i := range r.Output {
		checkItem(t, &r.Output[i])
		if seen[r.Output[i].ID] {
			t.Errorf("two items %s", r.Output[i].ID)
		}
		seen[r.Output[i].ID] = true
	}
}

// outline is the output in short, without ids.
func outline(items []responseItem) string {
	var b strings.Builder
	for i := range items {
		item := &items[i]
		fmt.Fprintf(&b, "%s %s %s %q\n", item.Type, item.Status, item.Name, itemText(item))
	}
	return b.String()
}
