package server

import (
	"encoding/json"
	"strings"
	"testing"

	"baton/backend"
)

// TestOutputLogprobsAreThoseOfTheText: what the syntax before it happens to hold is not
// taken for it.
func TestOutputLogprobsAreThoseOfTheText(t *testing.T) {
	for _, test := range []struct{ tokens, shown, want string }{
		{"</think>|think", "think", "think"},
		{"</think>|\n\n|a| think|</", "\n\n|a| think", "\n\n|a| think"},
		{"<tool_call>|a|<", "a", "a"},
		{"x>\n\nHello| you", "Hello| you", "x>\n\nHello| you"}, // a token with syntax and text
		{"a|b|c", "ab|c", "a|b|c"},
	} {
		l := &outputLogprobs{}
		for token := range strings.SplitSeq(test.tokens, "|") {
			l.add([]backend.Logprob{{Token: []byte(token), Logprob: -1}})
		}
		var got []string
		for text := range strings.SplitSeq(test.shown, "|") {
			var entries []struct{ Token string }
			if err := json.Unmarshal([]byte("["+string(l.take([]byte(text), messageItem))+"]"), &entries); err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				got = append(got, e.Token)
			}
		}
		if strings.Join(got, "|") != test.want {
			t.Errorf("%q, of which %q is shown: the tokens %q, want %q", test.tokens, test.shown, got, test.want)
		}
	}
}
