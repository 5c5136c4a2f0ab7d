package preprocess

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/openai"
	"baton/responsestore"
)

// checkResult fails unless a result is one that the pipeline can rely on.
func checkResult(t *testing.T, prepared *Prepared, err *openai.Error) {
	t.Helper()
	if err != nil {
		if prepared != nil {
			t.Fatal("a result and an error")
		}
		if err.Status < 400 || err.Status > 599 || err.Message == "" || err.Type == "" {
			t.Fatalf("error %+v", err)
		}
		return
	}
	if len(prepared.Choices) == 0 || len(prepared.Choices) > maxChoices {
		t.Fatalf("%d choices", len(prepared.Choices))
	}
	seen := make(map[string]bool)
	for _, c := range prepared.Choices {
		q := c.Request.Tokens
		if seen[q.ID] || q.Model != prepared.Model || len(q.TokenIDs) == 0 {
			t.Fatalf("request %+v", q)
		}
		seen[q.ID] = true
		for _, id := range q.TokenIDs {
			if id < 0 || int(id) >= q.VocabSize {
				t.Fatalf("id %d outside the vocabulary", id)
			}
		}
		if q.Stop.MaxTokens < 1 || q.Stop.MinTokens < 0 || q.Stop.MinTokens > q.Stop.MaxTokens ||
			len(q.TokenIDs)+q.Stop.MaxTokens > q.ContextLength {
			t.Fatalf("stop %+v after %d tokens", q.Stop, len(q.TokenIDs))
		}
		s := q.Sampling
		if !(s.Temperature >= 0 && s.Temperature <= 2 && s.TopP > 0 && s.TopP <= 1 && s.MinP >= 0 && s.MinP <= 1 && s.TopK >= 0) ||
			!(s.PresencePenalty >= -2 && s.PresencePenalty <= 2 && s.FrequencyPenalty >= -2 && s.FrequencyPenalty <= 2 && s.RepetitionPenalty > 0) {
			t.Fatalf("sampling %+v", s)
		}
		if len(c.Request.Stop) > maxStopStrings || !utf8.ValidString(c.Echo) {
			t.Fatalf("choice %+v", c)
		}
	}
}

func FuzzChat(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "conversation.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	for _, members := range []string{
		``, `"n":3,"seed":-1`, `"stop":["a"],"logit_bias":{"1":2}`, `"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none"`,
		`"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":"{}"}}],"content":[{"type":"text","text":"x"}]}]`,
		`"continue_final_message":true,"chat_template_kwargs":{"a":1},"reasoning_effort":"low"`,
	} {
		f.Add(chatBody(members))
	}
	p, _ := newTestPreprocessor(f, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		prepared, err := p.Chat("r", body)
		checkResult(t, prepared, err)
	})
}

func FuzzResponses(f *testing.F) {
	for _, members := range []string{
		``, `"instructions":"i","text":{"format":{"type":"json_schema","schema":{}}},"include":["message.output_text.logprobs"]`,
		`"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"tool_choice":{"type":"function","name":"f"},"reasoning":{"effort":"low"}`,
		`"input":[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"t"}]},{"role":"assistant","content":[{"type":"output_text","text":"a"}]},` +
			`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"o"}]}]`,
		`"input":[{"role":"developer","content":"d"},{"role":"user","content":[]}],"metadata":{"a":"b"},"truncation":"auto"`,
		`"previous_response_id":"resp_A","input":[{"type":"item_reference","id":"rs_A-0"},{"id":"fc_A-1"},{"role":"user","content":"x","id":"i"}],"store":true`,
	} {
		f.Add(responsesBody(members))
	}
	p, _ := newTestPreprocessor(f, nil)
	recall := recallOf(1<<20, "resp_A", keptBefore(), keptThought, keptCall)
	f.Fuzz(func(t *testing.T, body []byte) {
		prepared, err := p.Responses("r", body, recall)
		checkResult(t, prepared, err)
		if err == nil && prepared.Input != nil {
			for item := range prepared.Input.All() {
				if !json.Valid(item) || responsestore.IDOf(item) == "" {
					t.Fatalf("%q: keeps %q", body, item)
				}
			}
		}
		switch {
		case err == nil && (!json.Valid([]byte("{"+string(prepared.Echo)+"}")) || len(prepared.Choices) != 1 || bytes.ContainsAny(prepared.Echo, "\n\r")):
			t.Fatalf("%q: echo %q", body, prepared.Echo)
		case err != nil && strings.HasPrefix(err.Param, "messages") && !strings.Contains(err.Message, "'input'") && err.Code != openai.CodeInvalidJSON:
			t.Fatalf("%q: an error about %s, which no client has written: %s", body, err.Param, err.Message)
		}
	})
}

func FuzzCompletion(f *testing.F) {
	for _, members := range []string{
		``, `"prompt":[1,2]`, `"prompt":[[1],[2]],"n":2`, `"prompt":["a","b"],"echo":true`, `"logprobs":3,"max_tokens":5,"min_tokens":5`,
	} {
		f.Add(completionBody(members))
	}
	p, _ := newTestPreprocessor(f, nil)
	f.Fuzz(func(t *testing.T, body []byte) {
		prepared, err := p.Completion("r", body)
		checkResult(t, prepared, err)
	})
}

// FuzzScan: the scanner accepts what encoding/json accepts, apart from what it
// is stricter about, and finds the same members.
func FuzzScan(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"a":1,"b":[true,null,{"c":"d"}]}`, `{"a":-1.5e+10,"a":"\u00e9\n"}`, ` { "x" : [ ] , "y" : { } } `,
		`{"a":01}`, `{"a":1.}`, `{"a":"\ud83d\ude00"}`, `{"a":.5}`, `{"a":1e}`, `{"a":+1}`, `{,}`, `{"a"}`, `{"a":1 "b":2}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		fields, err := scan(body)
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(body, &want)
		isObject := wantErr == nil && want != nil
		if err == nil != isObject {
			stricter := err != nil && (strings.Contains(err.Message, "UTF-8") || strings.Contains(err.Message, "surrogate") || strings.Contains(err.Message, "nested"))
			if !stricter {
				t.Fatalf("%q: %v, encoding/json: %v", body, err, wantErr)
			}
		}
		if err != nil {
			return
		}
		if len(fields) != len(want) {
			t.Fatalf("%q: %d fields, want %d", body, len(fields), len(want))
		}
		for i := range fields {
			v := &fields[i]
			if !bytes.Equal(v.raw(), want[v.key]) {
				t.Fatalf("%q: %q is %q, want %q", body, v.key, v.raw(), want[v.key])
			}
			walk(t, v)
		}
	})
}

// walk visits everything in a value: the walkers check nothing, so whatever the
// scanner lets through must be fit for them.
func walk(t *testing.T, v *value) {
	if !json.Valid(v.raw()) || v.param() == "" && v.key != "" {
		t.Fatalf("%q", v.raw())
	}
	n := 0
	switch {
	case v.isArray():
		for i, e := range v.elements() {
			if i != n {
				t.Fatal("wrong index")
			}
			n++
			walk(t, e)
		}
	case v.isObject():
		for _, m := range v.members() {
			n++
			walk(t, m)
		}
	default:
		return
	}
	if (n == 0) != v.isEmpty() {
		t.Fatalf("%q is empty: %v", v.raw(), v.isEmpty())
	}
}
