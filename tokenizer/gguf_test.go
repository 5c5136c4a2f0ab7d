package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/gguf"
	"baton/gguf/gguftest"
)

// ggufOf writes what a .gguf converter makes of a tokenizer.json: the tokens by
// id, their types and the merges or, for a SentencePiece vocabulary, scores such
// that the tokens come about in the order of the merges.
func ggufOf(tb testing.TB, file []byte, model string, more ...gguftest.Entry) []byte {
	tb.Helper()
	vocab, merges := modelOf(tb, file)
	var added []addedToken
	if err := json.Unmarshal(member(tb, file, "added_tokens"), &added); err != nil {
		tb.Fatal(err)
	}
	size := int64(0)
	for _, id := range vocab {
		size = max(size, id+1)
	}
	for _, a := range added {
		size = max(size, a.ID+1)
	}
	tokens, types, scores := make([]string, size), make([]int32, size), make([]float32, size)
	for id := range tokens {
		tokens[id], types[id], scores[id] = fmt.Sprintf("[PAD%d]", id), ggufUnused, -float32(id)
	}
	for token, id := range vocab {
		tokens[id], types[id] = token, ggufNormal
		if _, ok := byteToken(token); ok && model == "llama" {
			types[id] = ggufByte
		}
	}
	for _, a := range added {
		tokens[a.ID], types[a.ID] = a.Content, ggufControl
		if !a.Special {
			tokens[a.ID], types[a.ID] = a.Content, ggufUserDefined
			if model == "llama" {
				tokens[a.ID] = strings.ReplaceAll(a.Content, "▁", " ")
			}
		}
	}
	entries := append([]gguftest.Entry{
		{Key: "tokenizer.ggml.model", Value: model},
		{Key: "tokenizer.ggml.tokens", Value: tokens},
		{Key: "tokenizer.ggml.token_type", Value: types},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(1)},
	}, more...)
	if model != "llama" {
		return gguftest.Header(append(entries, gguftest.Entry{Key: "tokenizer.ggml.merges", Value: merges})...)
	}
	for rank, merge := range slices.Backward(merges) {
		left, right, _ := strings.Cut(merge, " ")
		scores[vocab[left+right]] = -float32(rank)
	}
	return gguftest.Header(append(entries, gguftest.Entry{Key: "tokenizer.ggml.scores", Value: scores})...)
}

