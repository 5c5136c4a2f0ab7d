package tokenizer

import (
	"fmt"

	"baton/gguf"
)

// FromGGUF builds the tokenizer that is described in the header of a .gguf file.
func FromGGUF(f *gguf.File) (*Tokenizer, error) {
	return nil, fmt.Errorf("tokenizer from a .gguf file is %w", ErrUnsupported)
}
