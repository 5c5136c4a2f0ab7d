package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"baton/gguf"
)

// Token types of a .gguf file (tokenizer.ggml.token_type).
const (
	ggufNormal      = 1
	ggufUnknown     = 2
	ggufControl     = 3
	ggufUserDefined = 4
	ggufUnused      = 5
	ggufByte        = 6
)

// FromGGUF builds the tokenizer that is described in the header of a .gguf
// file, as llama.cpp does: what the file does not say (the split into words,
// for which it has only a name) is filled in from a table. It knows
// tokenizer.ggml.model "gpt2" (byte-level merges) and "llama" (SentencePiece,
// merged by score); other kinds, and names of splits that the table has not,
// are errors that wrap [ErrUnsupported].
//
// Like llama.cpp it normalizes nothing, where the model's tokenizer.json may
// ask for NFC: text that is not in that form gets other ids from the two.
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
	var err error
	switch model {
	case "gpt2":
		err = g.byteLevel()
	case "llama":
		err = g.sentencePiece()
	default:
		err = fmt.Errorf("tokenizer.ggml.model %q is %w", clip([]byte(model)), ErrUnsupported)
	}
	if err != nil {
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

// A ggufReader builds one tokenizer.
type ggufReader struct {
	f      *gguf.File
	tokens []string
	types  []int64
	t      *Tokenizer
	addBOS bool // unless the file says otherwise
}

func (g *ggufReader) typeOf(id int) int64 {
	if g.types == nil {
		return ggufNormal
	}
	return g.types[id]
}

// recognised tells whether a token is looked for in raw text.
func (g *ggufReader) recognised(id int) bool {
	switch g.typeOf(id) {
	case ggufControl, ggufUserDefined, ggufUnknown:
		return g.tokens[id] != ""
	}
	return false
}

// byteLevel sets up a model of GPT-2's kind.
func (g *ggufReader) byteLevel() error {
	name, _ := g.f.String("tokenizer.ggml.pre")
	split, known := ggufSplits[name]
	if !known {
		return fmt.Errorf("tokenizer.ggml.pre %q is %w: take the model's tokenizer.json instead", clip([]byte(name)), ErrUnsupported)
	}
	steps, err := split.steps()
	if err != nil {
		return err
	}
	g.t.pre = preTokenizer{steps: steps, byteLevel: true}
	g.t.decoding = decoding{kind: byBytes}
	g.addBOS = split.addBOS
	m := &g.t.model
	m.ignoreMerges = split.ignoreMerges
	m.vocabulary.byteLevel = true
	if err := g.vocabulary(); err != nil {
		return err
	}
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
	m.unknown = none
	m.prepare()
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
	add := func(flag, key string, absent bool) ([]int32, error) {
		if wanted, said := g.f.Bool(flag); said && !wanted || !said && !absent {
			return nil, nil
		}
		id, ok := g.f.Uint(key)
		if !ok || id >= uint64(len(g.tokens)) {
			return nil, fmt.Errorf("%s is to be added, but %s names no token", flag, key)
		}
		return []int32{int32(id)}, nil
	}
	var err error
	if g.t.post.before, err = add("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id", g.addBOS); err != nil {
		return err
	}
	g.t.post.after, err = add("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id", false)
	return err
}

// finish builds what follows from all the parts together.
func (g *ggufReader) finish() error {
	stripped := g.stripsRight()
	var added []addedToken
	for id, token := range g.tokens {
		if !g.recognised(id) {
			continue
		}
		if !utf8.ValidString(token) { // it could match within a character
			return fmt.Errorf("the special token %d, %.100q, is not UTF-8", id, token)
		}
		a := addedToken{Content: token, ID: int64(id), Special: g.typeOf(id) != ggufUserDefined, Normalized: new(bool)}
		a.RStrip = a.Special && stripped(token)
		added = append(added, a)
	}
	if len(added) > MaxAddedTokens {
		return fmt.Errorf("%d special tokens are above the limit of %d", len(added), MaxAddedTokens)
	}
	if err := g.t.finish(added); err != nil {
		return err
	}
	for _, a := range added { // these stand for themselves, whatever their letters could spell
		p := &g.t.pieces[a.ID]
		*p = piece{text: []byte(a.Content), whole: true, special: p.special}
	}
	return nil
}

// stripsRight tells which special tokens take the white space behind them
// along. The format cannot say so; llama.cpp knows it of Phi-3 by its name.
func (g *ggufReader) stripsRight() func(token string) bool {
	name, _ := g.f.String("general.name")
	name = strings.ToLower(name)
	if !strings.Contains(name, "phi-3") && !strings.Contains(name, "phi3") {
		return func(string) bool { return false }
	}
	return func(token string) bool { return token != "<unk>" && token != "<s>" && token != "<|endoftext|>" }
}
