package model

import (
	"slices"
	"strings"
	"testing"

	"baton/chattemplate"
	"baton/parser"
	"baton/tokenizer"
)

const thinkingHermes = `{% for m in messages %}{{ m.content }}{% endfor %}{{ tools }}<tool_call></tool_call>{% if add_generation_prompt %}<think>{% endif %}</think>`

// TestFormats: the template decides, and the flags before it, each for its model.
func TestFormats(t *testing.T) {
	template, err := chattemplate.Parse(thinkingHermes)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Parse([]byte(`{"model":{"type":"BPE","vocab":{"a":0,"<think>":1,"</think>":2,"<tool_call>":3,"</tool_call>":4},"merges":[]},
		"added_tokens":[{"id":1,"content":"<think>","special":true},{"id":2,"content":"</think>","special":true},
		{"id":3,"content":"<tool_call>","special":false},{"id":4,"content":"</tool_call>","special":true}]}`))
	if err != nil {
		t.Fatal(err)
	}
	base := &Model{Tokenizer: tok, Template: template}
	for _, test := range []struct {
		name            string
		options         Options
		tool, reasoning string
		markers         []int32
		byFlag          bool
	}{
		{"auto", Options{}, "hermes", "qwen3", []int32{4, 1, 2}, false},
		{"none", Options{ToolCallParsers: map[string]string{"": "none"}, ReasoningParsers: map[string]string{"m": "none"}}, "", "", nil, false},
		{"by alias", Options{ToolCallParsers: map[string]string{"m": "qwen25"}, ReasoningParsers: map[string]string{"": "none", "m": "deepseek_r1"}}, "hermes", "deepseek_r1", []int32{4, 1, 2}, true},
		{"another model's", Options{ToolCallParsers: map[string]string{"x": "mistral"}}, "hermes", "qwen3", []int32{4, 1, 2}, false},
	} {
		if err := test.options.checkParsers(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		f := base.named("m", &test.options).Formats
		if formatName(f.Tool) != test.tool || formatName(f.Reasoning) != test.reasoning || f.ToolByFlag != test.byFlag || !slices.Equal(f.Markers, test.markers) {
			t.Errorf("%s: %s, %s, %v, %v", test.name, formatName(f.Tool), formatName(f.Reasoning), f.ToolByFlag, f.Markers)
		}
		if f.Reasoning != nil && (!slices.Equal(f.Opens, []int32{1}) || !slices.Equal(f.Closes, []int32{2})) {
			t.Errorf("%s: opens %v, closes %v", test.name, f.Opens, f.Closes)
		}
	}
	wrong := Options{ReasoningParsers: map[string]string{"m": "thinker"}}
	if err := wrong.checkParsers(); err == nil || !strings.Contains(err.Error(), "--reasoning-parser m=thinker: no such parser; there are auto, none, ") || !strings.Contains(err.Error(), "qwen3") {
		t.Errorf("%v", err)
	}
}

func formatName(f *parser.Format) string {
	if f == nil {
		return ""
	}
	return f.Name
}
