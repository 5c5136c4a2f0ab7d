package scripts

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"baton/engine/sim"
	"baton/test/harness"
)

// How answers are read is wired as the flags say, and a constraint waits for the thought:
// the whole program, with a model that thinks and calls tools.
func TestReading(t *testing.T) {
	dir, worker := wordsWorker(t)
	const (
		thinking = `"messages":[{"role":"user","content":"/think about it"}],"chat_template_kwargs":{"enable_thinking":true}`
		schema   = `,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}`
		calling  = `"messages":[{"role":"user","content":"get_time please"}],"tools":[{"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{}}}}]`
	)
	type message struct {
		Content          *string
		Reasoning        string
		ReasoningContent string            `json:"reasoning_content"`
		ToolCalls        []json.RawMessage `json:"tool_calls"`
	}
	for _, test := range []struct {
		name  string
		flags []string
		body  string
		good  func(m *message, content string) bool
	}{
		{"as the template teaches", nil, thinking, func(m *message, content string) bool {
			return m.ReasoningContent != "" && m.Reasoning == "" && content != "" && !strings.Contains(content, "think>")
		}},
		{"in another field", []string{"--reasoning-field", "reasoning"}, thinking, func(m *message, _ string) bool {
			return m.Reasoning != "" && m.ReasoningContent == ""
		}},
		{"reasoning left in the text", []string{"--reasoning-parser", "none"}, thinking, func(m *message, content string) bool {
			return m.ReasoningContent == "" && strings.Contains(content, "</think>")
		}},
		{"a thought before a schema", nil, thinking + schema, func(m *message, content string) bool {
			return m.ReasoningContent != "" && json.Valid([]byte(content)) && strings.HasPrefix(content, "{")
		}},
		{"a call", nil, calling, func(m *message, _ string) bool { return len(m.ToolCalls) == 1 }},
		{"calls by name", []string{"--tool-call-parser", "sim=hermes", "--reasoning-parser", "sim=none"}, calling, func(m *message, _ string) bool {
			return len(m.ToolCalls) == 1
		}},
		{"no parser of calls", []string{"--tool-call-parser", "none"}, calling, func(m *message, content string) bool {
			return len(m.ToolCalls) == 0 && strings.Contains(content, "get_time")
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			url, _ := harness.Serve(t, append([]string{"--worker", worker, "--model-path", dir}, test.flags...)...)
			_, raw := post(t, url+"/v1/chat/completions", `{"model":"sim","max_tokens":400,`+test.body+`}`)
			var reply struct{ Choices []struct{ Message message } }
			if err := json.Unmarshal(raw, &reply); err != nil || len(reply.Choices) != 1 {
				t.Fatalf("%v in %s", err, raw)
			}
			m := &reply.Choices[0].Message
			content := ""
			if m.Content != nil {
				content = *m.Content
			}
			if !test.good(m, content) {
				t.Errorf("%s", raw)
			}
		})
	}
}

// Responses are kept, so that the next request can refer to them, unless the flag says
// that none is.
func TestKeptResponses(t *testing.T) {
	dir, worker := wordsWorker(t)
	for flag, want := range map[string]int{"64MiB": http.StatusOK, "0": http.StatusBadRequest} {
		url, _ := harness.Serve(t, "--worker", worker, "--model-path", dir, "--response-store-bytes", flag)
		_, raw := post(t, url+"/v1/responses", `{"model":"sim","input":"Hi","max_output_tokens":40}`)
		var first struct {
			ID    string
			Store bool
		}
		if err := json.Unmarshal(raw, &first); err != nil || first.ID == "" || first.Store != (want == http.StatusOK) {
			t.Fatalf("%s: %v in %s", flag, err, raw)
		}
		if status, raw := post(t, url+"/v1/responses", `{"model":"sim","input":"Go on","max_output_tokens":40,"previous_response_id":"`+first.ID+`"}`); status != want {
			t.Errorf("%s: %d %s", flag, status, raw)
		}
	}
}

// wordsWorker starts a simulated worker that thinks and calls tools, and returns where its
// model's files are.
func wordsWorker(t *testing.T) (dir, url string) {
	t.Helper()
	dir = t.TempDir()
	if err := sim.WriteModel(dir); err != nil {
		t.Fatal(err)
	}
	port := harness.FreePort(t)
	harness.Start(t, harness.Binary(t), "sim", "--port", fmt.Sprint(port), "--style", "words")
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	harness.WaitOK(t, url+"/health", 30*time.Second)
	return dir, url
}

func post(t *testing.T, url, body string) (status int, raw []byte) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if raw, err = io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, raw
}
