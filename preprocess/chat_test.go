package preprocess

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRenders: what the template of the simulated worker makes of the shapes
// that a modern client sends.
func TestRenders(t *testing.T) {
	p, _ := newTestPreprocessor(t, nil)
	const end = "<|im_start|>assistant\n"
	tests := []struct{ name, members, want string }{
		{"text", `"messages":[{"role":"user","content":"Hi"}]`,
			"<|im_start|>user\nHi<|im_end|>\n" + end},
		{"roles developer and tool",
			`"messages":[{"role":"developer","content":"d"},{"role":"user","content":"u"},{"role":"tool","tool_call_id":"c","content":"t"}]`,
			"<|im_start|>developer\nd<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>user\n<tool_response>\nt\n</tool_response><|im_end|>\n" + end},
		{"parts, also the assistant's",
			`"messages":[{"role":"user","content":[{"type":"text","text":"a \"q\""},{"text":"b","type":"text"}]},{"role":"assistant","content":[{"type":"text","text":"c"}]}]`,
			"<|im_start|>user\na \"q\"\nb<|im_end|>\n<|im_start|>assistant\nc<|im_end|>\n" + end},
		{"no parts", `"messages":[{"role":"user","content":[]}]`,
			"<|im_start|>user\n<|im_end|>\n" + end},
		{"a refusal", `"messages":[{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},{"role":"user","content":"u"}]`,
			"<|im_start|>assistant\nno<|im_end|>\n<|im_start|>user\nu<|im_end|>\n" + end},
		{"null content", `"messages":[{"role":"user","content":"u"},{"role":"assistant","content":null,"tool_calls":[]}]`,
			"<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n<|im_end|>\n" + end},
		{"characters", `"messages":[{"role":"user","content":"é\u00e9 \ud83d\ude00😀 \u2028<a>&"}]`,
			"<|im_start|>user\néé 😀😀 \u2028<a>&<|im_end|>\n" + end},
		{"no generation prompt", `"add_generation_prompt":false`,
			"<|im_start|>user\nHi<|im_end|>\n"},
		{"continuing", `"continue_final_message":true,"messages":[{"role":"user","content":"u"},{"role":"assistant","content":"Once"}]`,
			"<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\nOnce"},
		{"continuing parts", `"continue_final_message":true,"messages":[{"role":"assistant","content":[{"type":"text","text":"On"},{"type":"text","text":"ce"}]}]`,
			"<|im_start|>assistant\nOn\nce"},
		{"tools as they came", `"tool_choice":"none","tools":[{"type":"function","function":{"z":1.0,"name":"f","a":"<a>&\u2028é"}}]`,
			"<|im_start|>system\nTools:\n<tools>\n" + `{"type": "function", "function": {"z": 1.0, "name": "f", "a": "<a>&` + "\u2028" + `é"}}` +
				"\n</tools>\nCall one with:\n<tool_call>\n{\"name\": NAME, \"arguments\": OBJECT}\n</tool_call><|im_end|>\n<|im_start|>user\nHi<|im_end|>\n" + end},
		{"no tools", `"tools":[],"tool_choice":"auto"`,
			"<|im_start|>user\nHi<|im_end|>\n" + end},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := text(mustChat(t, p, tt.members), 0); got != tt.want {
				t.Errorf("\n got %q\nwant %q", got, tt.want)
			}
		})
	}
}

