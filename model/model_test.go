package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/chattemplate"
)

// The folder of the simulated worker's model: byte-level BPE, 2,335 ids.
const (
	simFolder = "../engine/sim/model"
	simSize   = 2337
	simEnd    = 2334 // <|im_end|>
	simText   = 2332 // <|endoftext|>
)

// folderWith returns a copy of the simulated worker's model folder in which
// files are replaced, or removed where the content is "".
func folderWith(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	writeFolder(t, dir, files)
	return dir
}

func writeFolder(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	all := make(map[string]string)
	for _, name := range []string{tokenizerFile, tokenizerConfigFile, configFile, generationConfigFile} {
		data, err := os.ReadFile(filepath.Join(simFolder, name))
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(data)
	}
	maps.Copy(all, files)
	for name, content := range all {
		if content == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoadFolder(t *testing.T) {
	m, err := Load("public", simFolder)
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "public" || m.Path != simFolder {
		t.Errorf("name %q, path %q", m.Name, m.Path)
	}
	if m.VocabSize != simSize || m.ContextLength != 8192 {
		t.Errorf("vocabulary %d, context %d", m.VocabSize, m.ContextLength)
	}
	if !slices.Equal(m.EOS, []int32{simEnd, simText}) {
		t.Errorf("end ids %v", m.EOS)
	}
	if m.SpecialTokens["eos_token"] != "<|im_end|>" {
		t.Errorf("special tokens %v", m.SpecialTokens)
	}
	if m.Template == nil || m.ToolTemplate != nil {
		t.Errorf("templates %v, %v", m.Template, m.ToolTemplate)
	}
	if m.Defaults != (Defaults{}) {
		t.Errorf("defaults %v", m.Defaults)
	}
	if m.Digest() == (Digest{}) || m.Digest().String() == "" {
		t.Error("no digest")
	}
}

func TestFolderFiles(t *testing.T) {
	dir := folderWith(t, map[string]string{
		configFile: `{"text_config":{"vocab_size":2400,"max_position_embeddings":4096},"eos_token_id":1}`,
		generationConfigFile: `{"temperature":0.6,"top_p":0.9,"top_k":-1,"min_p":0.05,"repetition_penalty":1.1,
			"eos_token_id":2333,"do_sample":true}`,
		templateFile:                      `{{ messages[0].content }}`,
		additionalDir + "/tool_use.jinja": `tools: {{ messages[0].content }}`,
	})
	m, err := Load("m", dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.VocabSize != 2400 || m.ContextLength != 4096 {
		t.Errorf("vocabulary %d, context %d: text_config not read", m.VocabSize, m.ContextLength)
	}
	if !slices.Equal(m.EOS, []int32{simEnd, 2333}) {
		t.Errorf("end ids %v: must be the tokenizer's and generation_config.json's, not config.json's", m.EOS)
	}
	d := m.Defaults
	if *d.Temperature != 0.6 || *d.TopP != 0.9 || *d.TopK != 0 || *d.MinP != 0.05 || *d.RepetitionPenalty != 1.1 {
		t.Errorf("defaults %v %v %v %v %v", *d.Temperature, *d.TopP, *d.TopK, *d.MinP, *d.RepetitionPenalty)
	}
	in := chattemplate.Input{Messages: json.RawMessage(`[{"role":"user","content":"x"}]`)}
	for hasTools, want := range map[bool]string{false: "x", true: "tools: x"} {
		if got, err := m.TemplateFor(hasTools).Render(in); got != want || err != nil {
			t.Errorf("with tools %v: %q, %v; want %q", hasTools, got, err, want)
		}
	}
}

func TestFolderWithoutOptionalFiles(t *testing.T) {
	dir := folderWith(t, map[string]string{tokenizerConfigFile: "", configFile: "", generationConfigFile: ""})
	m, err := Load("m", dir)
	if err != nil {
		t.Fatal(err)
	}
	if m.Template != nil || m.ContextLength != 0 || m.VocabSize != simSize || len(m.EOS) != 0 {
		t.Errorf("%+v", m)
	}

	dir = folderWith(t, map[string]string{generationConfigFile: ""})
	if m, err = Load("m", dir); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.EOS, []int32{simEnd}) {
		t.Errorf("end ids %v: config.json speaks where generation_config.json is missing", m.EOS)
	}
}

func TestLoadErrorsAreOneSentence(t *testing.T) {
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	empty := t.TempDir()
	someFile := filepath.Join(empty, "weights.safetensors")
	if err := os.WriteFile(someFile, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	brokenGGUF := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(brokenGGUF, []byte("no model"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		want       []string
	}{
		{"nothing there", "./no/such/folder", []string{"./no/such/folder is not there", ".gguf", "hub id"}},
		{"unknown hub id", "org/name", []string{"hub cache", "hf download org/name", "--model-path"}},
		{"another file", someFile, []string{someFile, "neither"}},
		{"the tokenizer itself", filepath.Join(simFolder, tokenizerFile), []string{"give the folder"}},
		{"no tokenizer", empty, []string{empty, "has no tokenizer.json"}},
		{"only sentencepiece", folderWith(t, map[string]string{tokenizerFile: "", "tokenizer.model": "x"}), []string{"only tokenizer.model", "save_pretrained"}},
		{"only gguf", folderWith(t, map[string]string{tokenizerFile: "", "q8.GGUF": "x"}), []string{"give that itself", "q8.GGUF"}},
		{"tokenizer damaged", folderWith(t, map[string]string{tokenizerFile: "{"}), []string{tokenizerFile}},
		{"config damaged", folderWith(t, map[string]string{configFile: "{"}), []string{configFile, "damaged"}},
		{"template damaged", folderWith(t, map[string]string{templateFile: "{% if %}"}), []string{templateFile, "line 1", "--model-path"}},
		{"template damaged, in tokenizer_config.json", folderWith(t, map[string]string{tokenizerConfigFile: `{"chat_template":"{{"}`}), []string{tokenizerConfigFile, "line 1"}},
		{"template damaged, in chat_template.json", folderWith(t, map[string]string{tokenizerConfigFile: `{}`, processorFile: `{"chat_template":"{{"}`}), []string{processorFile, "line 1"}},
		{"tokenizer config damaged", folderWith(t, map[string]string{tokenizerConfigFile: "["}), []string{tokenizerConfigFile, "damaged"}},
		{"generation config damaged", folderWith(t, map[string]string{generationConfigFile: "[]"}), []string{generationConfigFile}},
		{"default out of range", folderWith(t, map[string]string{generationConfigFile: `{"temperature":-1,"top_p":0}`}), []string{generationConfigFile, "temperature is -1", "at least 0"}},
		{"gguf damaged", brokenGGUF, []string{brokenGGUF}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load("m", tt.path)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range append(tt.want, `model "m"`) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is more than a sentence", err)
			}
		})
	}
}

func TestContextLength(t *testing.T) {
	tests := []struct {
		config string
		want   int
	}{
		{`{}`, 0},
		{`{"max_position_embeddings":4096}`, 4096},
		{`{"n_positions":1024}`, 1024},
		{`{"max_position_embeddings":8192,"max_seq_len":2048}`, 2048},
		{`{"max_position_embeddings":-1}`, 0},
		{`{"max_position_embeddings":32768,"rope_scaling":{"rope_type":"yarn","factor":4.0,"original_max_position_embeddings":32768}}`, 131072},
		{`{"max_position_embeddings":32768,"rope_scaling":{"type":"yarn","factor":4.0,"original_max_position_embeddings":32768}}`, 131072},
		{`{"max_position_embeddings":163840,"rope_parameters":{"rope_type":"yarn","factor":40,"original_max_position_embeddings":4096}}`, 163840},
		{`{"max_position_embeddings":131072,"rope_scaling":{"rope_type":"llama3","factor":8.0,"original_max_position_embeddings":8192}}`, 131072},
		{`{"max_position_embeddings":131072,"rope_scaling":{"rope_type":"linear","factor":8.0}}`, 131072},
		{`{"max_position_embeddings":4096,"rope_scaling":null}`, 4096},
		{`{"max_position_embeddings":4096,"rope_scaling":{"rope_type":"yarn","factor":1e300,"original_max_position_embeddings":4096}}`, 4096},
		{`{"max_position_embeddings":4096,"rope_scaling":{"full_attention":{"factor":"x"}},"rope_parameters":[1]}`, 4096},
		{`{"max_position_embeddings":10,"text_config":{"max_position_embeddings":4096}}`, 4096},
	}
	for _, tt := range tests {
		var c config
		if err := json.Unmarshal([]byte(tt.config), &c); err != nil {
			t.Errorf("%s: %v", tt.config, err)
		}
		if got := c.contextLength(); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.config, got, tt.want)
		}
	}
}

