package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"baton/chattemplate"
)

// loadFolder reads a model folder as transformers writes it. tokenizer.json must
// be there; every other file may be missing.
func loadFolder(dir string, shared *tokenizers) (*Model, error) {
	files, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	tok, err := shared.parse(files.tokenizer)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, tokenizerFile), err)
	}
	m := &Model{Tokenizer: tok}
	if err := m.addTemplates(dir, files); err != nil {
		return nil, err
	}

	var cfg config
	if err := files.decode(dir, configFile, &cfg); err != nil {
		return nil, err
	}
	m.ContextLength = cfg.contextLength()
	m.VocabSize = max(cfg.vocabSize(), tok.Size())

	var gen generationConfig
	if err := files.decode(dir, generationConfigFile, &gen); err != nil {
		return nil, err
	}
	if m.Defaults, err = gen.defaults(); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, generationConfigFile), err)
	}

	// As vLLM: the tokenizer's own end token, and those of generation_config.json;
	// config.json speaks only where there is no generation_config.json.
	if id, ok := tok.ID(m.SpecialTokens["eos_token"]); ok {
		m.addEOS(id)
	}
	if files.content[generationConfigFile] != nil {
		m.addEOS(gen.EOS...)
	} else {
		m.addEOS(cfg.EOS...)
		m.addEOS(cfg.Text.eos()...)
	}
	return m, nil
}

// addEOS adds end ids that are in the vocabulary and not there yet.
func (m *Model) addEOS(ids ...int32) {
	for _, id := range ids {
		if id >= 0 && int(id) < m.VocabSize && !slices.Contains(m.EOS, id) {
			m.EOS = append(m.EOS, id)
		}
	}
}

const (
	tokenizerFile        = "tokenizer.json"
	tokenizerConfigFile  = "tokenizer_config.json"
	configFile           = "config.json"
	generationConfigFile = "generation_config.json"
	templateFile         = "chat_template.jinja"
	processorFile        = "chat_template.json"
	adapterFile          = "adapter_config.json"
	additionalDir        = "additional_chat_templates"
)

// folder is the content of a model folder's files.
type folder struct {
	tokenizer  []byte
	content    map[string][]byte // the JSON files and the template; absent = not there
	additional map[string]string // the named templates, by name
}

func readFolder(dir string) (*folder, error) {
	f := &folder{content: make(map[string][]byte), additional: make(map[string]string)}
	var err error
	if f.tokenizer, err = readFile(filepath.Join(dir, tokenizerFile)); err != nil {
		return nil, err
	}
	if f.tokenizer == nil {
		return nil, noTokenizer(dir)
	}
	for _, name := range []string{tokenizerConfigFile, configFile, generationConfigFile, templateFile, processorFile} {
		data, err := readFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		if data != nil {
			f.content[name] = data
		}
	}
	named, err := filepath.Glob(filepath.Join(dir, additionalDir, "*.jinja"))
	if err != nil {
		return nil, err
	}
	for _, path := range named {
		data, err := readFile(path)
		if err != nil {
			return nil, err
		}
		f.additional[strings.TrimSuffix(filepath.Base(path), ".jinja")] = string(data)
	}
	return f, nil
}

// noTokenizer says what a folder without a tokenizer.json has instead.
func noTokenizer(dir string) error {
	missing := fmt.Sprintf("%s has no %s", dir, tokenizerFile)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", missing, err)
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasSuffix(strings.ToLower(name), ".gguf"):
			return fmt.Errorf("%s, but a .gguf file; give that itself: %s", missing, filepath.Join(dir, name))
		case name == "tokenizer.model" || name == "tekken.json":
			return fmt.Errorf("%s, only %s, which is another format; write the folder again with save_pretrained of a fast tokenizer", missing, name)
		}
	}
	return fmt.Errorf("%s; give the folder that holds the model's tokenizer files, or a .gguf file", missing)
}

// decode reads one of the JSON files into v and leaves v alone if there is none.
func (f *folder) decode(dir, name string, v any) error {
	data := f.content[name]
	if data == nil {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w; the file is damaged or of another kind, fetch it again", filepath.Join(dir, name), err)
	}
	return nil
}

// addTemplates compiles the folder's chat templates.
func (m *Model) addTemplates(dir string, f *folder) error {
	if f.content[tokenizerConfigFile] != nil {
		special, err := chattemplate.SpecialTokens(f.content[tokenizerConfigFile])
		if err != nil {
			return fmt.Errorf("%s: %w; the file is damaged, fetch it again", dir, err)
		}
		m.SpecialTokens = special
	}

	sources := chattemplate.Sources{
		TokenizerConfig: f.content[tokenizerConfigFile],
		Jinja:           string(f.content[templateFile]),
		Additional:      f.additional,
		ProcessorJSON:   f.content[processorFile],
	}
	plain, err := chattemplate.Select(sources, false)
	switch {
	case errors.Is(err, chattemplate.ErrNoTemplate):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", dir, err)
	}
	where := filepath.Join(dir, sourceFile(sources, plain))
	if m.Template, err = parseTemplate(plain, where); err != nil {
		return err
	}

	tools, err := chattemplate.Select(sources, true)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	if tools != plain {
		m.ToolTemplate, err = parseTemplate(tools, where+" (the template for tools)")
	}
	return err
}

// sourceFile names the file that a selected template came from.
func sourceFile(s chattemplate.Sources, template string) string {
	if s.Jinja != "" || len(s.Additional) > 0 {
		return templateFile
	}
	if own, err := chattemplate.Select(chattemplate.Sources{TokenizerConfig: s.TokenizerConfig}, false); err == nil && own == template {
		return tokenizerConfigFile
	}
	return processorFile
}
