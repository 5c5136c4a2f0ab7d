package tokenizer

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

const tinyModel = `"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}`

func with(member string) string { return "{" + member + "," + tinyModel + "}" }

// hostileFiles are broken, strange and malicious files. Each gives one error
// that says something of what is wrong.
var hostileFiles = []struct {
	name, file, says string
	unsupported      bool
}{
	{"nothing", ``, "not valid JSON", false},
	{"another JSON", `[]`, "not valid JSON", false},
	{"no model", `{}`, "no model", false},
	{"cut off", `{"model":{"type":"BPE","vocab":{"a":0`, "not valid JSON", false},
	{"cut off in a string", `{"mod`, "not valid JSON", false},
	{"more behind it", `{` + tinyModel + `} x`, "more after the end", false},
	{"brackets that do not match", `{"model":{"vocab":{"a":0],"merges":[]}}`, "not valid JSON", false},
	{"a model of another kind", `{"model":{"type":"Unigram","vocab":[]}}`, `"Unigram"`, true},
	{"a model without a kind", `{"model":{"vocab":{"a":0}}}`, "no type", false},
	{"a subword prefix", `{"model":{"type":"BPE","continuing_subword_prefix":"##","vocab":{"a":0},"merges":[]}}`, "continuing_subword_prefix", true},
	{"a word suffix", `{"model":{"type":"BPE","end_of_word_suffix":"</w>","vocab":{"a":0},"merges":[]}}`, "end_of_word_suffix", true},
	{"dropout", `{"model":{"type":"BPE","dropout":0.1,"vocab":{"a":0},"merges":[]}}`, "dropout", true},
	{"no vocabulary", `{"model":{"type":"BPE","merges":[]}}`, "model.vocab", false},
	{"a vocabulary that is a list", `{"model":{"type":"BPE","vocab":["a"],"merges":[]}}`, "model.vocab", false},
	{"an id that is a text", `{"model":{"type":"BPE","vocab":{"a":"0"},"merges":[]}}`, "whole number", false},
	{"a negative id", `{"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}}`, "whole number", false},
	{"an id with a fraction", `{"model":{"type":"BPE","vocab":{"a":1.5},"merges":[]}}`, "whole number", false},
	{"a huge id", `{"model":{"type":"BPE","vocab":{"a":4294967296},"merges":[]}}`, "limit", false},
	{"a number out of all range", `{"model":{"type":"BPE","vocab":{"a":99999999999999999999},"merges":[]}}`, "too large", false},
	{"an id twice", `{"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}}`, "two tokens", false},
	{"an unknown token that is none", `{"model":{"type":"BPE","unk_token":"<unk>","vocab":{"a":0},"merges":[]}}`, "unk_token", false},
	{"a flag that is a text", `{"model":{"type":"BPE","fuse_unk":"yes","vocab":{"a":0},"merges":[]}}`, "fuse_unk", false},
	{"a merge of one", `{"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}}`, "two parts", false},
	{"a merge of three", `{"model":{"type":"BPE","vocab":{"a":0},"merges":[["a","a","a"]]}}`, "more than two", false},
	{"a merge of nothing", `{"model":{"type":"BPE","vocab":{"a":0},"merges":[[]]}}`, "not two", false},
	{"a merge that is a number", `{"model":{"type":"BPE","vocab":{"a":0},"merges":[7]}}`, "not valid JSON", false},
	{"a merge of what is no token", `{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":["a b"]}}`, `"ab"`, false},
	{"half a surrogate pair", `{"model":{"type":"BPE","vocab":{"\ud800":0},"merges":[]}}`, "surrogate", false},
	{"an unknown escape", `{"model":{"type":"BPE","vocab":{"\q":0},"merges":[]}}`, "escape", false},
	{"a control character", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\n\":0},\"merges\":[]}}", "not valid JSON", false},
	{"no UTF-8", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\xff\":0},\"merges\":[]}}", "UTF-8", false},
	{"an unknown normalizer", with(`"normalizer":{"type":"Precompiled"}`), `"Precompiled"`, true},
	{"a normalizer that is a text", with(`"normalizer":"NFC"`), "normalizer", false},
	{"a normalizer without a type", with(`"normalizer":{}`), "no type", false},
	{"a replacement without a pattern", with(`"normalizer":{"type":"Replace","content":"x"}`), "no pattern", false},
	{"a replacement by a bad expression", with(`"normalizer":{"type":"Replace","pattern":{"Regex":"("},"content":"x"}`), "missing )", true},
	{"a replacement that is too long", with(`"normalizer":{"type":"Prepend","prepend":"` + strings.Repeat("x", 5000) + `"}`), "limit", false},
	{"replacements that grow without end", with(`"normalizer":{"type":"Sequence","normalizers":[` + strings.Repeat(`{"type":"Replace","pattern":{"String":"a"},"content":"aa"},`, 40) + `null]}`), "times longer", false},
	{"replacements in the decoder that grow without end", with(`"decoder":{"type":"Sequence","decoders":[` + strings.Repeat(`{"type":"Replace","pattern":{"Regex":"a*"},"content":"aa"},`, 40) + `{"type":"Fuse"}]}`), "times longer", false},
	{"added tokens without measure", with(`"added_tokens":[` + manyTokens(40, 60_000) + `]`), "together", false},
	{"an unknown pre-tokenizer", with(`"pre_tokenizer":{"type":"UnicodeScripts"}`), `"UnicodeScripts"`, true},
	{"a split without a behavior", with(`"pre_tokenizer":{"type":"Split","pattern":{"String":" "}}`), "behavior", false},
	{"a split by an unknown expression", with(`"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(a)\\1"},"behavior":"Isolated"}`), `\1`, true},
	{"a metaspace of two characters", with(`"pre_tokenizer":{"type":"Metaspace","replacement":"ab"}`), "one character", false},
	{"an unknown prefix scheme", with(`"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"x"}`), "prepend_scheme", false},
	{"a long delimiter", with(`"pre_tokenizer":{"type":"CharDelimiterSplit","delimiter":""}`), "one character", false},
	{"two byte levels", with(`"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"ByteLevel"}]}`), "second ByteLevel", true},
	{"an unknown decoder", with(`"decoder":{"type":"WordPiece"}`), `"WordPiece"`, true},
	{"decoders in a strange order", with(`"decoder":{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"ByteFallback"}]}`), "at this place", true},
	{"a byte level beside others", with(`"decoder":{"type":"Sequence","decoders":[{"type":"ByteLevel"},{"type":"Fuse"}]}`), "beside others", true},
	{"a strip of nothing", with(`"decoder":{"type":"Strip","content":"","start":1,"stop":0}`), "no sense", false},
	{"a strip of less than nothing", with(`"decoder":{"type":"Strip","content":" ","start":-1,"stop":0}`), "no sense", false},
	{"an unknown post-processor", with(`"post_processor":{"type":"BertProcessing"}`), `"BertProcessing"`, true},
	{"a template with an undefined token", with(`"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}]}`), "not defined", false},
	{"a template with a foreign id", with(`"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],"special_tokens":{"x":{"ids":[99]}}}`), "outside", false},
	{"a template with a negative id", with(`"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],"special_tokens":{"x":{"ids":[-1]}}}`), "out of range", false},
	{"a template without the text", with(`"post_processor":{"type":"TemplateProcessing","single":[]}`), "0 times", true},
	{"added tokens that are no list", with(`"added_tokens":{}`), "added_tokens", false},
	{"an added token that is a text", with(`"added_tokens":["x"]`), "added_tokens", false},
	{"an added token with a huge id", with(`"added_tokens":[{"id":9999999999,"content":"x"}]`), "out of range", false},
	{"normalizers in normalizers", with(`"normalizer":` + strings.Repeat(`{"type":"Sequence","normalizers":[`, 100) + `null` + strings.Repeat(`]}`, 100)), "nested deeper", false},
	{"pre-tokenizers in pre-tokenizers", with(`"pre_tokenizer":` + strings.Repeat(`{"type":"Sequence","pretokenizers":[`, 100) + `{"type":"Whitespace"}` + strings.Repeat(`]}`, 100)), "nested deeper", false},
	{"decoders in decoders", with(`"decoder":` + strings.Repeat(`{"type":"Sequence","decoders":[`, 100) + `{"type":"Fuse"}` + strings.Repeat(`]}`, 100)), "nested deeper", false},
	{"post-processors in post-processors", with(`"post_processor":` + strings.Repeat(`{"type":"Sequence","processors":[`, 100) + `{"type":"ByteLevel"}` + strings.Repeat(`]}`, 100)), "nested deeper", false},
	{"a thousand steps", with(`"pre_tokenizer":{"type":"Sequence","pretokenizers":[` + strings.Repeat(`{"type":"Whitespace"},`, 1000) + `{"type":"Whitespace"}]}`), "more than 64", false},
	{"a huge component", with(`"normalizer":{"type":"NFC","x":"` + strings.Repeat("x", maxComponentBytes) + `"}`), "limit", false},
	{"deep JSON", strings.Repeat(`{"model":`, 100_000), "not valid JSON", false},
}