func TestEndIDs(t *testing.T) {
	for text, want := range map[string]endIDs{`5`: {5}, `[5,6]`: {5, 6}, `null`: nil} {
		var got endIDs
		if err := json.Unmarshal([]byte(text), &got); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	var got endIDs
	if err := json.Unmarshal([]byte(`"x"`), &got); err == nil {
		t.Error("a text is no id")
	}
}

func TestHubCache(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	cache := t.TempDir()
	repo := filepath.Join(cache, "models--org--tiny.model")
	writeFolder(t, filepath.Join(repo, "snapshots", commit), nil)
	// The real cache has links into blobs.
	snapshot := filepath.Join(repo, "snapshots", commit)
	blob := filepath.Join(repo, "blobs", "ffff")
	if err := os.MkdirAll(filepath.Dir(blob), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(snapshot, tokenizerFile), blob); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "..", "blobs", "ffff"), filepath.Join(snapshot, tokenizerFile)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HF_HUB_CACHE", cache)

	load := func() error {
		m, err := Load("m", "org/tiny.model")
		if err == nil && (m.Path != snapshot || m.VocabSize != simSize) {
			t.Errorf("%s, %d", m.Path, m.VocabSize)
		}
		return err
	}
	if err := load(); err != nil {
		t.Errorf("one snapshot and no ref: %v", err)
	}
	ref := filepath.Join(repo, "refs", "main")
	if err := os.MkdirAll(filepath.Dir(ref), 0o755); err != nil {
		t.Fatal(err)
	}
	for content, wantErr := range map[string]string{commit: "", commit + "\n": "", "beef": "not in the hub cache", "../..": "not in the hub cache"} {
		if err := os.WriteFile(ref, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		err := load()
		if (err == nil) != (wantErr == "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("main is %q: %v", content, err)
		}
	}
}

func TestHomeFolder(t *testing.T) {
	dir := folderWith(t, nil)
	t.Setenv("HOME", filepath.Dir(dir))
	m, err := Load("m", "~/"+filepath.Base(dir)+"/.")
	if err != nil {
		t.Fatal(err)
	}
	if m.Path != dir {
		t.Errorf("path %s, want %s", m.Path, dir)
	}
}

// TestDigest: a folder and another spelling of it have one digest, another
// vocabulary another.
func TestDigest(t *testing.T) {
	a, err := Load("a", simFolder)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Load("b", folderWith(t, map[string]string{tokenizerConfigFile: ""}))
	if err != nil {
		t.Fatal(err)
	}
	if a.Digest() != b.Digest() {
		t.Error("the same tokenizer has two digests")
	}
	c, err := Load("c", otherTokenizer(t))
	if err != nil {
		t.Fatal(err)
	}
	if a.Digest() == c.Digest() {
		t.Error("two tokenizers have one digest")
	}
}

// otherTokenizer returns a folder whose vocabulary has two tokens exchanged.
func otherTokenizer(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(simFolder, tokenizerFile))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	vocab := file["model"].(map[string]any)["vocab"].(map[string]any)
	vocab["a"], vocab["b"] = vocab["b"], vocab["a"]
	changed, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return folderWith(t, map[string]string{tokenizerFile: string(changed)})
}

