package parser

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"baton/test/golden"
)

//go:generate go test -run TestParsersDoc -update .

func TestParsersDoc(t *testing.T) {
	golden.Check(t, filepath.Join("..", "docs", "parsers.md"), string(markdown(t)), *update, "go generate ./parser")
}

// markdown is docs/parsers.md.
func markdown(t *testing.T) []byte {
	var b bytes.Buffer
	b.WriteString(markdownIntro)
	b.WriteString("## `--tool-call-parser`\n\n")
	writeTable(&b, ToolFormats())
	b.WriteString("\n## `--reasoning-parser`\n\n")
	writeTable(&b, ReasoningFormats())
	b.WriteString(markdownRules)
	for _, f := range ToolFormats() {
		fmt.Fprintf(&b, "\n`%s`\n\n````\n%s\n````\n", f.Name, example(t, f, "example"))
	}
	b.WriteString("\n## Examples of reasoning\n\nWhere the opening marker is missing the prompt has it: the template opened the thought.\n")
	for _, f := range ReasoningFormats() {
		fmt.Fprintf(&b, "\n`%s`\n\n````\n%s\n````\n", f.Name, example(t, f, "example-reasoning"))
	}
	return b.Bytes()
}

func writeTable(b *bytes.Buffer, formats []*Format) {
	b.WriteString("| name | also called | models | chosen when the template says |\n|---|---|---|---|\n")
	for _, f := range formats {
		said := quoteAll(f.taught, " and ")
		switch {
		case said == "":
			said = "never by itself"
		case len(f.unlike) > 0:
			said += ", but not " + quoteAll(f.unlike, " or ")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", f.Name, quoteAll(f.Aliases, ", "), f.Families, said)
	}
}

func quoteAll(texts []string, between string) string {
	var all []string
	for _, text := range texts {
		quote := "`"
		if strings.Contains(text, quote) {
			quote = "```` "
			text += " "
		}
		all = append(all, quote+strings.ReplaceAll(text, "|", `\|`)+strings.TrimSpace(quote))
	}
	return strings.Join(all, between)
}

// example is the recorded answer that shows a format: testdata/NAME/example.txt.
func example(t *testing.T, f *Format, name string) string {
	text, err := os.ReadFile(filepath.Join("testdata", f.Name, name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "--- output\n")
	output, _, _ := strings.Cut(rest, "\n--- events\n")
	return strings.Trim(output, "\n")
}

const markdownIntro = "# Tool calls and reasoning in what a model writes\n" + `
Generated from ` + "`parser/` by `go generate ./parser`" + `; a test fails when this file is stale.

A model writes tool calls and reasoning as text, in the way that its chat template taught it. baton reads that text once,
above migration, so that a worker's death in the middle of a call does not show, and sends ` + "`tool_calls`" + ` and the reasoning
as they come. Which of the formats below a model has is found in its chat template: the first format of a table of which
the template says all texts is taken. ` + "`--tool-call-parser` and `--reasoning-parser`" + ` choose another one by its name, or none.
The names are vLLM's; Dynamo's are among the others.

`

const markdownRules = `
## Rules

* Events are append-only and the same however the tokens are cut. A call is given out when its name and the beginning of its
  arguments were read; then the arguments are streamed.
* No answer is an error. What begins like a call and is none is text, in full. What begins as a call and goes wrong later
  stays one: its arguments are then what the model wrote, which may be no whole JSON. So is a call that ` + "`max_tokens`" + ` cuts off.
* Behind a marker that only calls have, a call of a name that the request does not offer is given all the same, as in vLLM. In
  ` + "`llama3_json`, `pythonic`, `llama4_pythonic`, `xlam` and `json`" + `, whose calls can begin without a marker, and inside reasoning it is text.
* Calls without a marker are found at the beginning of the content only.
* A call inside reasoning ends the reasoning, as in vLLM. Reasoning is never given out behind content: a marker that opens
  it counts before the first content or call only. In gpt-oss's format every message says itself what it is.
* ` + "`qwen3_coder`, `seed_oss`, `glm45`, `minimax_m2` and `step3`" + ` write values without quotes: the tool's schema says what they are, and
  what does not fit its type is a string. Where the schema says nothing it is a string, in ` + "`glm45`" + ` whatever JSON it is.
* A stretch between markers, or between calls, that is nothing but white space is dropped. All other text is as the model wrote it, with the
  white space at its ends: behind ` + "`</think>`" + ` Qwen 3 leaves a blank line, so its content begins with one, as in vLLM. Consecutive messages of gpt-oss of one kind are on lines of their own.
* With ` + "`parallel_tool_calls: false`" + ` calls after the first are dropped.
* An answer that must be JSON (` + "`response_format`, `tool_choice` required or a name" + `) may be begun at once by an engine although the
  prompt opened the reasoning: if its first character is one of ` + "`" + `{["` + "`" + ` or a digit it is no reasoning.

## Examples of calls
`
