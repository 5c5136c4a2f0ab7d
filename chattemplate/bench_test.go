package chattemplate

import (
	"encoding/json"
	"fmt"
	"testing"
)

// The benchmarks render what a server renders: the JSON of a request, in the
// manner of Llama 3.1 (headers.jinja) and of a model with tools (tools.jinja).

func conversationOf(turns int) json.RawMessage {
	messages := []map[string]any{{"role": "system", "content": "You are a helpful assistant."}}
	for i := 1; i < turns; i++ {
		role, text := "user", fmt.Sprintf("Question %d: what do the following lines say, and why?\nlorem ipsum dolor sit amet", i)
		if i%2 == 0 {
			role, text = "assistant", fmt.Sprintf("Answer %d. They say \"nothing\", as such lines do, since they only fill the page.", i)
		}
		messages = append(messages, map[string]any{"role": role, "content": text})
	}
	raw, err := json.Marshal(messages)
	if err != nil {
		panic(err)
	}
	return raw
}

func toolsOf(n int) json.RawMessage {
	tools := make([]json.RawMessage, n)
	for i := range tools {
		tools[i] = json.RawMessage(fmt.Sprintf(`{"type":"function","function":{"name":"tool_%d","description":"Does \"this\" and that.","parameters":{"type":"object","properties":{"location":{"type":"string","description":"The city"},"unit":{"type":"string","enum":["celsius","fahrenheit"]},"days":{"type":"integer","default":3},"precision":{"type":"number","default":0.5}},"required":["location"]}}}`, i))
	}
	raw, err := json.Marshal(tools)
	if err != nil {
		panic(err)
	}
	return raw
}

func BenchmarkRender(b *testing.B) {
	tokens := map[string]string{"bos_token": "<s>", "eos_token": "</s>"}
	for _, c := range []struct {
		name, template string
		in             Input
	}{
		{"4 turns", "headers.jinja", Input{Messages: conversationOf(4)}},
		{"41 turns", "headers.jinja", Input{Messages: conversationOf(41)}},
		{"12 tools, JSON", "headers.jinja", Input{Messages: conversationOf(4), Tools: toolsOf(12)}},
		{"12 tools, macros", "tools.jinja", Input{Messages: conversationOf(4), Tools: toolsOf(12)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			template, err := Parse(ownTemplate(b, c.template))
			if err != nil {
				b.Fatal(err)
			}
			c.in.AddGenerationPrompt, c.in.SpecialTokens, c.in.Now = true, tokens, clock
			text, err := template.Render(c.in)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := template.Render(c.in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	source := ownTemplate(b, "tools.jinja")
	b.SetBytes(int64(len(source)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(source); err != nil {
			b.Fatal(err)
		}
	}
}
