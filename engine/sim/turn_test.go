package sim_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/chattemplate"
	"baton/engine"
	"baton/engine/sim"
	"baton/model"
)

const toolbox = `[
	{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1,"maximum":5}},"required":["city"]}}},
	{"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{"zones":{"type":"array","items":{"type":"string"}}}}}},
	{"type":"function","function":{"name":"ping"}}]`

// What the model writes in chats with tools and thoughts, in their order: a thought,
// words, calls of the tools by name, words again.
func TestTurns(t *testing.T) {
	m, err := model.Load("sim", modelFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	const thought, words, opened = `<think>\n[^<>]+\n</think>\n\n`, `[^<>{}]+`, `[^<>]+\n</think>\n\n`
	call := func(name string) string {
		return `<tool_call>\n\{"name":"` + name + `","arguments":\{.*\}\}\n</tool_call>`
	}
	for name, c := range map[string]struct {
		messages, tools, kwargs string
		want                    string // of the whole answer
	}{
		"no chat of tools": {messages: `[{"role":"user","content":"hello"}]`, want: words},
		"a tool is drawn":  {messages: `[{"role":"user","content":"hello"}]`, tools: toolbox, want: `(` + words + `\n)?` + call(`(get_weather|get_time|ping)`)},
		"a named tool":     {messages: `[{"role":"user","content":"get_weather please"}]`, tools: toolbox, want: `(` + words + `\n)?` + call(`get_weather`)},
		"three calls": {messages: `[{"role":"user","content":"get_time, get_weather, then get_time"}]`, tools: toolbox,
			want: `(` + words + `\n)?` + call(`get_time`) + `\n` + call(`get_weather`) + `\n` + call(`get_time`)},
		"results": {messages: `[{"role":"user","content":"ping"},{"role":"assistant","tool_calls":[{"function":{"name":"ping","arguments":{}}}]},{"role":"tool","content":"pong"}]`,
			tools: toolbox, want: words},
		"the model thinks":    {messages: `[{"role":"user","content":"hello /think"}]`, want: thought + words},
		"the template thinks": {messages: `[{"role":"user","content":"hello"}]`, kwargs: `{"enable_thinking":true}`, want: opened + words},
		"nobody thinks":       {messages: `[{"role":"user","content":"hello /think"}]`, kwargs: `{"enable_thinking":false}`, want: words},
		"a thought and a call": {messages: `[{"role":"user","content":"ping"}]`, tools: toolbox, kwargs: `{"enable_thinking":true}`,
			want: opened + `(` + words + `\n)?` + `<tool_call>\n\{"name":"ping","arguments":\{\}\}\n</tool_call>`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := m.Template.Render(chattemplate.Input{Messages: json.RawMessage(c.messages), Tools: json.RawMessage(c.tools), Kwargs: json.RawMessage(c.kwargs),
				AddGenerationPrompt: true, SpecialTokens: m.SpecialTokens})
			if err != nil {
				t.Fatal(err)
			}
			config := sim.Config{Style: sim.StyleWords}
			req := &engine.Request{ID: "r", TokenIDs: m.Tokenizer.Encode(text, false), Stop: engine.StopConditions{MaxTokens: 1000}}
			whole, finish := sim.Reference(config, req)
			got := strings.TrimSuffix(sim.Detokenize(whole), "<|im_end|>")
			if finish != engine.FinishStop || !regexp.MustCompile(`^(?s)`+c.want+`$`).MatchString(got) {
				t.Fatalf("%s: %q", finish, got)
			}
			goOn := func(ids []engine.TokenID) []engine.TokenID {
				rest := *req
				rest.TokenIDs = slices.Concat(req.TokenIDs, ids)
				out, _ := sim.Reference(config, &rest)
				return out
			}
			for cut := 1; cut < len(whole); cut++ {
				if !utf8.ValidString(sim.Detokenize(whole[cut : cut+1])) {
					t.Fatalf("token %d of %q is no whole character", cut, got)
				}
				if rest := goOn(whole[:cut]); !slices.Equal(rest, whole[cut:]) {
					t.Fatalf("cut behind %q: %q", sim.Detokenize(whole[:cut]), sim.Detokenize(rest))
				}
				if cut > len(whole)-8 {
					continue // the rest is so short that it may be the same by chance
				}
				if rest := goOn(slices.Concat(whole[:cut], whole[cut-1:cut])); slices.Equal(rest, whole[cut:]) {
					t.Fatalf("%q doubled behind %q is not noticed", sim.Detokenize(whole[cut-1:cut]), sim.Detokenize(whole[:cut]))
				}
				if rest := goOn(whole[:cut-1]); slices.Equal(rest, whole[cut:]) {
					t.Fatalf("%q lost behind %q is not noticed", sim.Detokenize(whole[cut-1:cut]), sim.Detokenize(whole[:cut-1]))
				}
			}
		})
	}
}
