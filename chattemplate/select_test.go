package chattemplate

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
)

func TestSelect(t *testing.T) {
	config := func(template string) json.RawMessage {
		return json.RawMessage(`{"bos_token":"<s>","chat_template":` + template + `}`)
	}
	several := config(`[{"name":"default","template":"D"},{"name":"tool_use","template":"T"},{"name":"rag","template":"R"}]`)
	for name, c := range map[string]struct {
		sources     Sources
		plain, tool string // what is picked without and with tools; or the start of the error
	}{
		"text":                          {Sources{TokenizerConfig: config(`"C"`)}, "C", "C"},
		"list":                          {Sources{TokenizerConfig: several}, "D", "T"},
		"list without tool_use":         {Sources{TokenizerConfig: config(`[{"name":"default","template":"D"}]`)}, "D", "D"},
		"object":                        {Sources{TokenizerConfig: config(`{"default":"D","tool_use":"T"}`)}, "D", "T"},
		"list without default":          {Sources{TokenizerConfig: config(`[{"name":"tool_use","template":"T"},{"name":"a","template":"A"}]`)}, "error: chat template: the model has several and none is the default: a, tool_use", "T"},
		"file over config":              {Sources{TokenizerConfig: several, Jinja: "J"}, "J", "J"},
		"files over config":             {Sources{TokenizerConfig: several, Jinja: "J", Additional: map[string]string{"tool_use": "A"}}, "J", "A"},
		"additional files only":         {Sources{TokenizerConfig: several, Additional: map[string]string{"tool_use": "A"}}, "error: chat template: the model has several", "A"},
		"older file":                    {Sources{ProcessorJSON: json.RawMessage(`{"chat_template":"P"}`)}, "P", "P"},
		"config over older file":        {Sources{TokenizerConfig: config(`"C"`), ProcessorJSON: json.RawMessage(`{"chat_template":"P"}`)}, "C", "C"},
		"older file, config without":    {Sources{TokenizerConfig: json.RawMessage(`{}`), ProcessorJSON: json.RawMessage(`{"chat_template":"P"}`)}, "P", "P"},
		"null":                          {Sources{TokenizerConfig: config(`null`)}, "error: chat template: the model has none", "error: chat template: the model has none"},
		"nothing":                       {Sources{}, "error: chat template: the model has none", "error: chat template: the model has none"},
		"config that is none":           {Sources{TokenizerConfig: json.RawMessage(`{`)}, "error: chat template: tokenizer_config.json: ", "error: chat template: tokenizer_config.json: "},
		"template that is none":         {Sources{TokenizerConfig: config(`5`)}, "error: chat template: tokenizer_config.json: chat_template is neither", "error: chat template: tokenizer_config.json: "},
		"broken config, but not needed": {Sources{TokenizerConfig: json.RawMessage(`{`), Jinja: "J"}, "J", "J"},
	} {
		t.Run(name, func(t *testing.T) {
			for hasTools, want := range map[bool]string{false: c.plain, true: c.tool} {
				got, err := Select(c.sources, hasTools)
				if wantErr, ok := strings.CutPrefix(want, "error: "); ok {
					if err == nil || !strings.HasPrefix(err.Error(), wantErr) {
						t.Errorf("tools %v: got %q, %v, want the error %q", hasTools, got, err, wantErr)
					}
				} else if got != want || err != nil {
					t.Errorf("tools %v: got %q, %v, want %q", hasTools, got, err, want)
				}
			}
		})
	}
	if _, err := Select(Sources{}, false); !errors.Is(err, ErrNoTemplate) {
		t.Errorf("got %v", err)
	}
}

func TestSpecialTokens(t *testing.T) {
	got, err := SpecialTokens(json.RawMessage(`{
		"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "pad_token": null,
		"unk_token": "", "extra": "x", "add_bos_token": true, "sep_token": 5, "mask_token": {}}`))
	want := map[string]string{"bos_token": "<s>", "eos_token": "</s>", "unk_token": ""}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if _, err := SpecialTokens(json.RawMessage(`[]`)); err == nil {
		t.Error("no error for an array")
	}
}
