package parser

import "testing"

// TestCut: an answer that ends inside a call's arguments says so.
func TestCut(t *testing.T) {
	for _, test := range []struct {
		format, text string
		parallel     bool
		want         bool
	}{
		{"hermes", `<tool_call>{"name": "f", "arguments": {"a": 1`, true, true},
		{"hermes", `<tool_call>{"name": "f", "arguments": {"a": 1}`, true, false},
		{"hermes", `<tool_call>{"name": "f"`, true, false},
		{"hermes", `a text`, true, false},
		{"hermes", `<tool_call>{"name": "f", "arguments": {}}</tool_call><tool_call>{"name": "g", "arguments": {"a`, true, true},
		{"hermes", `<tool_call>{"name": "f", "arguments": {}}</tool_call><tool_call>{"name": "g", "arguments": {"a`, false, false},
		{"qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\nx", true, true},
		{"qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>", true, false},
		{"pythonic", `[f(a="x`, true, true},
		{"pythonic", `[f(a="x")`, true, false},
		{"openai", `<|channel|>commentary to=functions.f<|message|>{"a": {"b": 1}`, true, true},
		{"openai", `<|channel|>commentary to=functions.f<|message|>{"a": {"b": 1}}`, true, false}, // <|call|> is an end of the answer
		{"openai", `<|channel|>commentary to=functions.f<|message|>{"a": 1}<|call|>`, true, false},
	} {
		p := New(Options{Tool: ToolByName(test.format), Tools: []Tool{{Name: "f"}, {Name: "g"}}, Parallel: test.parallel})
		p.Feed([]byte(test.text), func(Event) {})
		p.Finish(func(Event) {})
		if p.Cut() != test.want {
			t.Errorf("%s, %s: cut %v", test.format, test.text, p.Cut())
		}
	}
}
