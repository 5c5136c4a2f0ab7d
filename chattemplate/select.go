package chattemplate

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrNoTemplate is returned when a model's files hold no chat template.
var ErrNoTemplate = errors.New("chat template: the model has none (no chat_template.jinja, no chat_template in tokenizer_config.json)")

// Sources are the places in which a model keeps its chat templates. Empty
// fields are files that are not there.
type Sources struct {
	TokenizerConfig json.RawMessage   // tokenizer_config.json
	Jinja           string            // chat_template.jinja
	Additional      map[string]string // additional_chat_templates/NAME.jinja, by NAME
	ProcessorJSON   json.RawMessage   // chat_template.json, the older file of multimodal models
}

// Select picks the template's source as transformers does.
//
// The files chat_template.jinja and those beside it win over the member
// chat_template of tokenizer_config.json, as a whole. That member is a template,
// or a list of named ones. Of several, requests with tools get "tool_use" if it
// is there, and everything else gets "default". The older chat_template.json,
// which transformers reads for a processor only, is asked last.
//
// The error is ErrNoTemplate, or says which file cannot be read.
func Select(s Sources, hasTools bool) (string, error) {
	templates := map[string]string{}
	maps.Copy(templates, s.Additional)
	if s.Jinja != "" {
		templates["default"] = s.Jinja
	}
	for _, file := range []struct {
		name string
		text json.RawMessage
	}{{"tokenizer_config.json", s.TokenizerConfig}, {"chat_template.json", s.ProcessorJSON}} {
		if len(templates) > 0 || len(file.text) == 0 {
			continue
		}
		var err error
		if templates, err = templatesIn(file.text); err != nil {
			return "", fmt.Errorf("chat template: %s: %w", file.name, err)
		}
	}
	if len(templates) == 0 {
		return "", ErrNoTemplate
	}
	if t, ok := templates["tool_use"]; ok && hasTools {
		return t, nil
	}
	if t, ok := templates["default"]; ok {
		return t, nil
	}
	names := slices.Sorted(maps.Keys(templates))
	return "", fmt.Errorf("chat template: the model has several and none is the default: %s", strings.Join(names, ", "))
}

// templatesIn reads the member chat_template: a text, or a list of named texts,
// or an object of them.
func templatesIn(config json.RawMessage) (map[string]string, error) {
	var file struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(config, &file); err != nil {
		return nil, err
	}
	var one *string
	if len(file.Template) == 0 || json.Unmarshal(file.Template, &one) == nil {
		if one == nil {
			return nil, nil
		}
		return map[string]string{"default": *one}, nil
	}
	var byName map[string]string
	if json.Unmarshal(file.Template, &byName) == nil {
		return byName, nil
	}
	var named []struct{ Name, Template string }
	if err := json.Unmarshal(file.Template, &named); err != nil {
		return nil, fmt.Errorf("chat_template is neither a text nor a list of named texts: %w", err)
	}
	byName = make(map[string]string, len(named))
	for _, t := range named {
		byName[t.Name] = t.Template
	}
	return byName, nil
}

// specialTokenNames are the special tokens that transformers gives to templates.
var specialTokenNames = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// SpecialTokens reads the named special tokens (bos_token, eos_token, ...) from
// tokenizer_config.json, for Input.SpecialTokens. Each is a text or an object
// with the text as its content.
func SpecialTokens(tokenizerConfig json.RawMessage) (map[string]string, error) {
	var config map[string]json.RawMessage
	if err := json.Unmarshal(tokenizerConfig, &config); err != nil {
		return nil, fmt.Errorf("chat template: tokenizer_config.json: %w", err)
	}
	tokens := map[string]string{}
	for _, name := range specialTokenNames {
		var text *string
		var object struct{ Content *string }
		switch {
		case json.Unmarshal(config[name], &text) == nil:
		case json.Unmarshal(config[name], &object) == nil:
			text = object.Content
		default:
			continue
		}
		if text != nil {
			tokens[name] = *text
		}
	}
	return tokens, nil
}