// modelOf returns the vocabulary and the merges, as "a b", of a tokenizer.json.
func modelOf(tb testing.TB, file []byte) (vocab map[string]int64, merges []string) {
	tb.Helper()
	model := member(tb, file, "model")
	vocab = map[string]int64{}
	s := scanner{data: member(tb, model, "vocab")}
	if err := s.object(func(key []byte) error {
		id, err := s.number()
		vocab[string(key)] = int64(id)
		return err
	}); err != nil {
		tb.Fatal(err)
	}
	list := mergeList{raw: member(tb, model, "merges")}
	if err := list.portion(0, 0, func(p mergePair) error {
		merges = append(merges, string(p.left)+" "+string(p.right))
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
	return vocab, merges
}

func fromHeader(tb testing.TB, header []byte) (*Tokenizer, error) {
	tb.Helper()
	f, err := gguf.Read(bytes.NewReader(header))
	if err != nil {
		tb.Fatal(err)
	}
	return FromGGUF(f)
}

// The tokenizer in a .gguf file does what the tokenizer.json does from which
// the file was made. What the file cannot say, a normalizer, is left out.
func TestGGUFAsTokenizerJSON(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute of computing")
	}
	noNormalizer := map[string]json.RawMessage{"normalizer": json.RawMessage("null")}
	for _, c := range []struct{ pre, model, variant string }{
		{"llama-bpe", "llama3", ""}, {"llama-bpe", "llama3_1", ""}, {"llama-bpe", "llama3_2", ""}, {"qwen2", "qwen2_5", ""}, {"qwen2", "qwen3", ""},
		{"deepseek-v3", "deepseek_v3", ""}, {"gpt-4o", "gpt4o", ""}, {"gpt-4o", "gptoss", ""}, {"tekken", "mistral_nemo", ""}, {"command-r", "command_r_plus", ""},
		{"qwen35", "", "v_qwen35"}, {"kimi-k2", "", "v_kimi"}, {"gpt-2", "", "v_gpt2"}, {"smollm", "", "v_gpt2digits"}, {"starcoder", "", "v_gpt2digits"},
		{"deepseek-coder", "", "v_deepseekcoder"}, {"bloom", "", "v_bloom"},
	} {
		t.Run(c.pre+"/"+c.model+c.variant, func(t *testing.T) {
			t.Parallel()
			var file []byte
			if c.variant != "" {
				v := variants(t)[c.variant]
				file = v.apply(t, modelFile(t, v.Base))
			} else {
				file = modelFile(t, c.model)
			}
			file = variant{Set: noNormalizer}.apply(t, file)
			compareWithGGUF(t, file, ggufOf(t, file, "gpt2", gguftest.Entry{Key: "tokenizer.ggml.pre", Value: c.pre}))
		})
	}
	for _, c := range []struct {
		model  string
		prefix bool
	}{{"llama2", true}, {"gemma2", false}, {"gemma3", false}} {
		t.Run("llama/"+c.model, func(t *testing.T) {
			t.Parallel()
			file := modelFile(t, c.model)
			compareWithGGUF(t, file, ggufOf(t, file, "llama", gguftest.Entry{Key: "tokenizer.ggml.add_space_prefix", Value: c.prefix}))
		})
	}
}

func compareWithGGUF(t *testing.T, file, header []byte) {
	t.Helper()
	want, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	got, err := fromHeader(t, append(header, "what follows"...))
	if err != nil {
		t.Fatal(err)
	}
	c, wrong := testCorpus(t), 0
	// What llama.cpp takes for a special token because of its name, and the model does not.
	named := slices.DeleteFunc(slices.Clone(ggufEndNames), func(name string) bool {
		_, added := want.addedIDs[name]
		_, known := want.ID(name)
		return added || !known
	})
	for _, text := range slices.Concat(c.Texts, c.Fuzz) {
		if slices.ContainsFunc(named, func(name string) bool { return strings.Contains(text, name) }) {
			continue
		}
		if strings.Contains(text, "▁") && len(want.normalizers) > 0 {
			continue // a .gguf file spells Gemma's tokens of several blanks with spaces
		}
		a, b := got.Encode(text, false), want.Encode(text, false)
		if !slices.Equal(a, b) {
			if wrong++; wrong <= 5 {
				t.Errorf("%q is %v, by tokenizer.json %v", clip([]byte(text)), a[:min(20, len(a))], b[:min(20, len(b))])
			}
			continue
		}
		if x, y := got.Decode(a, true), want.Decode(a, true); x != y {
			t.Errorf("%v is %q, by tokenizer.json %q", a[:min(20, len(a))], clip([]byte(x)), clip([]byte(y)))
		}
	}
	if wrong > 5 {
		t.Errorf("%d texts differ", wrong)
	}
}

// smallGGUF is a header for the small made-up tokenizer of that name.
func smallGGUF(tb testing.TB, name, model string, more ...gguftest.Entry) []byte {
	tb.Helper()
	for _, c := range smallCases(tb) {
		if c.Name == name {
			return ggufOf(tb, c.file, model, more...)
		}
	}
	tb.Fatalf("no small tokenizer is named %q", name)
	return nil
}

func TestSmallGGUF(t *testing.T) {
	for _, c := range []struct{ name, model string }{{"byte level", "gpt2"}, {"pieces", "llama"}} {
		want := small(t, c.name)
		got, err := fromHeader(t, smallGGUF(t, c.name, c.model, gguftest.Entry{Key: "tokenizer.ggml.pre", Value: "gpt-2"}))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"hello world", "<|start|>hello<|end|> the", "hello world 你", "a  b\n\n c"} {
			ids := got.Encode(text, false)
			if c.model == "gpt2" && !slices.Equal(ids, want.Encode(text, false)) {
				t.Errorf("%s: %q is %v, by tokenizer.json %v", c.name, text, ids, want.Encode(text, false))
			}
			if back := got.Decode(ids, false); back != text {
				t.Errorf("%s: %q comes back as %q", c.name, text, back)
			}
		}
	}
}

