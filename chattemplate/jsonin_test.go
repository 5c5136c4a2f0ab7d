package chattemplate

import (
	"encoding/json"
	"strings"
	"testing"
)

// Strings with every byte at every place among eight are what encoding/json makes of
// them, or an error in both.
func TestStringsAsEncodingJSON(t *testing.T) {
	for b := range 256 {
		for _, other := range []string{"a", "!", "[", "\x7f", "é", "\\\\", "\\n", "\\u00e9", "\x1f"} {
			for at := range 18 {
				text := `"` + strings.Repeat("x", at) + string(rune(b)) + strings.Repeat(other, 18-at) + `"`
				var want string
				wantErr := json.Unmarshal([]byte(text), &want)
				got, err := readText(text)
				if (err != nil) != (wantErr != nil) || got != want {
					t.Fatalf("%q is %q, %v; for encoding/json %q, %v", text, got, err, want, wantErr)
				}
			}
		}
	}
}

func readText(text string) (s string, err error) {
	defer rescue(&err)
	return readJSON("text", json.RawMessage(text)).(string), nil
}
