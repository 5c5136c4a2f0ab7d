package tokenizer

import (
	"errors"

	"baton/gguf"
)

// A Tokenizer encodes and decodes the text of one model. It is immutable, apart
// from a cache of words, and safe for concurrent use.
type Tokenizer struct {
	size int
}

// Load reads a tokenizer from path: a tokenizer.json file, or a folder that
// holds one.
func Load(path string) (*Tokenizer, error) { return nil, errors.New("tokenizer: not built yet") }

// Parse reads a tokenizer from the content of a tokenizer.json file. What the
// file asks for and this package cannot do is an error that wraps
// [ErrUnsupported] and names the component.
func Parse(data []byte) (*Tokenizer, error) { return nil, errors.New("tokenizer: not built yet") }

// FromGGUF builds the tokenizer that is described in the header of a .gguf file.
func FromGGUF(f *gguf.File) (*Tokenizer, error) { return nil, errors.New("tokenizer: not built yet") }

// ErrUnsupported is wrapped by every error that says: this file is sound, but
// asks for something that this package does not do.
var ErrUnsupported = errors.New("unsupported")

// Encode returns the ids of text. With addSpecial the post-processor of the
// model adds its ids around them (BOS, where the model has one); special tokens
// that stand in the text are recognised in either case.
func (t *Tokenizer) Encode(text string, addSpecial bool) []int32 {
	return t.AppendEncode(nil, text, addSpecial)
}

// AppendEncode is like [Tokenizer.Encode] but appends the ids to dst.
func (t *Tokenizer) AppendEncode(dst []int32, text string, addSpecial bool) []int32 { return dst }

// Decode returns the text of ids. With skipSpecial special tokens give no text.
// Ids outside the vocabulary give none either. Bytes that are not UTF-8 become
// U+FFFD, one for each maximal invalid part, so the result is always valid.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string { return "" }

// NewDecoder returns a decoder for one sequence of ids.
func (t *Tokenizer) NewDecoder(skipSpecial bool) *Decoder { return &Decoder{} }

// A Decoder turns ids into text as they come. It belongs to one goroutine.
type Decoder struct{}

// Append appends to dst the text that id decides, which may be none, and more
// than the token's own: what was held back before it.
func (d *Decoder) Append(dst []byte, id int32) []byte { return dst }

// Flush appends what is still held back at the end of the sequence and makes
// the decoder ready for another one.
func (d *Decoder) Flush(dst []byte) []byte { return dst }

// Token returns the token of id as the vocabulary spells it (a byte-level
// vocabulary spells a blank as Ġ).
func (t *Tokenizer) Token(id int32) (string, bool) { return "", false }

// ID returns the id of the token that the vocabulary spells so.
func (t *Tokenizer) ID(token string) (int32, bool) { return 0, false }

// Bytes returns the bytes that id stands for in the middle of a text, nil for
// an unknown id. They need not be whole characters. The slice belongs to the
// tokenizer.
func (t *Tokenizer) Bytes(id int32) []byte { return nil }

// IsSpecial tells whether id is a special token, one that skipSpecial leaves out.
func (t *Tokenizer) IsSpecial(id int32) bool { return false }

// Size returns the largest id + 1. Some ids below may be unused.
func (t *Tokenizer) Size() int { return t.size }
