package tokenizer

// Limits of a tokenizer file. The largest files in use have a vocabulary of
// about 262,000 tokens, 515,000 merges and 35 MB.
const (
	// MaxFileBytes is the size above which a tokenizer.json is not read.
	MaxFileBytes = 256 << 20
	// MaxTokens bounds the ids: the largest allowed id is MaxTokens-1.
	MaxTokens = 1 << 20
	// MaxMerges is how many merges a model may have.
	MaxMerges = 2 << 20
	// MaxTokenBytes is the length of one token.
	MaxTokenBytes = 64 << 10
	// MaxAddedTokens is how many tokens may be recognised in raw text, and
	// maxAddedBytes how long they may be together.
	MaxAddedTokens = 256 << 10
	maxAddedBytes  = 1 << 20
	// MaxComponents is how many normalizers, pre-tokenizers, decoders or
	// processors one pipeline may have, and maxDepth how deep they may nest.
	MaxComponents = 64

	maxDepth = 64
	// maxTrieTokenBytes is how long a token of a .gguf file may be that is looked
	// for at every place of a text, and a key of its map of characters. The
	// longest in use have some 100 bytes.
	maxTrieTokenBytes = 512
	// maxComponentBytes is the size of the JSON of one whole pipeline part
	// (normalizer, pre_tokenizer, post_processor, decoder).
	maxComponentBytes = 1 << 20
	// maxReplacementBytes bounds the text that a component puts in, and
	// maxGrowth how many times longer all replacements of a pipeline together
	// can make a text: each of them could double it.
	maxReplacementBytes = 256
	maxGrowth           = 256
	// maxDecodedBytes bounds what all tokens together decode to.
	maxDecodedBytes = 256 << 20
)
