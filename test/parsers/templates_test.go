// Package parsers tests package parser with the chat templates of real models, which
// teach a model what to write: what a template makes of a call must be read as that call.
package parsers

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"baton/chattemplate"
	"baton/parser"
)

var update = flag.Bool("update", false, "rewrite testdata/templates.txt")

const table = "testdata/templates.txt"

// The templates are those that test/models fetches. For each the table has the
// formats that it teaches, and how many of two calls, as the template itself
// writes them, are read: "-" if it teaches none or cannot render them.
func TestTemplates(t *testing.T) {
	templates := fetched(t)
	if *update {
		writeTable(t, templates)
	}
	want, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(want)) {
		name, read, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if strings.HasPrefix(name, "#") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			source, there := templates[name]
			if !there {
				if os.Getenv("BATON_REQUIRE_MODELS") == "1" {
					t.Fatal("this template is not there (run test/models/record-templates-fetch.sh)")
				}
				t.Skip("this template is not there; test/models/record-templates-fetch.sh fetches it")
			}
			if got := describe(source); got != strings.TrimSpace(read) {
				t.Errorf("got %s, want %s", got, strings.TrimSpace(read))
			}
		})
	}
}

// fetched returns the chat templates of the models folder by name.
func fetched(t *testing.T) map[string]string {
	folder := os.Getenv("BATON_MODELS")
	if folder == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			folder = filepath.Join(cache, "baton", "models")
		}
	}
	all := map[string]string{}
	for name, pattern := range map[string]string{"llama.cpp": "gguf/templates/*.jinja", "jinja": ".templates/*.jinja"} {
		files, err := filepath.Glob(filepath.Join(folder, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[name+"/"+strings.TrimSuffix(filepath.Base(file), ".jinja")] = string(source)
		}
	}
	configs, err := filepath.Glob(filepath.Join(folder, "*", "tokenizer_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range configs {
		config, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if source, err := chattemplate.Select(chattemplate.Sources{TokenizerConfig: config}, true); err == nil && source != "" {
			all["tokenizer/"+filepath.Base(filepath.Dir(file))] = source
		}
	}
	return all
}

func writeTable(t *testing.T, templates map[string]string) {
	var lines []string
	for name, source := range templates {
		lines = append(lines, fmt.Sprintf("%-62s %s\n", name, describe(source)))
	}
	slices.Sort(lines)
	text := "# template, format of calls, format of reasoning, how many of two calls are read\n" + strings.Join(lines, "")
	if err := os.WriteFile(table, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func describe(source string) string {
	tool, reasoning := parser.DetectTool(source), parser.DetectReasoning(source)
	calls := "-"
	if tool != nil {
		calls = readBack(source, tool, reasoning)
	}
	return fmt.Sprintf("%-16s %-14s %s", name(tool), name(reasoning), calls)
}

func name(f *parser.Format) string {
	if f == nil {
		return "-"
	}
	return f.Name
}

// What is called: with a string that needs care in every notation, and each type.
var (
	tools = json.RawMessage(`[
		{"type":"function","function":{"name":"get_weather","description":"the weather","parameters":{"type":"object","properties":{
			"city":{"type":"string","description":"where"},"days":{"type":"integer","description":"how long"}},"required":["city"]}}},
		{"type":"function","function":{"name":"search","description":"a search","parameters":{"type":"object","properties":{
			"query":{"type":"string","description":"what"},"exact":{"type":"boolean","description":"how"},
			"tags":{"type":"array","description":"which","items":{"type":"string"}},
			"filter":{"type":"object","description":"what not","properties":{}}},"required":["query"]}}}]`)
	arguments = []string{
		`{"city":"Zürich","days":3}`,
		`{"query":"a < b & \"c\"","exact":true,"tags":["x","y"],"filter":{"n":1.5}}`,
	}
	names = []string{"get_weather", "search"}
)

// readBack lets the template write an answer with two calls, and reads that.
func readBack(source string, tool, reasoning *parser.Format) string {
	template, err := chattemplate.Parse(source)
	if err != nil {
		return "-"
	}
	opt := parser.Options{Tool: tool, Reasoning: reasoning, Parallel: true, Tools: []parser.Tool{
		{Name: names[0], Parameters: schema(0)}, {Name: names[1], Parameters: schema(1)}}}
	// Some templates want the arguments as an object, some as JSON text, some the content
	// as "" and some none; some can write only one call a message.
	for _, calls := range []int{2, 1} {
		for variant := range 4 {
			prompt, answer, ok := render(template, calls, variant&1 != 0, variant&2 != 0)
			if !ok {
				continue
			}
			opt.PromptTail = prompt
			if read(opt, answer, calls) {
				return fmt.Sprint(calls)
			}
			if os.Getenv("BATON_SHOW") != "" {
				fmt.Printf("%s: prompt ends %q\nanswer %q\n", tool.Name, prompt[max(0, len(prompt)-60):], answer)
			}
		}
	}
	return "-"
}

func schema(i int) json.RawMessage {
	var all []struct {
		Function struct{ Parameters json.RawMessage }
	}
	if json.Unmarshal(tools, &all) != nil {
		panic("the tools are no JSON")
	}
	return all[i].Function.Parameters
}

// render returns the prompt of a question, and what the template writes as its answer.
func render(template *chattemplate.Template, calls int, quote, null bool) (prompt, answer string, ok bool) {
	var written []any
	for i := range calls {
		var value any = json.RawMessage(arguments[i])
		if quote {
			value = arguments[i]
		}
		written = append(written, map[string]any{"id": fmt.Sprintf("%09d", i+1), "type": "function",
			"function": map[string]any{"name": names[i], "arguments": value}})
	}
	question := map[string]any{"role": "user", "content": "How is the weather?"}
	in := chattemplate.Input{Tools: tools, Normalize: true, Now: time.Date(2026, 3, 5, 14, 7, 9, 0, time.UTC),
		SpecialTokens: map[string]string{"bos_token": "<s>", "eos_token": "</s>"}}
	message := map[string]any{"role": "assistant", "content": "", "tool_calls": written}
	if null {
		message["content"] = nil
		in.Normalize = false
	}
	whole, err := json.Marshal([]any{question, message})
	if err != nil {
		panic(err)
	}
	in.Messages = whole
	history, err := template.Render(in)
	if err != nil {
		if os.Getenv("BATON_SHOW") != "" {
			fmt.Println("prompt ends:", err)
		}
		return "", "", false
	}
	in.Messages, _ = json.Marshal([]any{question})
	in.AddGenerationPrompt = true
	prompt, err = template.Render(in)
	if err != nil {
		return "", "", false
	}
	same := 0
	for same < min(len(prompt), len(history)) && prompt[same] == history[same] {
		same++
	}
	if same < len(prompt) { // the prompt opens a marker, and the answer another one
		if at := strings.LastIndexByte(prompt[:same], '<'); at > same-len("<|START_THINKING|>") {
			same = at
		}
	}
	return prompt[:same], history[same:], true
}

// read reports whether the calls are read from the answer, whole.
func read(opt parser.Options, answer string, calls int) bool {
	var got []string
	var text strings.Builder
	emit := func(e parser.Event) {
		switch e.Kind {
		case parser.Call:
			got = append(got, e.Name+" ")
		case parser.Arguments:
			got[e.Index] += string(e.Text)
		case parser.Content:
			text.Write(e.Text)
		}
	}
	p := parser.New(opt)
	p.Feed([]byte(answer), emit)
	p.Finish(emit)
	if len(got) != calls || strings.Contains(text.String(), "Zürich") {
		return false
	}
	for i, call := range got {
		called, written, _ := strings.Cut(call, " ")
		var is, want any
		if json.Unmarshal([]byte(written), &is) != nil || json.Unmarshal([]byte(arguments[i]), &want) != nil ||
			called != names[i] || !reflect.DeepEqual(is, want) {
			return false
		}
	}
	return true
}
