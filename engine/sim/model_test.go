package sim_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/chattemplate"
	"baton/engine/sim"
	"baton/engine/sim/toymodel"
	"baton/model"
	"baton/tokenizer"
)

// The frontend's own tokenizer must read the model folder as it is meant, or
// the two sides would not speak of the same ids.

func modelFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "model")
	if err := sim.WriteModel(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTokenizerTakesEachWordAsOneToken(t *testing.T) {
	tok, err := tokenizer.Load(modelFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	if tok.Size() != sim.ModelVocabSize() {
		t.Errorf("the tokenizer has %d ids, the model %d", tok.Size(), sim.ModelVocabSize())
	}
	for _, word := range toymodel.Words() {
		ids := tok.Encode(word, false)
		if len(ids) != 1 || tok.Decode(ids, false) != word {
			t.Errorf("%q encodes to %d tokens, %q", word, len(ids), tok.Decode(ids, false))
		}
	}
	first := sim.ModelVocabSize() - len(toymodel.Specials) - len(toymodel.Marks)
	for i, added := range slices.Concat(toymodel.Specials, toymodel.Marks) {
		id, ok := tok.ID(added)
		if special := i < len(toymodel.Specials); !ok || int(id) != first+i || tok.IsSpecial(id) != special {
			t.Errorf("%s is id %d, want %d, special: %v", added, id, first+i, special)
		}
	}
}

func TestModelLoads(t *testing.T) {
	m, err := model.Load("sim", modelFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	eos := sim.ModelEOS()
	slices.Sort(eos)
	got := slices.Clone(m.EOS)
	slices.Sort(got)
	if m.ContextLength != sim.ModelContextLength || m.VocabSize != sim.ModelVocabSize() || !slices.Equal(got, eos) || m.Template == nil {
		t.Errorf("context %d, vocabulary %d, end ids %v, template %v", m.ContextLength, m.VocabSize, m.EOS, m.Template != nil)
	}
}

// The worker's /tokenize and the frontend's tokenizer are two implementations.
func TestTokenizersAgree(t *testing.T) {
	tok, err := tokenizer.Load(modelFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{
		"", " ", "  ", "\n", "\r\n", " \n ", "a", "The old sailor repaired the clock.", "it's they'll I'VE don't 's",
		"12 345,6 times", "x  y   z\t\tw", "trailing   ", "\n\n  indented\n", "Grüße, 世界 🌍😂🎉🚀!", "é é́ ñ", "한국어 日本語 русский",
		"<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n", "<|im_start", "{\"a\": [1, 2]}", "a\u00a0b\u2003c", "…—“quoted”", "²½Ⅷ٣",
		"func main() { fmt.Println(\"hi\") }",
	}
	words := toymodel.Words()
	for i := range 200 { // sentences of words and texts, joined at all sorts of edges
		texts = append(texts, words[i*7%len(words)]+texts[i%23]+words[i*13%len(words)]+strings.Repeat(" ", i%4)+texts[(i*5)%23])
	}
	for _, text := range texts {
		want := tok.Encode(text, false)
		if got := sim.Tokenize(text); !slices.Equal(got, want) {
			t.Errorf("%q: the worker says %v, the frontend %v", text, got, want)
		}
	}
}

func TestChatTemplate(t *testing.T) {
	m, err := model.Load("sim", modelFolder(t))
	if err != nil {
		t.Fatal(err)
	}
	in := chattemplate.Input{
		Messages:            json.RawMessage(`[{"role":"system","content":"Be brief."},{"role":"user","content":"hello"},{"role":"assistant","content":"hi"},{"role":"user","content":"tell me"}]`),
		AddGenerationPrompt: true,
		SpecialTokens:       m.SpecialTokens,
	}
	got, err := m.Template.Render(in)
	want := "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\nhi<|im_end|>\n<|im_start|>user\ntell me<|im_end|>\n<|im_start|>assistant\n"
	if err != nil || got != want {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	if m.Formats.Tool == nil || m.Formats.Tool.Name != "hermes" || m.Formats.Reasoning == nil || m.Formats.Reasoning.Name != "qwen3" {
		t.Errorf("it is read as %+v, want hermes and qwen3", m.Formats)
	}
	for kwargs, tail := range map[string]string{
		`{"enable_thinking":true}`:                           "<think>\n",
		`{"reasoning_effort":"low"}`:                         "<think>\n",
		`{"enable_thinking":false}`:                          "<think>\n\n</think>\n\n",
		`{"reasoning_effort":"none"}`:                        "<think>\n\n</think>\n\n",
		`{"enable_thinking":false,"reasoning_effort":"low"}`: "<think>\n\n</think>\n\n",
	} {
		in.Kwargs = json.RawMessage(kwargs)
		if got, err := m.Template.Render(in); err != nil || got != want+tail {
			t.Errorf("%s: %q, %v; want %q", kwargs, got, err, want+tail)
		}
	}
	in.Kwargs = nil
	in.Tools = json.RawMessage(`[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]`)
	in.Messages = json.RawMessage(`[{"role":"system","content":"Be brief."},{"role":"user","content":"hello"},
		{"role":"assistant","content":"hi","tool_calls":[{"function":{"name":"f","arguments":"{\"a\": 1}"}},{"function":{"name":"g","arguments":{"b":[]}}}]},
		{"role":"tool","content":"one"},{"role":"tool","content":"two"}]`)
	got, err = m.Template.Render(in)
	want = "<|im_start|>system\nBe brief.\n\nTools:\n<tools>\n" +
		`{"type": "function", "function": {"name": "f"}}` + "\n" + `{"type": "function", "function": {"name": "g"}}` +
		"\n</tools>\nCall one with:\n<tool_call>\n{\"name\": NAME, \"arguments\": OBJECT}\n</tool_call><|im_end|>\n" +
		"<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\nhi\n<tool_call>\n" +
		`{"name": "f", "arguments": {"a": 1}}` + "\n</tool_call>\n<tool_call>\n" + `{"name": "g", "arguments": {"b": []}}` +
		"\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response><|im_end|>\n" +
		"<|im_start|>assistant\n"
	if err != nil || got != want {
		t.Errorf("with tools: %q, %v; want %q", got, err, want)
	}
}