// What is added around a text is what the file says or, if it says nothing,
// what is usual for its kind.
func TestGGUFEnds(t *testing.T) {
	flag := func(key string, value any) gguftest.Entry {
		return gguftest.Entry{Key: "tokenizer.ggml." + key, Value: value}
	}
	for _, c := range []struct {
		name, model, pre string
		more             []gguftest.Entry
		before, after    []int32
	}{
		{"gpt2 adds nothing", "gpt2", "gpt-2", nil, nil, nil},
		{"llama-bpe adds BOS", "gpt2", "llama-bpe", nil, []int32{1}, nil},
		{"unless told not to", "gpt2", "llama-bpe", []gguftest.Entry{flag("add_bos_token", false)}, nil, nil},
		{"gpt2 told to", "gpt2", "gpt-2", []gguftest.Entry{flag("add_bos_token", true), flag("add_eos_token", true), flag("eos_token_id", uint32(2))}, []int32{1}, []int32{2}},
		{"llama adds BOS", "llama", "", nil, []int32{1}, nil},
	} {
		name := "byte level"
		if c.model == "llama" {
			name = "pieces"
		}
		tok, err := fromHeader(t, smallGGUF(t, name, c.model, append(c.more, flag("pre", c.pre))...))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		want := slices.Concat(c.before, tok.Encode("a", false), c.after)
		if got := tok.Encode("a", true); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
	}
}

func FuzzFromGGUF(f *testing.F) {
	f.Add(gguftest.Header(
		gguftest.Entry{Key: "tokenizer.ggml.model", Value: "gpt2"}, gguftest.Entry{Key: "tokenizer.ggml.pre", Value: "gpt-2"},
		gguftest.Entry{Key: "tokenizer.ggml.tokens", Value: []string{"a", "b", "ab", "<x>", "Ġ", "\xff", ""}},
		gguftest.Entry{Key: "tokenizer.ggml.token_type", Value: []int32{1, 1, 1, 3, 1, 1, 1}},
		gguftest.Entry{Key: "tokenizer.ggml.merges", Value: []string{"a b"}}), "a ab <x>")
	f.Add(smallGGUF(f, "pieces", "llama"), "hello </s> world")
	small, err := filepath.Glob("testdata/gguf/small-*.gguf")
	if err != nil || len(small) == 0 {
		f.Fatalf("%d small files: %v", len(small), err)
	}
	for _, path := range small {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "aab<s>ab xyb éé\n\n")
	}
	f.Add(gguftest.Header(
		gguftest.Entry{Key: "tokenizer.ggml.model", Value: "t5"},
		gguftest.Entry{Key: "tokenizer.ggml.tokens", Value: []string{"<pad>", "</s>", "<unk>", "▁a", "a▁", "b"}},
		gguftest.Entry{Key: "tokenizer.ggml.precompiled_charsmap", Value: []byte("\x10\x00\x00\x00\x00\x04\x00\x00a\x05\x00\x00\x02\x00\x00\x80\x00\x00\x00\x00ab\x00c\x00")},
	), "a  abc")
	f.Add(gguftest.Header(
		gguftest.Entry{Key: "tokenizer.ggml.model", Value: "bert"},
		gguftest.Entry{Key: "tokenizer.ggml.tokens", Value: []string{"[UNK]", "[CLS]", "[SEP]", "▁a", "b", "▁,"}},
		gguftest.Entry{Key: "tokenizer.ggml.token_type", Value: []int32{2, 3, 3, 1, 1, 1}},
		gguftest.Entry{Key: "tokenizer.ggml.unknown_token_id", Value: uint32(0)},
		gguftest.Entry{Key: "tokenizer.ggml.bos_token_id", Value: uint32(1)},
		gguftest.Entry{Key: "tokenizer.ggml.seperator_token_id", Value: uint32(2)},
	), "Ab, ÁB 한")
	f.Add(gguftest.Header(
		gguftest.Entry{Key: "tokenizer.ggml.model", Value: "gemma4"},
		gguftest.Entry{Key: "tokenizer.ggml.tokens", Value: []string{"<bos>", "a", "▁", "▁a", "\n\n"}},
		gguftest.Entry{Key: "tokenizer.ggml.bos_token_id", Value: uint32(0)},
		gguftest.Entry{Key: "tokenizer.ggml.merges", Value: []string{"▁ a"}},
	), "a a\n\nb")
	f.Fuzz(func(t *testing.T, header []byte, text string) {
		file, err := gguf.Read(bytes.NewReader(header))
		if err != nil {
			return
		}
		tok, err := FromGGUF(file)
		if err != nil {
			return
		}
		ids := tok.Encode(text, true)
		for _, id := range ids {
			if id < 0 || int(id) >= tok.Size() {
				t.Fatalf("%q has the id %d, the vocabulary only %d", text, id, tok.Size())
			}
		}
		if got := tok.Decode(ids, false); !utf8.ValidString(got) {
			t.Fatalf("%v decodes to %q", ids, got)
		}
	})
}

