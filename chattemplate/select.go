package chattemplate

import (
	"encoding/json"
	"errors"
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
func Select(s Sources, hasTools bool) (string, error) { return "", ErrNoTemplate }

// SpecialTokens reads the named special tokens (bos_token, eos_token, ...) from
// tokenizer_config.json, for Input.SpecialTokens.
func SpecialTokens(tokenizerConfig json.RawMessage) (map[string]string, error) { return nil, nil }
