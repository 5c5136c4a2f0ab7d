package tokenizer

import (
	"fmt"
	"strings"

	"baton/gguf"
)

// FromGGUF builds the tokenizer that is described in the header of a .gguf
// file, as llama.cpp does: what the file does not say (the split into words,
// for which it has only a name) is filled in from a table. It knows
// tokenizer.ggml.model "gpt2" (byte-level merges), "gemma4" (merges of
// characters), "llama" (SentencePiece, merged by score), "t5" (SentencePiece's
// unigram model), "bert" (WordPiece) and "rwkv" (the longest token first); other
// kinds, and names of splits that the table has not, are errors that wrap
// [ErrUnsupported].
//
// Like llama.cpp it normalizes nothing with merges, where the model's
// tokenizer.json may ask for NFC: text that is not in that form gets other ids
// from the two.
func FromGGUF(f *gguf.File) (*Tokenizer, error) {
	t, err := fromGGUF(f)
	if err != nil {
		return nil, fmt.Errorf("tokenizer of the .gguf file: %w", err)
	}
	return t, nil
}

func fromGGUF(f *gguf.File) (*Tokenizer, error) {
	model, ok := f.String("tokenizer.ggml.model")
	if !ok {
		return nil, fmt.Errorf("it has no tokenizer.ggml.model")
	}
	tokens, ok := f.Strings("tokenizer.ggml.tokens")
	if !ok || len(tokens) == 0 {
		return nil, fmt.Errorf("it has no tokenizer.ggml.tokens")
	}
	types, ok := f.Ints("tokenizer.ggml.token_type")
	if ok && len(types) < len(tokens) {
		return nil, fmt.Errorf("it has %d tokens but only %d token types", len(tokens), len(types))
	}
	g := &ggufReader{f: f, tokens: tokens, types: types, t: &Tokenizer{}}
	if err := g.model(model); err != nil {
		return nil, err
	}
	if err := g.endTokens(); err != nil {
		return nil, err
	}
	if err := g.finish(); err != nil {
		return nil, err
	}
	return g.t, nil
}

func (g *ggufReader) model(name string) error {
	switch name {
	case "gpt2":
		return g.merged()
	case "gemma4":
		return g.characterMerges(ggufSplits["gemma4"])
	case "llama":
		return g.sentencePiece()
	case "t5":
		return g.unigram()
	case "bert":
		return g.wordPiece()
	case "rwkv":
		return g.longestFirst()
	case "none", "no_vocab":
		return fmt.Errorf("it says that it has no tokenizer (tokenizer.ggml.model is %q)", name)
	case "plamo2", "hybriddna", "whitespace":
		return fmt.Errorf("tokenizer.ggml.model %q, which few models have, is %w", name, ErrUnsupported)
	}
	return fmt.Errorf("tokenizer.ggml.model %q is %w", clip([]byte(name)), ErrUnsupported)
}

// A ggufReader builds one tokenizer.
type ggufReader struct {
	f      *gguf.File
	tokens []string
	types  []int64
	pieces []trieToken // what tokens become, where it is not what they are spelled as
	t      *Tokenizer
	ends   ggufEnds
}

// ggufEnds are the ids around a text, and for what has no token, where the file
// says nothing else; none for those without a usual id.
type ggufEnds struct {
	bos, eos, unknown, separator uint32
	addBOS, addEOS               bool
	always                       bool // BOS and the separator, whatever the flags say
	never                        bool // nothing, likewise
	forceBOS                     bool
}

func (g *ggufReader) typeOf(id int) int64 {
	if g.types == nil {
		return ggufNormal
	}
	return g.types[id]
}

// merged sets up a model with merges: of bytes, as GPT-2's, or of characters.
func (g *ggufReader) merged() error {
	name, _ := g.f.String("tokenizer.ggml.pre")
	split, known := ggufSplits[name]
	if !known {
		return fmt.Errorf("tokenizer.ggml.pre %q is %w: take the model's tokenizer.json instead", clip([]byte(name)), ErrUnsupported)
	}
	if split.characters {
		return g.characterMerges(split)
	}
	steps, err := split.steps()
	if err != nil {
		return err
	}
	g.t.pre = preTokenizer{steps: steps, byteLevel: true}
	g.t.decoding = decoding{kind: byBytes}
	const usual = 11 // of both ends, in the first files of this kind
	g.ends = ggufEnds{bos: usual, eos: usual, unknown: none, separator: none, addBOS: split.addBOS}
	if split.noBOS {
		g.ends.bos = none
	}
	m := &g.t.model
	m.ignoreMerges = split.ignoreMerges
	m.vocabulary.byteLevel = true
	return g.merges()
}