func TestLoadGGUF(t *testing.T) {
	path := ggufOf(t, func(map[string]any) {})
	m, err := Load("g", path)
	if err != nil {
		t.Fatal(err)
	}
	if m.ContextLength != 4096 || m.VocabSize != simSize || m.Path != path {
		t.Errorf("context %d, vocabulary %d, path %s", m.ContextLength, m.VocabSize, m.Path)
	}
	// <|im_end|> is no end id by any key, but a control token of that name.
	if !slices.Equal(m.EOS, []int32{simText, simEnd}) {
		t.Errorf("end ids %v", m.EOS)
	}
	if m.SpecialTokens["bos_token"] != "<|im_start|>" || m.SpecialTokens["eos_token"] != "<|endoftext|>" {
		t.Errorf("special tokens %v", m.SpecialTokens)
	}
	if m.Template == nil || m.ToolTemplate != nil {
		t.Error("templates not read")
	}
	got := m.Tokenizer.Encode("hello<|im_end|>", true)
	folder, err := Load("f", simFolder)
	if err != nil {
		t.Fatal(err)
	}
	if want := folder.Tokenizer.Encode("hello<|im_end|>", true); !slices.Equal(got, want) {
		t.Errorf("encodes to %v, the folder to %v", got, want)
	}

	if m.Digest() != folder.Digest() {
		t.Error("the same tokenizer has another digest than in the folder")
	}

	broken := ggufOf(t, func(values map[string]any) { values["tokenizer.chat_template"] = "{% if" })
	if _, err := Load("g", broken); err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("broken template: %v", err)
	}
}

