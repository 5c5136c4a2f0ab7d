package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Token types of a .gguf file (tokenizer.ggml.token_type).
const (
	ggufUndefined   = 0
	ggufNormal      = 1
	ggufUnknown     = 2
	ggufControl     = 3
	ggufUserDefined = 4
	ggufUnused      = 5
	ggufByte        = 6
)

// Tokens that llama.cpp takes for control tokens because of their names,
// whatever the file says of them (src/llama-vocab.cpp): those that end a
// generation, and those for filling in, unless a key names another one.
var (
	ggufEndNames = []string{
		"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
		"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
		"<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
	}
	ggufFillNames = []struct {
		keys  []string
		names []string
	}{
		{[]string{"fim_pre_token_id", "prefix_token_id"}, []string{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>"}},
		{[]string{"fim_suf_token_id", "suffix_token_id"}, []string{"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>"}},
		{[]string{"fim_mid_token_id", "middle_token_id"}, []string{"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"}},
		{[]string{"fim_pad_token_id"}, []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
		{[]string{"fim_rep_token_id"}, []string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
		{[]string{"fim_sep_token_id"}, []string{"<|file_sep|>"}},
	}
)

// settleTypes changes the types of tokens that llama.cpp knows by their names.
// They decide what is looked for in a text; what a client sees of an answer goes
// by the types that the file says, which are the model's own.
func (g *ggufReader) settleTypes() {
	ids := map[string]int{}
	for id, token := range g.tokens {
		ids[token] = id
	}
	types := make([]int64, len(g.tokens))
	for id := range types {
		types[id] = g.typeOf(id)
	}
	set := func(name string, to int64) {
		if id, ok := ids[name]; ok {
			types[id] = to
		}
	}
	has := func(name string) bool { _, ok := ids[name]; return ok }

	for _, f := range ggufFillNames {
		if slices.ContainsFunc(f.keys, func(key string) bool {
			id, ok := g.f.Uint("tokenizer.ggml." + key)
			return ok && id < uint64(len(g.tokens))
		}) {
			continue
		}
		if i := slices.IndexFunc(f.names, has); i >= 0 {
			set(f.names[i], ggufControl)
		}
	}
	for _, name := range ggufEndNames {
		set(name, ggufControl)
	}
	// GPT-OSS: a client is to see the frame of a message. And where there is a
	// token for the end of all, <|end|> ends only one message of several.
	for _, name := range []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"} {
		set(name, ggufUserDefined)
	}
	call := has("<|call|>") || has("<|calls|>")
	if call && (has("<|return|>") || has("<|flush|>")) {
		set("<|end|>", ggufUserDefined)
	}
	if has("<|tool_response>") { // Gemma 4, where </s> is a tag of HTML
		set("</s>", ggufNormal)
	}
	g.types = types
}

// recognised tells whether a token is looked for in raw text.
func (g *ggufReader) recognised(id int) bool {
	switch g.typeOf(id) {
	case ggufControl, ggufUserDefined, ggufUnknown:
		return g.tokens[id] != ""
	}
	return false
}

// finish builds what follows from all the parts together.
func (g *ggufReader) finish() error {
	said := make([]int64, len(g.tokens)) // by the file: what a client is not to see
	for id := range said {
		said[id] = g.typeOf(id)
	}
	g.settleTypes()
	g.t.raw.longestFirst, g.t.raw.asciiSpace = true, true
	left, right := g.strips()
	var added []addedToken
	for id, token := range g.tokens {
		if !g.recognised(id) {
			continue
		}
		if !utf8.ValidString(token) { // it could match within a character
			return fmt.Errorf("the special token %d, %.100q, is not UTF-8", id, token)
		}
		if len(token) > maxTrieTokenBytes {
			return fmt.Errorf("the special token %d has %d bytes, above the limit of %d", id, len(token), maxTrieTokenBytes)
		}
		a := addedToken{Content: token, ID: int64(id), Special: said[id] == ggufControl || said[id] == ggufUnknown, Normalized: new(bool)}
		a.LStrip, a.RStrip = left(token), right(token)
		added = append(added, a)
	}
	if len(added) > MaxAddedTokens {
		return fmt.Errorf("%d special tokens are above the limit of %d", len(added), MaxAddedTokens)
	}
	if err := g.t.finish(added); err != nil {
		return err
	}
	for _, p := range g.pieces {
		g.t.pieces[p.id] = piece{text: []byte(p.text), whole: utf8.ValidString(p.text), special: g.t.pieces[p.id].special}
	}
	for _, a := range added { // these stand for themselves, whatever their letters could spell
		p := &g.t.pieces[a.ID]
		*p = piece{text: []byte(a.Content), whole: true, special: p.special}
	}
	for id := range g.tokens {
		if t := g.typeOf(id); t == ggufUnused || t == ggufUndefined {
			g.t.pieces[id] = piece{text: []byte{}, whole: true} // llama.cpp shows nothing for them
		}
	}
	return nil
}

// strips tells which tokens take the white space before or behind them along.
// The format cannot say so; llama.cpp knows it by the names of models.
func (g *ggufReader) strips() (left, right func(token string) bool) {
	text := func(key string) string { s, _ := g.f.String(key); return s }
	contains := func(text string, parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	left = func(string) bool { return false }
	right = left
	name := strings.ToLower(text("general.name"))
	switch {
	case contains(text("tokenizer.ggml.pre"), "jina-v2-de", "jina-v2-es", "jina-v2-code"),
		contains(text("general.architecture"), "nomic-bert-moe", "jina-bert-v3"):
		left = func(token string) bool { return token == "<mask>" }
	case contains(name, "phi-3", "phi3"):
		right = func(token string) bool {
			return token != "<unk>" && token != "<s>" && token != "<|endoftext|>"
		}
	case contains(name, "modern-bert"):
		left = func(token string) bool { return token == "[MASK]" }
	}
	return left, right
}
