package e2e

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"baton/test/harness"
)

// callTemplate teaches calls as Hermes and Qwen write them, in the markers of the
// model's own conversations.
const callTemplate = `{% if tools %}<|im_start|>system
You call functions. <tools>{% for t in tools %}{{ t | tojson }}{% endfor %}</tools><|im_end|>
{% endif %}{% for m in messages %}<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}
{% if m.role == 'tool' %}<tool_response>{{ m.content }}</tool_response>{% else %}{{ m.content or '' }}{% endif %}{% for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// headerWith writes the header of a .gguf file with another chat template, and with
// other spellings of tokens.
func headerWith(t *testing.T, gguf, template string, tokens ...[2]string) string {
	t.Helper()
	f, err := os.Open(gguf)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	header := make([]byte, 16<<20)
	n, _ := f.ReadAt(header, 0)
	header = header[:n]
	const key = "tokenizer.chat_template"
	at := strings.Index(string(header), key)
	if at < 0 {
		t.Fatal("the model has no chat template")
	}
	at += len(key) + 4 // the type of the value
	end := at + 8 + int(binary.LittleEndian.Uint64(header[at:]))
	out := binary.LittleEndian.AppendUint64(append([]byte(nil), header[:at]...), uint64(len(template)))
	out = append(append(out, template...), header[end:]...)
	for _, token := range tokens {
		if bytes.Count(out, spelled(token[0])) != 1 {
			t.Fatalf("the model has no token %q", token[0])
		}
		out = bytes.Replace(out, spelled(token[0]), spelled(token[1]), 1)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, out, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// spelled is a string as a .gguf file has it.
func spelled(s string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(s))), s...)
}

const weatherTool = `"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather of a city.",
	"parameters":{"type":"object","properties":{"city":{"type":"string","maxLength":30},"unit":{"type":"string","enum":["celsius","fahrenheit"]},"days":{"type":"integer","minimum":1,"maximum":9}},"required":["city","unit","days"]}}}]`

// weatherTalk shows a model that is too small to know what a call is how one looks.
func weatherTalk(more string) string {
	var b strings.Builder
	for i, city := range []string{"Paris", "Rome", "Oslo"} {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"role":"user","content":"Weather in %[1]s for 3 days?"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_%[2]d","type":"function",
			"function":{"name":"get_weather","arguments":"{\"city\": \"%[1]s\", \"unit\": \"celsius\", \"days\": 3}"}}]},
			{"role":"tool","tool_call_id":"call_%[2]d","content":"sunny"},{"role":"assistant","content":"It is sunny in %[1]s."}`, city, i)
	}
	return `{"model":"smollm2","temperature":0,"max_tokens":120,"stream":true,"stream_options":{"include_usage":true},"messages":[` +
		b.String() + `,{"role":"user","content":"Weather in Berlin for 3 days?"}],` + weatherTool + more + `}`
}

// A worker is killed at each piece of a tool call; the client has the same call.
func TestKillInAToolCall(t *testing.T) {
	a, b := startWorker(t), startWorker(t)
	url, _ := harness.Serve(t, "--worker", a.url(), "--worker", b.url(), "--model-path", headerWith(t, gguf, callTemplate),
		"--migration-limit", "3", "--inhibit-duration", "500ms", "--health-interval", "200ms")
	waitReady(t, url, 2)
	body := weatherTalk("")
	want := stream(t, url, body, nil)
	if want.Error != nil || len(want.Choices[0].Calls) == 0 || want.Finish != "tool_calls" {
		t.Fatalf("the uncut answer: %+v", want)
	}
	calls := withoutIDs(want)
	t.Logf("uncut: %d chunks, %+v", want.Chunks, calls)
	if !json.Valid([]byte(calls[0].Arguments)) || calls[0].Name != "get_weather" {
		t.Fatalf("the uncut call: %+v", calls)
	}
	pieces := 0
	stream(t, url, body, func(n int) { pieces = n })
	for cut := 1; cut < pieces; cut += 2 {
		var killed *worker
		got := stream(t, url, body, func(n int) {
			if n == cut {
				killed = busyOne(a, b)
				killed.proc.Kill()
			}
		})
		if killed == nil {
			t.Fatalf("cut %d: nobody was busy", cut)
		}
		if !reflect.DeepEqual(withoutIDs(got), calls) || got.Finish != want.Finish || got.Text != want.Text || *got.Usage != *want.Usage {
			t.Errorf("cut %d:\n got %+v\nwant %+v", cut, got, want)
		}
		killed.start()
		waitReady(t, url, 2)
	}
	if moves := migrations(t, url, "ongoing_request"); moves < 3 {
		t.Errorf("%v moves", moves)
	}
}

// What must be a call is one, whatever the model wants: the server enforces it.
func TestRequiredCalls(t *testing.T) {
	a := startWorker(t)
	url, _ := harness.Serve(t, "--worker", a.url(), "--model-path", headerWith(t, gguf, callTemplate), "--migration-limit", "3")
	waitReady(t, url, 1)
	for _, choice := range []string{`"required"`, `{"type":"function","function":{"name":"get_weather"}}`} {
		got := stream(t, url, weatherTalk(`,"parallel_tool_calls":false,"tool_choice":`+choice), nil)
		if got.Error != nil || len(got.Choices[0].Calls) != 1 || got.Text != "" || got.Finish != "tool_calls" {
			t.Fatalf("%s: %+v", choice, got)
		}
		var arguments struct {
			City, Unit string
			Days       int
		}
		call := got.Choices[0].Calls[0]
		if err := json.Unmarshal([]byte(call.Arguments), &arguments); err != nil || call.Name != "get_weather" || arguments.City == "" || arguments.Days < 1 {
			t.Errorf("%s: %+v, %v", choice, call, err)
		}
	}
}

func busyOne(a, b *worker) *worker {
	if a.busy() {
		return a
	}
	return b
}

func withoutIDs(a *harness.Answer) []harness.Call {
	var calls []harness.Call
	for _, c := range a.Choices[0].Calls {
		c.ID = ""
		calls = append(calls, c)
	}
	return calls
}
