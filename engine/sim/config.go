package sim

import (
	"slices"
	"time"

	"baton/engine"
)

// A Style says which of the ids the hash chooses among.
type Style string

const (
	// StyleHash takes any id of the vocabulary: whole words, single bytes that
	// are no UTF-8, emoji spelled by several tokens, special tokens.
	StyleHash Style = "hash"
	// StyleWhole takes any id that is whole characters by itself. llama.cpp loses
	// the others' ids on the wire, and with them the exactness that is tested.
	StyleWhole Style = "whole"
	// StyleWords takes the next word of a small grammar, so that people read
	// English sentences.
	StyleWords Style = "words"
)

// The engines whose wire protocol and habits a simulated worker can have.
const (
	KindVLLM     = engine.VLLM
	KindSGLang   = engine.SGLang
	KindTRTLLM   = engine.TRTLLM
	KindLlamaCPP = engine.LlamaCPP
)

// Defaults of Config.
const (
	DefaultModelName  = "sim"
	DefaultMeanLength = 64

	// defaultConnectDelay is how long a dial that times out takes.
	defaultConnectDelay = 3 * time.Second
)

// Config is what a simulated worker is. The zero value is a fast worker without
// faults: the embedded model, the style hash, one token per delta.
type Config struct {
	// ID names the worker in errors.
	ID string
	// Kind is the engine that it plays: KindVLLM (the default), KindSGLang or KindLlamaCPP.
	// It decides the protocol of a Server, and of both Server and Engine what
	// ignore_eos means: vLLM and SGLang generate end ids and go on, llama.cpp never
	// generates them.
	Kind string
	// Model is the worker's own name for its model.
	Model string
	Style Style

	// ContextLength is in tokens; the embedded model's by default.
	ContextLength int
	// VocabSize, if set, limits ids to [0, VocabSize), for tests that want few.
	// EOS must be set along with it.
	VocabSize int
	// EOS are the worker's end ids; the embedded model's by default.
	EOS []engine.TokenID
	// MeanLength is how many tokens an answer has on average before its end id
	// comes; negative = end ids never come.
	MeanLength int

	// Say, if set, is what every answer is, whatever the prompt: its tokens and then
	// an end id. A prompt that ends with the beginning of it is continued there.
	Say string

	// Prefill is the time before the first token, Gap the time before each other.
	Prefill, Gap time.Duration
	// Deltas are the numbers of ids of successive deltas, used in turn; 0 is an
	// empty delta. One id each by default, and where none is positive.
	Deltas []int
	// FinishAlone gives the finish reason in a delta of its own, without ids,
	// instead of with the last id.
	FinishAlone bool

	Faults []Fault

	Server ServerConfig
}

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	if c.Kind == "" {
		c.Kind = KindVLLM
	}
	if c.Model == "" {
		c.Model = DefaultModelName
	}
	if c.Style == "" {
		c.Style = StyleHash
	}
	if c.ContextLength == 0 {
		c.ContextLength = ModelContextLength
	}
	if c.VocabSize == 0 {
		c.VocabSize = ModelVocabSize()
		if c.EOS == nil {
			c.EOS = ModelEOS()
		}
	}
	if c.MeanLength == 0 {
		c.MeanLength = DefaultMeanLength
	}
	if len(c.Deltas) == 0 || slices.Max(c.Deltas) < 1 {
		c.Deltas = []int{1}
	}
	c.Server = c.Server.withDefaults(c.Model)
	return c
}
