package preprocess

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"baton/engine"
	"baton/parser"
)

// toolTemplate teaches hermes calls and opens a thought unless it is told not to.
const toolTemplate = `{% if tools %}{{ tools | tojson }}<tool_call>{% endif %}{% for m in messages %}[{{ m.role }}]{{ m.content }}` +
	`{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{% endfor %}` +
	`{% if add_generation_prompt %}[assistant]{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% else %}<think>{% endif %}{% endif %}`

// TestReading: how an answer is read follows from the template and the request.
func TestReading(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{"tokenizer.json": unmarked(t), "chat_template.jinja": toolTemplate})
	hermes, thinks := parser.ToolByName("hermes"), parser.ReasoningByName("qwen3")
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
	for _, test := range []struct {
		name, members string
		want          parser.Options
		tail          string
	}{
		{"no tools", ``, parser.Options{Reasoning: thinks, Parallel: true}, "<think>"},
		{"not thinking", `"reasoning_effort":"none"`, parser.Options{Reasoning: thinks, Parallel: true}, "</think>"},
		{"thinking all the same", `"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true}`, parser.Options{Reasoning: thinks, Parallel: true}, "<think>"},
		{"auto", tools, parser.Options{Tool: hermes, Reasoning: thinks, Parallel: true}, "<think>"},
		{"one at a time", tools + `,"parallel_tool_calls":false`, parser.Options{Tool: hermes, Reasoning: thinks}, "<think>"},
		{"none", tools + `,"tool_choice":"none"`, parser.Options{Reasoning: thinks, Parallel: true}, "<think>"},
		{"required", tools + `,"tool_choice":"required"`, parser.Options{Tool: jsonCalls, Reasoning: thinks, Parallel: true, Constrained: true}, "<think>"},
		{"named", tools + `,"tool_choice":{"type":"function","function":{"name":"f"}}`,
			parser.Options{Named: "f", Reasoning: thinks, Parallel: true, Constrained: true}, "<think>"},
		{"a schema", `"response_format":{"type":"json_object"}`, parser.Options{Reasoning: thinks, Parallel: true, Constrained: true}, "<think>"},
		{"continued", `"continue_final_message":true,"messages":[{"role":"assistant","content":[{"type":"text","text":"<think>On"},{"type":"text","text":"ce"}]}]`,
			parser.Options{Reasoning: thinks, Parallel: true, Prefill: "<think>On\nce"}, "On\nce"},
	} {
		prepared := mustChat(t, p, test.members)
		if prepared.Read == nil {
			t.Errorf("%s: not read", test.name)
			continue
		}
		o := prepared.Read.Options
		if !strings.HasSuffix(o.PromptTail, test.tail) {
			t.Errorf("%s: the prompt ends with %q", test.name, o.PromptTail)
		}
		if got := (parser.Options{Tool: o.Tool, Reasoning: o.Reasoning, Prefill: o.Prefill, Parallel: o.Parallel, Named: o.Named, Constrained: o.Constrained}); !sameOptions(got, test.want) {
			t.Errorf("%s: read as %+v, want %+v", test.name, got, test.want)
		}
		if strings.Contains(test.members, "tools") && (len(o.Tools) != 1 || o.Tools[0].Name != "f" || string(o.Tools[0].Parameters) != `{"type":"object"}`) {
			t.Errorf("%s: tools %+v", test.name, o.Tools)
		}
	}
	if prepared := mustChat(t, p, `"guided_regex":"a+"`); prepared.Read != nil {
		t.Errorf("by a regular expression: read as %+v", prepared.Read.Options)
	}
	if prepared := mustComplete(t, p, ""); prepared.Read != nil {
		t.Error("a completion is read")
	}
}

func sameOptions(a, b parser.Options) bool {
	return a.Tool == b.Tool && a.Reasoning == b.Reasoning && a.Prefill == b.Prefill && a.Parallel == b.Parallel && a.Named == b.Named && a.Constrained == b.Constrained
}

// TestReasoningOfEarlierTurns: whatever a client calls it, the template finds it.
func TestReasoningOfEarlierTurns(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{"chat_template.jinja": `{% for m in messages %}{{ m.content }}|{{ m.reasoning_content }}|{{ m.thinking }}{% endfor %}`})
	for members, want := range map[string]string{
		`"reasoning_content":"a","content":"c"`:                  `c|a|a`,
		`"content":[{"type":"text","text":"c"}],"reasoning":"b"`: `c|b|b`,
		`"thinking":"t","content":"c"`:                           `c|t|t`,
		`"content":"c"`:                                          `c||`,
	} {
		if got := text(mustChat(t, p, `"messages":[{"role":"assistant",`+members+`}]`), 0); got != want {
			t.Errorf("%s: %q, want %q", members, got, want)
		}
	}
}