// manyTokens returns n different added tokens of about size bytes each.
func manyTokens(n, size int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"content":"%d%s"}`, i+3, i, strings.Repeat("x", size))
	}
	return b.String()
}

func TestHostileFiles(t *testing.T) {
	for _, c := range hostileFiles {
		tok, err := Parse([]byte(c.file))
		if err == nil || tok != nil && err != nil {
			t.Errorf("%s: Parse gives %v and the error %v", c.name, tok != nil, err)
			continue
		}
		if !strings.Contains(err.Error(), c.says) || errors.Is(err, ErrUnsupported) != c.unsupported {
			t.Errorf("%s: the error is %v", c.name, err)
		}
		if len(err.Error()) > 500 {
			t.Errorf("%s: the error has %d bytes", c.name, len(err.Error()))
		}
	}
	if _, err := Parse([]byte("{" + tinyModel + "}")); err != nil {
		t.Errorf("the sound file that the others are made of: %v", err)
	}
}

// Wherever a sound file is cut off, there is an error and no panic.
func TestTruncatedFile(t *testing.T) {
	file := smallFile(t, "flags")
	for n := 0; n < len(file)-1; n += 1 + n%7 {
		if _, err := Parse(file[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are a whole file", n, len(file))
		}
	}
}

// A small file must not make a large tokenizer.
func TestHostileFileTakesBoundedMemory(t *testing.T) {
	for name, file := range map[string]string{
		"the largest id":    fmt.Sprintf(`{"model":{"type":"BPE","vocab":{"a":%d},"merges":[]}}`, MaxTokens-1),
		"many components":   with(`"pre_tokenizer":{"type":"Sequence","pretokenizers":[` + strings.Repeat(`{"type":"Split","pattern":{"Regex":"[\\p{L}\\p{N}]+x"},"behavior":"Isolated"},`, 60) + `{"type":"Whitespace"}]}`),
		"many empty tokens": with(`"added_tokens":[` + strings.Repeat(`{},`, 100_000) + `{}]`),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Parse([]byte(file)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.ReadMemStats(&after)
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 256 {
			t.Errorf("%s: %d MiB are taken for a file of %d bytes", name, got, len(file))
		}
	}
}
