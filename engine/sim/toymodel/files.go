package toymodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// ContextLength is what the model's config.json claims, in tokens.
const ContextLength = 8192

// chatTemplate is ChatML, with tools, calls and thoughts in the form of Hermes and
// Qwen 3. A thought is opened where enable_thinking or a reasoning_effort asks for it.
const chatTemplate = `{%- if tools %}{{- '<|im_start|>system\n' }}{%- if messages[0].role == 'system' %}{{- messages[0].content + '\n\n' }}{%- endif %}` +
	`{{- 'Tools:\n<tools>' }}{%- for tool in tools %}{{- '\n' }}{{- tool | tojson }}{%- endfor %}` +
	`{{- '\n</tools>\nCall one with:\n<tool_call>\n{"name": NAME, "arguments": OBJECT}\n</tool_call><|im_end|>\n' }}` +
	`{%- elif messages[0].role == 'system' %}{{- '<|im_start|>system\n' + messages[0].content + '<|im_end|>\n' }}{%- endif %}` +
	`{%- for message in messages %}{%- if message.role == 'tool' %}` +
	`{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{- '<|im_start|>user' }}{%- endif %}` +
	`{{- '\n<tool_response>\n' + (message.content or '') + '\n</tool_response>' }}` +
	`{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{- '<|im_end|>\n' }}{%- endif %}` +
	`{%- elif not (loop.first and message.role == 'system') %}` +
	`{{- '<|im_start|>' + message.role + '\n' }}{%- if message.content %}{{- message.content }}{%- endif %}` +
	`{%- for call in message.tool_calls or [] %}{%- if message.content or not loop.first %}{{- '\n' }}{%- endif %}` +
	`{{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}` +
	`{%- if call.function.arguments is string %}{{- call.function.arguments }}{%- else %}{{- call.function.arguments | tojson }}{%- endif %}` +
	`{{- '}\n</tool_call>' }}{%- endfor %}{{- '<|im_end|>\n' }}` +
	`{%- endif %}{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}` +
	`{%- if enable_thinking is defined and not enable_thinking or reasoning_effort == 'none' %}{{- '<think>\n\n</think>\n\n' }}` +
	`{%- elif enable_thinking or reasoning_effort %}{{- '<think>\n' }}{%- endif %}{%- endif %}`

// An object is a JSON object whose keys keep their order.
type object []field

type field struct {
	key   string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := plain(f.key)
		if err != nil {
			return nil, err
		}
		value, err := plain(f.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plain is json.Marshal without the escapes for HTML, which the writers of such
// files do not use.
func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Files returns the files of the model folder by name.
func Files() (map[string][]byte, error) {
	words := append(Words(), pieces...)
	slices.Sort(words)
	merges := train(words)
	vocabulary := object{}
	seen := map[string]bool{}
	add := func(token string) {
		if !seen[token] { // two merges may spell the same token
			seen[token] = true
			vocabulary = append(vocabulary, field{token, len(vocabulary)})
		}
	}
	for _, c := range byteAlphabet() {
		add(c)
	}
	for _, m := range merges {
		add(m[0] + m[1])
	}
	first := len(vocabulary) // the id of the first special token
	size := first + len(Specials) + len(Marks)
	endOfText, end := first, first+2

	files := map[string]any{
		"tokenizer.json": object{
			{"version", "1.0"}, {"truncation", nil}, {"padding", nil},
			{"added_tokens", addedTokens(first)},
			{"normalizer", nil},
			{"pre_tokenizer", byteLevel(false)},
			{"post_processor", nil},
			{"decoder", byteLevel(true)},
			{"model", object{
				{"type", "BPE"}, {"dropout", nil}, {"unk_token", nil}, {"continuing_subword_prefix", nil},
				{"end_of_word_suffix", nil}, {"fuse_unk", false}, {"byte_fallback", false}, {"ignore_merges", false},
				{"vocab", vocabulary}, {"merges", merges},
			}},
		},
		"tokenizer_config.json": object{
			{"tokenizer_class", "PreTrainedTokenizerFast"},
			{"add_bos_token", false}, {"bos_token", nil}, {"eos_token", Specials[2]}, {"pad_token", Specials[0]}, {"unk_token", nil},
			{"clean_up_tokenization_spaces", false}, {"model_max_length", ContextLength},
			{"added_tokens_decoder", addedTokensDecoder(first)},
			{"chat_template", chatTemplate},
		},
		"config.json": object{
			{"architectures", []string{"LlamaForCausalLM"}}, {"model_type", "llama"}, {"vocab_size", size},
			{"hidden_size", 64}, {"intermediate_size", 128}, {"num_hidden_layers", 1},
			{"num_attention_heads", 4}, {"num_key_value_heads", 4},
			{"max_position_embeddings", ContextLength}, {"rms_norm_eps", 1e-6}, {"tie_word_embeddings", true},
			{"torch_dtype", "float32"}, {"bos_token_id", nil}, {"eos_token_id", end},
		},
		"generation_config.json": object{{"eos_token_id", []int{end, endOfText}}, {"pad_token_id", endOfText}},
	}
	out := map[string][]byte{}
	for name, v := range files {
		data, err := plain(v)
		if err != nil {
			return nil, fmt.Errorf("toymodel: encode %s: %w", name, err)
		}
		if name != "tokenizer.json" { // which is long, and read by nobody
			var b bytes.Buffer
			if err := json.Indent(&b, data, "", "  "); err != nil {
				return nil, fmt.Errorf("toymodel: indent %s: %w", name, err)
			}
			data = b.Bytes()
		}
		out[name] = append(data, '\n')
	}
	return out, nil
}

func byteLevel(trim bool) object {
	return object{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", trim}, {"use_regex", true}}
}

func addedTokens(first int) []object {
	var all []object
	for i, f := range added() {
		all = append(all, append(object{{"id", first + i}}, f...))
	}
	return all
}

func addedTokensDecoder(first int) object {
	var all object
	for i, f := range added() {
		all = append(all, field{strconv.Itoa(first + i), f})
	}
	return all
}

// added describes the added tokens, in the order of their ids.
func added() []object {
	var all []object
	for _, s := range Specials {
		all = append(all, flags(s, true))
	}
	for _, s := range Marks {
		all = append(all, flags(s, false))
	}
	return all
}

func flags(content string, special bool) object {
	return object{{"content", content}, {"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"normalized", false}, {"special", special}}
}