// TestRendersByShape: the same request for templates that take their input in
// different forms.
func TestRendersByShape(t *testing.T) {
	const (
		loop   = `{% for m in messages %}<{{ m.role }}>`
		end    = `{% endfor %}`
		parts  = `{% for p in m.content %}[{{ p.type }}:{{ p.text }}]{% endfor %}`
		either = loop + `{% if m.content is string %}[text:{{ m.content }}]{% else %}` + parts + `{% endif %}` + end
		typed  = loop + parts + end
		plain  = loop + `{{ m.content }}` + end
	)
	const two = `"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"assistant","content":"c"}]`
	const refusal = `"messages":[{"role":"user","content":[{"type":"refusal","refusal":"a"}]}]`
	tests := []struct{ name, template, members, want string }{
		{"text only", plain, two, "<user>a\nb<assistant>c"},
		{"either", either, two, "<user>[text:a][text:b]<assistant>[text:c]"},
		{"parts only", typed, two, "<user>[text:a][text:b]<assistant>[text:c]"},
		{"refusal, either", either, refusal, "<user>[text:a]"},
		{"refusal, text only", plain, refusal, "<user>a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := newTestPreprocessor(t, map[string]string{"chat_template.jinja": tt.template})
			if got := text(mustChat(t, p, tt.members), 0); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestToolCallArguments(t *testing.T) {
	const loop = `{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}`
	const (
		quoting = loop + `{{ c.function | tojson }}{% endfor %}{% endfor %}`
		spelled = loop + `{{ c.function.name + c.function.arguments }}{% endfor %}{% endfor %}`
	)
	tests := []struct{ name, template, arguments, want string }{
		{"object for a quoting template", quoting, `" {\"b\": 1.0, \"a\": \"é\"} "`, `{"arguments": {"b": 1.0, "a": "é"}, "name": "f"}`},
		{"already an object", quoting, `{"b":1}`, `{"arguments": {"b": 1}, "name": "f"}`},
		{"nothing spelled", quoting, `""`, `{"arguments": {}, "name": "f"}`},
		{"no object", quoting, `"{broken"`, `{"arguments": "{broken", "name": "f"}`},
		{"a list", quoting, `"[1]"`, `{"arguments": "[1]", "name": "f"}`},
		{"text for a spelling template", spelled, `"{\"b\":1.0}"`, `f{"b":1.0}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := newTestPreprocessor(t, map[string]string{"chat_template.jinja": tt.template})
			for _, order := range []string{
				`"content":[{"type":"text","text":"x"},{"type":"text","text":"y"}],"tool_calls":[CALL]`,
				`"tool_calls":[CALL],"content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]`,
			} {
				message := strings.Replace(order, "CALL", `{"id":"1","type":"function","function":{"arguments":`+tt.arguments+`,"name":"f"}}`, 1)
				prepared := mustChat(t, p, `"messages":[{"role":"user","content":"u"},{"role":"assistant",`+message+`}]`)
				if got, want := text(prepared, 0), "ux\ny"+tt.want; got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}

func TestTemplateVariables(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{"chat_template.jinja": `{{ messages[0].content }}|{{ thinking }}|{{ reasoning_effort }}|` +
		`{{ documents[0].text if documents }}|{{ eos_token }}|{{ strftime_now('%Y-%m-%d') }}`})
	for members, want := range map[string]string{
		``: "Hi||||<|im_end|>|2026-03-04",
		`"chat_template_kwargs":{"thinking":true},"documents":[{"text":"d"}]`:                "Hi|True||d|<|im_end|>|2026-03-04",
		`"chat_template_kwargs":{"thinking":1},"reasoning_effort":"high"`:                    "Hi|1|high||<|im_end|>|2026-03-04",
		`"chat_template_kwargs":{},"reasoning_effort":"high"`:                                "Hi||high||<|im_end|>|2026-03-04",
		`"chat_template_kwargs":{"reasoning_effort":"low"},"reasoning_effort":"high"`:        "Hi||low||<|im_end|>|2026-03-04",
		`"chat_template_kwargs":null,"reasoning_effort":null,"documents":null`:               "Hi||||<|im_end|>|2026-03-04",
		`"reasoning_effort":"high","chat_template_kwargs":{"thinking":"yes"},"documents":[]`: "Hi|yes|high||<|im_end|>|2026-03-04",
	} {
		if got := text(mustChat(t, p, members), 0); got != want {
			t.Errorf("%s: %q, want %q", members, got, want)
		}
	}
}

func TestTemplateRefuses(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{"chat_template.jinja": `{% if messages[0].content == 'raise' %}` +
		`{{ raise_exception('Roles must alternate, please.') }}{% elif messages[0].content == 'type' %}{{ 1 + 'x' }}` +
		`{% elif messages[0].content == 'loop' %}{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}{% endif %}`})
	for content, want := range map[string]string{
		"raise": "Roles must alternate, please.",
		"type":  "cannot render these messages",
		"loop":  "limit",
		"":      "empty prompt",
	} {
		_, err := p.Chat("r", chatBody(`"messages":[{"role":"user","content":"`+content+`"}]`))
		if err == nil || err.Status != 400 || err.Param != "messages" || !strings.Contains(err.Message, want) {
			t.Errorf("%s: %+v", content, err)
		}
	}
}

func TestModelWithoutTemplate(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{"tokenizer_config.json": ""})
	_, err := p.Chat("r", chatBody(""))
	if err == nil || err.Status != 400 || err.Param != "messages" || !strings.Contains(err.Message, "no chat template") {
		t.Errorf("%+v", err)
	}
	mustComplete(t, p, "")
}

// TestLongPrompt: a prompt of many megabytes is no trouble, only too long for
// the context.
func TestLongPrompt(t *testing.T) {
	if testing.Short() {
		t.Skip("encodes 12 MiB")
	}
	p, _ := newTestPreprocessor(t, nil)
	content := strings.Repeat("the quick brown fox ", 12<<20/20)
	_, err := p.Chat("r", chatBody(`"messages":[{"role":"user","content":"`+content+`"}]`))
	if err == nil || err.Code != "context_length_exceeded" || strings.Contains(err.Message, "fox") {
		t.Errorf("%+v", err)
	}
}

func TestGoldenConversation(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "conversation.json"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "conversation.txt"))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := newTestPreprocessor(t, nil)
	prepared, apiErr := p.Chat("r", data)
	if apiErr != nil {
		t.Fatal(apiErr)
	}
	if got := text(prepared, 0); got != string(want) {
		t.Errorf("got %q", got)
	}
}

func BenchmarkChat(b *testing.B) {
	body, err := os.ReadFile(filepath.Join("testdata", "conversation.json"))
	if err != nil {
		b.Fatal(err)
	}
	p, _ := newTestPreprocessor(b, nil)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Chat("r", body); err != nil {
			b.Fatal(err)
		}
	}
}

// TestDeveloper: who has no place in the template speaks as the system, wherever the
// role stands in the message.
func TestDeveloper(t *testing.T) {
	const dropping = `{% for m in messages %}{% if m.role in ['system', 'user'] %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}`
	for template, want := range map[string]string{
		dropping: "<system>a\nb<user>u<system>c",
		`{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}`:                       "<developer>a\nb<user>u<developer>c",
		`{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}`: "u",
	} {
		p, _ := newTestPreprocessor(t, map[string]string{"chat_template.jinja": template})
		prepared := mustChat(t, p, `"messages":[{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"role":"developer"},
			{"role":"user","content":"u"},{"role":"developer","content":"c"}]`)
		if got := text(prepared, 0); got != want {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
}
