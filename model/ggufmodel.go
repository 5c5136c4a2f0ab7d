package model

import (
	"fmt"
	"math"
	"slices"

	"baton/gguf"
	"baton/tokenizer"
)

// loadGGUF reads a model from the header of a .gguf file. The keys are those of
// the GGUF specification of the ggml project; the weights are never read.
func loadGGUF(path string) (*Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give a folder with the model's tokenizer.json with --model-path instead", path, err)
	}
	arch, _ := f.String("general.architecture")
	m := &Model{
		Tokenizer:     tok,
		ContextLength: figure(f, arch+".context_length"),
		VocabSize:     max(tok.Size(), figure(f, arch+".vocab_size")),
		SpecialTokens: ggufSpecialTokens(f, tok),
	}
	m.addEOS(ggufEOS(f, tok)...)

	if source, ok := f.String("tokenizer.chat_template"); ok && source != "" {
		if m.Template, err = parseTemplate(source, path); err != nil {
			return nil, err
		}
	}
	if source, ok := f.String("tokenizer.chat_template.tool_use"); ok && source != "" {
		if m.ToolTemplate, err = parseTemplate(source, path+" (template tool_use)"); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// figure returns a number of the header, 0 if it is not there or not sensible.
func figure(f *gguf.File, key string) int {
	if n, ok := f.Uint(key); ok && n <= math.MaxInt32 {
		return int(n)
	}
	return 0
}

// ggufSpecialTokens names the tokens that templates ask for.
func ggufSpecialTokens(f *gguf.File, tok *tokenizer.Tokenizer) map[string]string {
	special := make(map[string]string)
	for name, key := range map[string]string{
		"bos_token": "tokenizer.ggml.bos_token_id",
		"eos_token": "tokenizer.ggml.eos_token_id",
		"unk_token": "tokenizer.ggml.unknown_token_id",
		"pad_token": "tokenizer.ggml.padding_token_id",
		"sep_token": "tokenizer.ggml.seperator_token_id", // spelled so in the format
	} {
		if id, ok := f.Uint(key); ok && id <= math.MaxInt32 {
			if token, ok := tok.Token(int32(id)); ok {
				special[name] = token
			}
		}
	}
	return special
}

// endKeys are the header's own end ids.
var endKeys = []string{
	"tokenizer.ggml.eos_token_id",
	"tokenizer.ggml.eot_token_id",
	"tokenizer.ggml.eom_token_id",
	"tokenizer.ggml.fim_pad_token_id",
	"tokenizer.ggml.fim_rep_token_id",
	"tokenizer.ggml.fim_sep_token_id",
}

// endTokens are tokens at which llama.cpp ends a generation because of their
// name (src/llama-vocab.cpp): converted files often name only the end of a text
// and not the end of a turn. </s>, which newer versions add, is left out: where
// it ends anything a key says so, and elsewhere (Gemma) it is a tag of HTML.
var endTokens = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|calls|>", "<|flush|>", "<end_of_turn>",
	"<|endoftext|>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
	"<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>",
	"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<reponame>", "<|file_sep|>",
}

// ggufEOS returns the ids at which a generation ends.
func ggufEOS(f *gguf.File, tok *tokenizer.Tokenizer) []int32 {
	var ids []int32
	for _, key := range endKeys {
		if id, ok := f.Uint(key); ok && id <= math.MaxInt32 {
			ids = append(ids, int32(id))
		}
	}
	for _, name := range endTokens {
		if id, ok := tok.ID(name); ok {
			ids = append(ids, id)
		}
	}

	// Where there is a token for the end of all, <|end|> closes only one message
	// of several; llama.cpp makes the same exception.
	has := func(name string) bool { _, ok := tok.ID(name); return ok }
	several := has("<|call|>") && (has("<|return|>") || has("<|flush|>")) || has("<|calls|>") && has("<|flush|>")
	if end, ok := tok.ID("<|end|>"); ok && several {
		ids = slices.DeleteFunc(ids, func(id int32) bool { return id == end })
	}
	return ids
}