// characterMerges sets up a model that merges characters and spells blanks as
// SentencePiece does (Gemma 4).
func (g *ggufReader) characterMerges(split ggufSplit) error {
	steps, err := split.steps()
	if err != nil {
		return err
	}
	g.t.pre = preTokenizer{steps: steps}
	g.t.normalizers = []normalizer{func(text string) string { return escapeBlanks(text, false) }}
	g.setPieces(false)
	g.ends = ggufEnds{bos: none, eos: none, unknown: none, separator: none, forceBOS: split.forceBOS}
	m := &g.t.model
	m.fallback, m.wholeLines = true, split.wholeLines
	return g.merges()
}

// setPieces makes tokens text in which a blank stands for a space; strip says
// that the one at the start is left out.
func (g *ggufReader) setPieces(strip bool) {
	g.t.decoding = decoding{kind: byPieces, fallback: true, perToken: []func(string, bool) string{
		func(token string, _ bool) string { return unescapeBlanks(token) },
	}}
	if strip {
		g.t.decoding.strip, g.t.decoding.stripMost = ' ', 1
	}
}

// merges enters all tokens and merges.
func (g *ggufReader) merges() error {
	if err := g.vocabulary(); err != nil {
		return err
	}
	m := &g.t.model
	m.gaps, m.unknown = true, none
	m.prepare()
	lines, ok := g.f.Strings("tokenizer.ggml.merges")
	if !ok {
		return fmt.Errorf("it has no tokenizer.ggml.merges")
	}
	if len(lines) > MaxMerges {
		return fmt.Errorf("%d merges are above the limit of %d", len(lines), MaxMerges)
	}
	pairs := make([]mergePair, len(lines))
	for i, line := range lines {
		// The first symbol may itself begin with a blank.
		at := 0
		if len(line) > 1 {
			at = strings.IndexByte(line[1:], ' ') + 1
		}
		if at == 0 {
			return fmt.Errorf("merge %d, %q, does not have two parts", i, clip([]byte(line)))
		}
		pairs[i] = mergePair{[]byte(line[:at]), []byte(line[at+1:])}
	}
	return m.addMerges(pairs)
}

// vocabulary enters all tokens.
func (g *ggufReader) vocabulary() error {
	v := &g.t.model.vocabulary
	for id, token := range g.tokens {
		if err := v.add([]byte(token), uint64(id)); err != nil {
			return err
		}
	}
	v.index()
	return nil
}

// endTokens sets what addSpecial adds.
func (g *ggufReader) endTokens() error {
	e := &g.ends
	addBOS, addEOS, eosKey, eos := g.flag("add_bos_token", e.addBOS) || e.forceBOS, g.flag("add_eos_token", e.addEOS), "eos_token_id", e.eos
	switch {
	case e.never:
		return nil
	case e.always:
		addBOS, addEOS, eosKey, eos = true, true, "seperator_token_id", e.separator // spelled so in the format
	}
	add := func(wanted bool, key string, usual uint32) ([]int32, error) {
		if !wanted {
			return nil, nil
		}
		id := g.tokenID(key, usual)
		if id == none {
			return nil, fmt.Errorf("a token is to be added around a text, but tokenizer.ggml.%s names none", key)
		}
		return []int32{int32(id)}, nil
	}
	var err error
	if g.t.post.before, err = add(addBOS, "bos_token_id", e.bos); err != nil {
		return err
	}
	g.t.post.after, err = add(addEOS, eosKey, eos)
	return err
}

// flag returns what the file says, or the usual if it says nothing.
func (g *ggufReader) flag(key string, usual bool) bool {
	if value, said := g.f.Bool("tokenizer.ggml." + key); said {
		return value
	}
	return usual
}

// tokenID returns the id that the file names, or the usual one if it names no
// token; none if that is no token, either.
func (g *ggufReader) tokenID(key string, usual uint32) uint32 {
	if id, ok := g.f.Uint("tokenizer.ggml." + key); ok && id < uint64(len(g.tokens)) {
		return uint32(id)
	}
	if usual < uint32(len(g.tokens)) {
		return usual
	}
	return none
}
