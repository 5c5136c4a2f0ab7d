package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"baton/test/harness"
)

// thinkTemplate opens a thought, and shows those of earlier turns.
const thinkTemplate = `{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>{% endif %}`

// thinkTokens make two tokens of the model what opens and closes a thought. The server
// knows nothing of it.
var thinkTokens = [][2]string{{"<jupyter_text>", "<think>"}, {"<jupyter_code>", "</think>"}}

// A model thinks before an answer that a schema constrains, on a server that enforces
// the schema from the first token on and was told nothing of thoughts. A worker that is
// killed in the thought does not show.
func TestThoughtBeforeAConstrainedAnswer(t *testing.T) {
	a, b := startWorker(t), startWorker(t)
	url, _ := harness.Serve(t, "--worker", a.url(), "--worker", b.url(), "--model-path", headerWith(t, gguf, thinkTemplate, thinkTokens...),
		"--migration-limit", "3", "--inhibit-duration", "500ms", "--health-interval", "200ms")
	waitReady(t, url, 2)
	var talk strings.Builder
	for _, city := range []string{"Paris", "Rome", "Oslo", "Madrid"} {
		fmt.Fprintf(&talk, `{"role":"user","content":"Weather in %[1]s for 3 days?"},{"role":"assistant",
			"reasoning_content":"The user wants the weather in %[1]s. That is for 3 days.","content":"{\"city\": \"%[1]s\", \"days\": 3}"},`, city)
	}
	// The bias makes up for that the model was never taught what closes a thought.
	body := `{"model":"smollm2","temperature":0,"max_tokens":120,"logit_bias":{"13":20},"stream":true,"stream_options":{"include_usage":true},"messages":[` + talk.String() +
		`{"role":"user","content":"Weather in Berlin for 3 days?"}],"response_format":{"type":"json_schema","json_schema":{"name":"w","schema":
		{"type":"object","properties":{"city":{"type":"string","maxLength":20},"days":{"type":"integer","minimum":1,"maximum":9}},"required":["city","days"],"additionalProperties":false}}}}`
	want := stream(t, url, body, nil)
	if want.Error != nil {
		t.Fatalf("%+v", want.Error)
	}
	t.Logf("%d chunks, thought %q, answer %q", want.Chunks, want.Choices[0].Reasoning, want.Text)
	var answer struct {
		City string
		Days int
	}
	if err := json.Unmarshal([]byte(want.Text), &answer); err != nil || answer.City == "" || answer.Days < 1 || len(want.Choices[0].Reasoning) < 10 || want.Finish != "stop" {
		t.Fatalf("%+v, %v", want, err)
	}
	for _, cut := range []int{1, 3, 5} {
		var killed *worker
		got := stream(t, url, body, func(n int) {
			if n == cut {
				killed = busyOne(a, b)
				killed.proc.Kill()
			}
		})
		if got.Choices[0].Reasoning != want.Choices[0].Reasoning || got.Text != want.Text || got.Finish != want.Finish || *got.Usage != *want.Usage {
			t.Errorf("cut %d:\n got %+v\nwant %+v", cut, got, want)
		}
		killed.start()
		waitReady(t, url, 2)
	}
	if moves := migrations(t, url, "ongoing_request"); moves != 3 {
		t.Errorf("%v moves, want 3", moves)
	}
}