func TestGGUFErrors(t *testing.T) {
	entry := func(key string, value any) gguftest.Entry {
		return gguftest.Entry{Key: "tokenizer.ggml." + key, Value: value}
	}
	tokens := entry("tokens", []string{"a", "b", "ab"})
	for _, c := range []struct {
		name        string
		unsupported bool
		says        string
		entries     []gguftest.Entry
	}{
		{"no tokenizer", false, "tokenizer.ggml.model", nil},
		{"no tokens", false, "tokenizer.ggml.tokens", []gguftest.Entry{entry("model", "gpt2")}},
		{"another model", true, `"new"`, []gguftest.Entry{entry("model", "new"), tokens}},
		{"a rare model", true, `"plamo2"`, []gguftest.Entry{entry("model", "plamo2"), tokens}},
		{"none", false, "no tokenizer", []gguftest.Entry{entry("model", "none")}},
		{"no unknown token", false, "unknown_token_id", []gguftest.Entry{entry("model", "bert"), tokens}},
		{"no BOS", false, "bos_token_id", []gguftest.Entry{entry("model", "bert"), tokens, entry("unknown_token_id", uint32(0))}},
		{"no bytes for RWKV", true, "byte", []gguftest.Entry{entry("model", "rwkv"), tokens}},
		{"a map without an end", false, "no end", []gguftest.Entry{entry("model", "t5"), tokens, entry("precompiled_charsmap", []byte("\x04\x00\x00\x00aaaabc"))}},
		{"a map without a table", false, "do not hold", []gguftest.Entry{entry("model", "t5"), tokens, entry("precompiled_charsmap", []byte("\xff\xff\xff\xffa\x00"))}},
		{"a map without a size", false, "no size", []gguftest.Entry{entry("model", "t5"), tokens, entry("precompiled_charsmap", []byte("a"))}},
		{"a map that puts in too much", false, "limit", []gguftest.Entry{entry("model", "t5"), tokens, entry("precompiled_charsmap", append([]byte("\x00\x00\x00\x00"), strings.Repeat("a", 300)+"\x00"...))}},
		{"a long token", false, "limit", []gguftest.Entry{entry("model", "t5"), entry("tokens", []string{"a", "b", strings.Repeat("a", 600)})}},
		{"a long special token", false, "limit", []gguftest.Entry{entry("model", "gpt2"), entry("pre", "gpt-2"), entry("tokens", []string{"a", strings.Repeat("a", 600)}), entry("token_type", []int32{1, 3}), entry("merges", []string{})}},
		{"a score that is none", false, "not a number", []gguftest.Entry{entry("model", "t5"), tokens, entry("scores", []float32{0, 0, float32(math.NaN())})}},
		{"an unknown split", true, `"new-model"`, []gguftest.Entry{entry("model", "gpt2"), entry("pre", "new-model"), tokens}},
		{"no merges", false, "merges", []gguftest.Entry{entry("model", "gpt2"), entry("pre", "gpt-2"), tokens}},
		{"a broken merge", false, "two parts", []gguftest.Entry{entry("model", "gpt2"), entry("pre", "gpt-2"), tokens, entry("merges", []string{"ab"})}},
		{"an empty merge", false, "two parts", []gguftest.Entry{entry("model", "gpt2"), entry("pre", "gpt-2"), tokens, entry("merges", []string{""})}},
		{"a merge of nothing known", false, "not in the vocabulary", []gguftest.Entry{entry("model", "gpt2"), entry("pre", "gpt-2"), tokens, entry("merges", []string{"a c"})}},
		{"too few types", false, "token types", []gguftest.Entry{entry("model", "gpt2"), entry("pre", "gpt-2"), tokens, entry("token_type", []int32{1})}},
		{"a BOS outside", false, "bos_token_id", []gguftest.Entry{entry("model", "gpt2"), entry("pre", "gpt-2"), tokens, entry("merges", []string{"a b"}), entry("add_bos_token", true), entry("bos_token_id", uint32(3))}},
		{"a special token that is no text", false, "not UTF-8", []gguftest.Entry{entry("model", "gpt2"), entry("pre", "gpt-2"), entry("tokens", []string{"a", "\x81"}), entry("token_type", []int32{1, 3}), entry("merges", []string{})}},
		{"no byte tokens", true, "byte", []gguftest.Entry{entry("model", "llama"), tokens, entry("scores", []float32{0, 0, 0})}},
	} {
		_, err := fromHeader(t, gguftest.Header(c.entries...))
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrUnsupported) != c.unsupported {
			t.Errorf("%s: the error is %v", c.name, err)
		}
	}
}