// TestGGUFEndIDs: names that llama.cpp ends at, and the exceptions. The names
// take the place of tokens that are part of no merge.
func TestGGUFEndIDs(t *testing.T) {
	tests := []struct {
		name  string
		spell map[int]string
		want  []int32
	}{
		{"by key only", map[int]string{2333: "<a>", 2334: "<b>"}, []int32{simText}},
		{"by name", map[int]string{2333: "<|eot_id|>", 2334: "<end_of_turn>"}, []int32{simText, 2333, 2334}},
		{"end of one message", map[int]string{2332: "<|return|>", 2333: "<|call|>", 2334: "<|end|>"}, []int32{2332, 2333}},
		{"end of the answer", map[int]string{2333: "<a>", 2334: "<|end|>"}, []int32{simText, 2334}},
		{"a tag", map[int]string{2333: "<s>", 2334: "</s>"}, []int32{simText}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Load("g", ggufOf(t, func(values map[string]any) {
				for id, token := range tt.spell {
					values["tokenizer.ggml.tokens"].([]string)[id] = token
				}
			}))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(m.EOS, tt.want) {
				t.Errorf("end ids %v, want %v", m.EOS, tt.want)
			}
		})
	}
}

// ggufOf writes the simulated worker's tokenizer as the header of a .gguf file
// (version 3) with its entries edited.
func ggufOf(t testing.TB, edit func(values map[string]any)) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(simFolder, tokenizerFile))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		AddedTokens []struct {
			ID      int    `json:"id"`
			Content string `json:"content"`
		} `json:"added_tokens"`
		Model struct {
			Vocab  map[string]int    `json:"vocab"`
			Merges []json.RawMessage `json:"merges"`
		} `json:"model"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	tokens, types := make([]string, simSize), make([]int32, simSize)
	for token, id := range file.Model.Vocab {
		tokens[id], types[id] = token, 1
	}
	for _, added := range file.AddedTokens {
		tokens[added.ID], types[added.ID] = added.Content, 3
	}
	var merges []string
	for _, merge := range file.Model.Merges {
		var pair []string
		var joined string
		if json.Unmarshal(merge, &pair) == nil {
			joined = strings.Join(pair, " ")
		} else if err := json.Unmarshal(merge, &joined); err != nil {
			t.Fatal(err)
		}
		merges = append(merges, joined)
	}
	values := map[string]any{
		"general.architecture":            "llama",
		"llama.context_length":            uint32(4096),
		"tokenizer.ggml.model":            "gpt2",
		"tokenizer.ggml.pre":              "gpt-2",
		"tokenizer.ggml.tokens":           tokens,
		"tokenizer.ggml.token_type":       types,
		"tokenizer.ggml.merges":           merges,
		"tokenizer.ggml.bos_token_id":     uint32(2333),
		"tokenizer.ggml.eos_token_id":     uint32(simText),
		"tokenizer.ggml.add_bos_token":    false,
		"tokenizer.chat_template":         "{% for m in messages %}{{ m.content }}{% endfor %}",
		"general.quantization_version":    uint32(2),
		"tokenizer.ggml.add_space_prefix": false,
	}
	edit(values)

	var buf bytes.Buffer
	le := func(v any) { binary.Write(&buf, binary.LittleEndian, v) }
	text := func(s string) { le(uint64(len(s))); buf.WriteString(s) }
	buf.WriteString("GGUF")
	le(uint32(3))
	le(uint64(0))
	le(uint64(len(values)))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text(key)
		switch v := values[key].(type) {
		case uint32:
			le(uint32(4))
			le(v)
		case bool:
			le(uint32(7))
			le(v)
		case string:
			le(uint32(8))
			text(v)
		case []string:
			le([]uint32{9, 8})
			le(uint64(len(v)))
			for _, s := range v {
				text(s)
			}
		case []int32:
			le([]uint32{9, 5})
			le(uint64(len(v)))
			le(v)
		}
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
