package tokenizer

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
)

// A smallCase is a made-up tokenizer and what the reference library made of
// some texts with it (test/models/record-small.mjs).
type smallCase struct {
	Name    string                     `json:"name"`
	Base    string                     `json:"base"`
	Set     map[string]json.RawMessage `json:"set"`
	Model   map[string]json.RawMessage `json:"model"`
	Encoded []struct {
		Text         string
		IDs, Special []int32
	} `json:"encoded"`
	Decoded []struct {
		IDs           []int32
		Text, Skipped string
	} `json:"decoded"`
	file []byte
}

var loadSmall = sync.OnceValues(func() ([]smallCase, error) {
	data, err := os.ReadFile("testdata/small.json")
	if err != nil {
		return nil, err
	}
	var all struct {
		Bases map[string]map[string]json.RawMessage
		Cases []smallCase
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	for i := range all.Cases {
		c := &all.Cases[i]
		file := maps.Clone(all.Bases[c.Base])
		maps.Copy(file, c.Set)
		if c.Model != nil {
			var model map[string]json.RawMessage
			if err := json.Unmarshal(file["model"], &model); err != nil {
				return nil, err
			}
			maps.Copy(model, c.Model)
			if file["model"], err = json.Marshal(model); err != nil {
				return nil, err
			}
		}
		if c.file, err = json.Marshal(file); err != nil {
			return nil, err
		}
	}
	return all.Cases, nil
})

func smallCases(tb testing.TB) []smallCase {
	tb.Helper()
	cases, err := loadSmall()
	if err != nil {
		tb.Fatal(err)
	}
	return cases
}

// small returns the made-up tokenizer of that name.
func small(tb testing.TB, name string) *Tokenizer {
	tb.Helper()
	for _, c := range smallCases(tb) {
		if c.Name == name {
			tok, err := Parse(c.file)
			if err != nil {
				tb.Fatal(err)
			}
			return tok
		}
	}
	tb.Fatalf("no small tokenizer is named %q", name)
	return nil
}

func TestSmallTokenizers(t *testing.T) {
	for _, c := range smallCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			tok, err := Parse(c.file)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range c.Encoded {
				if got := tok.Encode(e.Text, false); !slices.Equal(got, e.IDs) {
					t.Errorf("Encode(%q) = %v, the reference gives %v", e.Text, got, e.IDs)
				}
				if got := tok.Encode(e.Text, true); !slices.Equal(got, e.Special) {
					t.Errorf("Encode(%q) with special tokens = %v, the reference gives %v", e.Text, got, e.Special)
				}
			}
			for _, d := range c.Decoded {
				if got := decode(t, tok, d.IDs, false); got != d.Text {
					t.Errorf("Decode(%v) = %q, the reference gives %q", d.IDs, got, d.Text)
				}
				if got := decode(t, tok, d.IDs, true); got != d.Skipped {
					t.Errorf("Decode(%v) without special tokens = %q, the reference gives %q", d.IDs, got, d.Skipped)
				}
			}
		})
	}
}