func TestTemplateWithoutTools(t *testing.T) {
	p, _ := newTestPreprocessor(t, map[string]string{"chat_template.jinja": `{% for m in messages %}{{ m.content }}{% endfor %}`})
	const tools = `"tools":[{"type":"function","function":{"name":"f"}}]`
	if _, err := p.Chat("r", chatBody(tools)); err == nil || err.Param != "tools" || !strings.Contains(err.Message, "does not show tools") {
		t.Errorf("%v", err)
	}
	mustChat(t, p, tools+`,"tool_choice":"none"`)
	if prepared := mustChat(t, p, tools+`,"tool_choice":"required"`); prepared.Read.Options.Tool != jsonCalls {
		t.Errorf("required: read as %+v", prepared.Read.Options)
	}
}

// TestThought: where tokens mark the reasoning, a constraint waits for its end.
func TestThought(t *testing.T) {
	unmarked := unmarked(t)
	with := func(first, second string) string {
		return strings.NewReplacer("<|endoftext|>", first, "<|im_start|>", second).Replace(unmarked)
	}
	const (
		first, second = 2332, 2333
		opened        = `{{ messages[0].content }}{% if tools %}{{ tools }}<tool_call>{% endif %}</think>`
		prompts       = `{% if enable_thinking is defined %}<think></think>{% else %}<think>{% endif %}`
		schema        = `"response_format":{"type":"json_object"}`
		tools         = `"tools":[{"type":"function","function":{"name":"f"}}]`
	)
	thinks, harmony := parser.ReasoningByName("qwen3"), parser.ReasoningByName("openai")
	for _, test := range []struct {
		name, vocabulary, template, members string
		thought                             *engine.Thought
		reasoning                           *parser.Format
		constrained                         bool
	}{
		{"no constraint", with("<think>", "</think>"), opened + prompts, ``, nil, thinks, false},
		{"the prompt opens it", with("<think>", "</think>"), opened + prompts, schema, &engine.Thought{Ends: []int32{second}}, thinks, false},
		{"it is off", with("<think>", "</think>"), opened + prompts, schema + `,"reasoning_effort":"none"`, nil, thinks, true},
		{"the model opens it", with("<think>", "</think>"), opened + `.`, schema, &engine.Thought{Opens: []int32{first}, Ends: []int32{second}}, thinks, false},
		{"before a call", with("<think>", "</think>"), opened + `.`, tools + `,"tool_choice":"required"`, &engine.Thought{Opens: []int32{first}, Ends: []int32{second}}, thinks, false},
		{"before no JSON", with("<think>", "</think>"), opened + `.`, `"guided_regex":"a+"`, &engine.Thought{Opens: []int32{first}, Ends: []int32{second}}, thinks, false},
		{"the answer has begun", with("<think>", "</think>"), opened + `.`, schema + `,"continue_final_message":true,"messages":[{"role":"assistant","content":"Yes"}]`, nil, thinks, true},
		{"no token marks it", unmarked, opened + `.`, schema, nil, thinks, true},
		{"no token marks it, and no JSON follows", unmarked, opened + `.`, `"guided_regex":"a+"`, nil, nil, false},
		{"messages", with("<|channel|>", "<|message|>"), `{{ messages[0].content }}<|start|>assistant{% if false %}<|channel|>{% endif %}`, schema,
			&engine.Thought{Ends: []int32{first, finalID(t), second}}, harmony, false},
		{"messages, and a call that is required", with("<|channel|>", "<|message|>"), `{{ messages[0].content }}{{ tools }}<|start|>assistant{% if false %}<|channel|>{% endif %}`,
			tools + `,"tool_choice":"required"`, nil, nil, true},
	} {
		p, _ := newTestPreprocessor(t, map[string]string{"tokenizer.json": test.vocabulary, "chat_template.jinja": test.template})
		prepared := mustChat(t, p, test.members)
		var got parser.Options
		if prepared.Read != nil {
			got = prepared.Read.Options
		}
		if thought := prepared.Choices[0].Request.Tokens.Thought; !reflect.DeepEqual(thought, test.thought) || got.Reasoning != test.reasoning || got.Constrained != test.constrained {
			t.Errorf("%s: %+v, read as %+v", test.name, thought, got)
		}
		// The parser needs the text of markers that are special tokens.
		keep := slices.Sorted(slices.Values(prepared.Choices[0].Request.KeepSpecial))
		var want []int32
		if prepared.Read != nil && test.vocabulary != unmarked {
			want = []int32{first, second}
		}
		if !slices.Equal(keep, want) {
			t.Errorf("%s: the text of %v is kept, want %v", test.name, keep, want)
		}
	}
}

// unmarked is the vocabulary of the simulated workers without the tokens that mark a
// thought.
func unmarked(t *testing.T) string {
	t.Helper()
	vocabulary, err := os.ReadFile(filepath.Join(simFolder, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("<think>", "<a>", "</think>", "<b>").Replace(string(vocabulary))
}

// finalID is the word "final" in the vocabulary of the simulated workers.
func finalID(t *testing.T) int32 {
	t.Helper()
	p, _ := newTestPreprocessor(t, nil)
	m, _ := p.models.Get("m")
	id, ok := m.Tokenizer.ID("final")
	if !ok {
		t.Fatal("no such word")
	}
	return id
}
