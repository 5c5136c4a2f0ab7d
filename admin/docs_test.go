package admin

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The examples in the documentation are what this version answers.
func TestExamplesInTheDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, block := range strings.Split(string(text), "```json\n")[1:] {
		example, _, _ := strings.Cut(block, "```")
		fits := false
		for _, reply := range []any{&WorkersReply{}, &RequestsReply{}, &Drained{}, &envelope{}, &Level{}} {
			dec := json.NewDecoder(strings.NewReader(example))
			dec.DisallowUnknownFields()
			if dec.Decode(reply) != nil {
				continue
			}
			again, err := json.Marshal(reply)
			fits = fits || err == nil && string(again) == compact(example)
		}
		if !fits {
			t.Errorf("no reply looks like this:\n%s", example)
		}
		seen++
	}
	if seen != 5 {
		t.Errorf("%d examples, want one of each reply and one of an error", seen)
	}
}

// compact takes the line breaks and the blanks after them out.
func compact(example string) string {
	var b strings.Builder
	for line := range strings.Lines(example) {
		b.WriteString(strings.TrimSpace(line))
	}
	return b.String()
}
